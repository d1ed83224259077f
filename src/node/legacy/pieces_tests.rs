//! Tests with journals in plain files: their marks are read without Ceph's tools. Labels are read in the lab.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::*;
use crate::domain::inspection::{Content, Proof};
use crate::domain::osd::{DeviceIdentity, Kind, OsdId};
use crate::node::disk::devices::NO_DEVICE;

const OLD: &str = "92810c19-d331-49e2-b880-1dc501f87008";
const OTHER: &str = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b";
const MIB: u64 = 1 << 20;

/// A shared disk with two journals, and the main disk of the OSD `OLD`.
struct Scene {
    root: tempfile::TempDir,
    disks: Vec<Disk>,
}

fn fsid(text: &str) -> OsdFsid {
    text.parse().unwrap()
}

fn disk(node: PathBuf, part: Option<&str>, parent: Option<&str>) -> Disk {
    let size_bytes = std::fs::metadata(&node).unwrap().len();
    let wwn = part.map(|uuid| format!("{PART_UUID}{uuid}"));
    Disk {
        name: node.file_name().unwrap().to_str().unwrap().to_owned(),
        node,
        number: NO_DEVICE,
        identity: DeviceIdentity {
            by_id: BTreeSet::new(),
            by_path: [].into(),
            serial: None,
            wwn,
            size_bytes,
        },
        links: BTreeSet::new(),
        parent: parent.map(str::to_owned),
        rotational: true,
        read_only: false,
        holders: Vec::new(),
        partitions: Vec::new(),
    }
}

/// Returns a journal of 40 MiB that is full of `x` after its head.
fn journal(of: &str) -> Vec<u8> {
    let mut bytes = vec![b'x'; usize::try_from(40 * MIB).unwrap()];
    bytes[..16].copy_from_slice(&[4, 0, 0, 0, 64, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    bytes[16..32].copy_from_slice(uuid::Uuid::parse_str(of).unwrap().as_bytes());
    bytes
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = root.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let zeros = vec![0; usize::try_from(MIB).unwrap()];
        let disks = vec![
            disk(put("sda", &zeros), None, None),
            disk(put("sda1", &zeros), Some("d"), Some("sda")),
            disk(put("sdb1", &journal(OLD)), Some("j"), Some("sdb")),
            disk(put("sdb2", &journal(OTHER)), Some("k"), Some("sdb")),
        ];
        Self { root, disks }
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root.path().join(name)).unwrap()
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.root.path().join(name), bytes).unwrap();
    }

    /// Returns the pieces of the main disk's finding, if the finding names this journal.
    async fn found(&self, journal: &str) -> Result<Vec<Piece>, String> {
        found(&self.disks, &self.disks[0], fsid(OLD), &examine(journal)).await.unwrap()
    }

    async fn taken(&self, verdict: &Verdict) -> Result<Vec<Taken>, NodeError> {
        let piece =
            Piece { role: Role::Journal, place: PieceLocation::Device(self.disks[2].identity.clone()) };
        take_of(&self.disks, &[piece], fsid(OLD), verdict).await
    }
}

fn examine(journal: &str) -> DiskFinding {
    let proof = Proof::Partitions {
        format: Kind::FilestorePartition,
        parts: [(Role::Data, "d".to_owned())].into(),
        fs_uuid: Some("f".to_owned()),
        osd_fsid: fsid(OLD),
        whoami: OsdId(1),
        cluster: OTHER.parse().unwrap(),
    };
    let elsewhere = BTreeMap::from([(Role::Journal, Some(journal.to_owned()))]);
    DiskFinding { proof: Some(proof), elsewhere, ..DiskFinding::plain(Content::Blank, Some(fsid(OLD))) }
}

#[tokio::test]
async fn journal_elsewhere_belongs_to_the_osd_named_in_its_head() {
    let scene = Scene::new();
    let pieces = scene.found("j").await.unwrap();
    let place = PieceLocation::Device(scene.disks[2].identity.clone());
    assert_eq!(pieces, [Piece { role: Role::Journal, place }]);
    let why = scene.found("k").await.unwrap_err();
    assert!(why.contains(&format!("the journal of OSD {OTHER}")), "{why}");
    let why = scene.found("z").await.unwrap_err();
    assert!(why.ends_with("no device of the node proves to be its journal, the partition z"), "{why}");
    scene.put("sdb1", &vec![0; usize::try_from(40 * MIB).unwrap()]);
    assert!(scene.found("j").await.unwrap_err().contains("carries nothing"));
}

#[tokio::test]
async fn auxiliary_piece_wipe_is_idempotent_and_spares_neighbours() {
    let scene = Scene::new();
    let neighbour = scene.bytes("sdb2");
    for verdict in [Verdict::WipeOld, Verdict::WipeOurs] {
        scene.put("sdb1", &journal(OLD));
        let taken = scene.taken(&verdict).await.unwrap();
        assert_eq!((taken.len(), scene.bytes("sdb1")), (1, journal(OLD)), "taken is not touched");
        for piece in taken {
            piece.clear().await.unwrap();
        }
        let left = scene.bytes("sdb1");
        assert_eq!(left.len() as u64, 40 * MIB);
        let zeros = |from: u64, to: u64| {
            left[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()].iter().all(|byte| *byte == 0)
        };
        assert!(zeros(0, 16 * MIB) && zeros(36 * MIB, 40 * MIB) && !zeros(16 * MIB, 36 * MIB));
        assert!(scene.taken(&verdict).await.unwrap().is_empty(), "blank is done");
        assert_eq!(scene.bytes("sdb2"), neighbour);
    }
}

#[tokio::test]
async fn foreign_journal_blocks_the_wipe_of_the_old_and_is_spared() {
    let scene = Scene::new();
    let other = journal(OTHER);
    scene.put("sdb1", &other);
    let why = scene.taken(&Verdict::WipeOld).await.unwrap_err();
    assert!(matches!(&why, NodeError::Refused(why) if why.contains(OTHER)), "{why:?}");
    assert!(scene.taken(&Verdict::WipeOurs).await.unwrap().is_empty());
    assert_eq!(scene.bytes("sdb1"), other);
    let held = Scene::new();
    let file = std::fs::File::open(held.root.path().join("sdb1")).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let why = held.taken(&Verdict::WipeOld).await.unwrap_err();
    assert!(why.to_string().contains("in use"), "{why}");
}
