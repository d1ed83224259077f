use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::osd::OsdId;
use crate::node::disk::devices::NO_DEVICE;
use crate::node::disk::marks::{self, Marks};
use crate::node::samples::{bare_disk, request};

const GIB: u64 = 1 << 30;

#[test]
fn wipe_plan_covers_ends_copies_and_partitions_not_tombstone() {
    let parts = [GIB / 2 + (1 << 20)..6 * GIB - 17408, 1 << 20..GIB / 2 + (1 << 20)];
    let plan = plan(6 * GIB, &parts);
    assert_eq!(plan.first(), Some(&(512..HEAD)));
    assert_eq!(plan.last().unwrap().end, 6 * GIB);
    assert!(plan.windows(2).all(|pair| pair[0].end < pair[1].start), "{plan:?}");
    let covers = |at: u64| plan.iter().any(|range| range.contains(&at));
    for at in [
        512,
        4096,
        GIB,
        GIB + 4095,
        GIB / 2 + (1 << 20),
        GIB / 2 + (1 << 20) - 1,
        6 * GIB - 1,
        6 * GIB - 33 * 512,
    ] {
        assert!(covers(at), "{at}");
    }
    assert!(!covers(0) && !covers(511) && !covers(3 * GIB));
    assert!(plan.iter().map(|range| range.end - range.start).sum::<u64>() < 64 << 20);
}

#[test]
fn wipe_plan_of_a_small_disk_is_whole_and_never_beyond_its_end() {
    assert_eq!(plan(1 << 20, &[]).first(), Some(&(512..1 << 20)));
    assert_eq!(plan(0, &[]), []);
    assert_eq!(plan(GIB + 100, &[]).last(), Some(&(GIB - TAIL + 100..GIB + 100)));
}

#[test]
fn wipe_of_a_piece_clears_both_ends_and_its_head_last() {
    assert_eq!(within(GIB), [4096..HEAD, GIB - TAIL..GIB, 0..4096]);
    assert_eq!(within(10 << 20), [4096..10 << 20, 6 << 20..10 << 20, 0..4096]);
    assert_eq!(within(4096).as_slice(), std::slice::from_ref(&(0..4096)));
    assert_eq!(within(0), []);
}

#[test]
fn luks_header_is_written_whole_and_a_cut_one_is_not() {
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().write_all_at(&[0xaa; 2048], 0).unwrap();
    let header: Vec<u8> = (0..1024_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    write_first_sector_last(image.as_file(), image.path(), &header).unwrap();
    let bytes = std::fs::read(image.path()).unwrap();
    assert_eq!((&bytes[..1024], &bytes[1024..]), (header.as_slice(), [0xaa; 1024].as_slice()));
    assert!(write_first_sector_last(image.as_file(), image.path(), &header[..100]).is_err());
    assert_eq!(std::fs::read(image.path()).unwrap(), bytes);
}

#[test]
fn wipe_leaves_only_the_tombstone_at_the_ends_of_the_disk() {
    let image = tempfile::NamedTempFile::new().unwrap();
    let size = 40 << 20;
    image.as_file().write_all_at(&vec![0xaa; size], 0).unwrap();
    let stone = Tombstone {
        cluster: "5f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap(),
        osd: OsdId(1),
        old: "55ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap(),
        record: RecordId("r".into()),
    };
    write_tombstone(image.as_file(), image.path(), &stone.to_sector().unwrap()).unwrap();
    let part = 20 << 20..30 << 20;
    let ranges = plan(size as u64, std::slice::from_ref(&part));
    zero(image.as_file(), image.path(), &ranges).unwrap();
    let bytes = std::fs::read(image.path()).unwrap();
    assert_eq!(bytes.len(), size);
    assert_eq!(Tombstone::from_head(&bytes), Some(stone));
    assert!(bytes[512..16 << 20].iter().all(|byte| *byte == 0));
    assert!(bytes[36 << 20..].iter().all(|byte| *byte == 0));
    assert!(bytes[20 << 20..24 << 20].iter().all(|byte| *byte == 0));
    assert_eq!(bytes[18 << 20], 0xaa);
}

/// An image with a BlueStore label and its copies, as a disk, and the task of wiping it.
struct Image {
    file: tempfile::NamedTempFile,
    disk: Disk,
    stone: Tombstone,
    mark: Mark,
}

/// Block of a file, for tools.
const BLOCK: u64 = 512;

impl Image {
    fn new(size: u64) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(size).unwrap();
        for at in PLACES.into_iter().filter(|at| at + LABEL <= size) {
            file.as_file().write_all_at(b"bluestore block device\n", at).unwrap();
        }
        file.as_file().write_all_at(&[0xaa; 512], size - 512).unwrap();
        let disk = Disk { node: file.path().to_owned(), number: NO_DEVICE, ..bare_disk(&[], size) };
        let request = request("n1");
        Self { file, disk, stone: Tombstone::of(&request), mark: Mark::of(&request) }
    }

    /// Clears the image as an agent does, up to the tombstone.
    async fn clear(&self) -> ExclusiveDisk {
        let none = Path::new("/nonexistent");
        let exclusive = ExclusiveDisk::open(&self.disk).await.unwrap();
        exclusive.write_tombstone(&self.stone).await.unwrap();
        exclusive.clear(&self.disk, none, none).await.unwrap();
        exclusive
    }

    async fn wipe(&self, mark: Option<Mark>) {
        self.clear().await.finish(mark, BLOCK).await.unwrap();
    }

    async fn marks(&self) -> Marks {
        marks::of(&self.disk).await.unwrap()
    }

    async fn is_entombed(&self) -> bool {
        matches!(self.marks().await, Marks::Tombstone(stone, _) if stone == self.stone)
    }

    async fn is_marked(&self) -> bool {
        matches!(self.marks().await, Marks::Signed(signature) if signature.mark() == Some(self.mark))
    }

    /// Returns the bytes at both ends of the image, and at the copy of its label.
    fn ends(&self) -> [Vec<u8>; 3] {
        let size = self.disk.identity.size_bytes;
        [0, 1 << 30, size - (1 << 20)].map(|at| {
            let mut bytes = vec![0; 1 << 20];
            self.file.as_file().read_exact_at(&mut bytes, at).unwrap();
            bytes
        })
    }
}

#[tokio::test]
async fn wiped_disk_is_zero_where_labels_and_tombstone_were() {
    let image = Image::new(2 * GIB);
    assert_eq!(image.marks().await, Marks::Label);
    image.wipe(None).await;
    assert_eq!(image.marks().await, Marks::None);
    assert!(image.ends().iter().flatten().all(|byte| *byte == 0));
}

#[tokio::test]
async fn marked_disk_has_two_valid_tables_that_name_the_osd() {
    let image = Image::new(2 * GIB);
    image.wipe(Some(image.mark)).await;
    assert!(image.is_marked().await);
    assert_eq!(crate::node::disk::table::entries(&image.disk.node).await.unwrap(), []);
    // libblkid reads the backup if the primary header is damaged.
    image.file.as_file().write_all_at(b"x", BLOCK + 60).unwrap();
    assert!(image.is_marked().await);
    image.file.as_file().write_all_at(b"x", 2 * GIB - BLOCK + 60).unwrap();
    assert!(!image.is_marked().await);
}

/// Checks that a wipe which is stopped after any of its writes still shows its tombstone, and ends the same
/// when it is repeated.
#[tokio::test]
async fn mark_that_stops_after_any_write_is_repeated_to_the_same_end() {
    let expected = Image::new(2 * GIB);
    expected.wipe(Some(expected.mark)).await;
    let writes = expected.mark.writes(2 * GIB, BLOCK).unwrap();
    for count in 0..=writes.len() {
        let image = Image::new(2 * GIB);
        drop(image.clear().await);
        for write in &writes[..count] {
            write.done(image.file.as_file(), image.file.path()).unwrap();
        }
        if count < writes.len() {
            assert!(image.is_entombed().await, "after {count} writes");
        } else {
            assert!(image.is_marked().await);
        }
        image.wipe(Some(image.mark)).await;
        assert_eq!(image.ends(), expected.ends(), "after {count} writes");
        image.wipe(None).await;
        assert_eq!(image.marks().await, Marks::None, "after {count} writes");
    }
}

#[tokio::test]
async fn disk_too_small_for_a_partition_table_keeps_its_tombstone() {
    let image = Image::new(16 << 10);
    let done = image.clear().await.finish(Some(image.mark), BLOCK).await;
    assert!(matches!(done, Err(NodeError::NotDone(why)) if why.contains("too small")));
    assert!(image.is_entombed().await);
}
