//! Tests on files in place of devices: every row of the table in `node::pvc` that needs no kernel.

use std::path::PathBuf;

use super::*;
use crate::node::host::Host;
use crate::node::pvc::samples::{DB, OLD_HEADER, SIZE, db_on, evidence, header, new, put, with_db};
use crate::node::samples;
use crate::node::volumes::luks::header_uuid;

/// A database with the old OSD's LUKS header, full of `x` otherwise.
struct Scene {
    root: tempfile::TempDir,
    request: NodeRequest,
    evidence: Evidence,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut request = with_db(true);
        let db = db_on(&root.path().join("db"));
        let scene =
            Self { evidence: evidence(&request, &db, Some(OLD_HEADER)), request: request.clone(), root };
        request.evidence = Some(scene.evidence.clone());
        let scene = Self { request, ..scene };
        scene.fill(&header(OLD_HEADER));
        scene
    }

    fn path(&self) -> PathBuf {
        self.root.path().join("db")
    }

    fn host(&self) -> Host {
        samples::host(self.root.path())
    }

    fn fill(&self, head: &[u8]) {
        put(&self.path(), 0, &vec![b'x'; usize::try_from(SIZE).unwrap()]);
        put(&self.path(), 0, head);
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    async fn hold(&self, verdict: &Verdict) -> Result<HeldPart<'static>, NodeError> {
        let parts = vec![db_on(&self.path())];
        let held = hold(&self.host(), &self.request, &self.evidence, verdict, parts).await?;
        Ok(held.into_iter().next().unwrap())
    }

    /// Returns the answer of the next attempt, which finds only the tombstone on the data.
    async fn next(&self) -> Result<bool, NodeError> {
        self.hold(&Verdict::WipeOurs).await.map(|held| held.is_to_be_cleared)
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[tokio::test]
async fn database_is_recognised_after_each_write_of_a_killed_agent() {
    let scene = Scene::new();
    let before = scene.bytes();
    assert!(scene.hold(&Verdict::WipeOld).await.unwrap().is_to_be_cleared, "nothing was written yet");
    assert!(scene.next().await.unwrap(), "the data has its tombstone");
    assert!(scene.bytes() == before, "a part that is held is not written");
    let held = scene.hold(&Verdict::WipeOurs).await.unwrap();
    held.exclusive.write_tombstone(&Tombstone::of(&scene.request)).await.unwrap();
    drop(held);
    assert!(scene.next().await.unwrap(), "the part has its tombstone, and everything of the old OSD");
    let held = scene.hold(&Verdict::WipeOurs).await.unwrap();
    held.wipe(&scene.host(), &scene.request).await.unwrap();
    let bytes = scene.bytes();
    assert_eq!(Tombstone::from_head(&bytes), Some(Tombstone::of(&scene.request)));
    let end = bytes.len() - (4 << 20);
    assert!(is_zero(&bytes[512..16 << 20]) && is_zero(&bytes[end..]) && bytes[end - 1] == b'x');
    drop(held);
    assert!(scene.next().await.unwrap(), "the part is cleared");
    put(&scene.path(), 512, &[b'h'; 4096]);
    assert!(
        scene.next().await.unwrap(),
        "the header of the record is written in part, its first sector last"
    );
    let held = scene.hold(&Verdict::WipeOurs).await.unwrap();
    let ours = header(&header_uuid(&scene.request.record, Role::Db));
    held.exclusive.write_header([ours, vec![b'h'; 4096]].concat()).await.unwrap();
    drop(held);
    assert!(scene.next().await.unwrap(), "the header of the record is whole");
}

#[tokio::test]
async fn blank_database_gets_a_tombstone_and_nothing_else() {
    let scene = Scene::new();
    put(&scene.path(), 0, &vec![0; usize::try_from(SIZE).unwrap()]);
    put(&scene.path(), SIZE / 2, b"x");
    for verdict in [Verdict::WipeOld, Verdict::WipeOurs] {
        let held = scene.hold(&verdict).await.unwrap();
        assert!(!held.is_to_be_cleared);
    }
    let held = scene.hold(&Verdict::WipeOurs).await.unwrap();
    held.wipe(&scene.host(), &scene.request).await.unwrap();
    let bytes = scene.bytes();
    assert!(Tombstone::from_head(&bytes).is_some() && is_zero(&bytes[512..1 << 20]));
    assert_eq!(bytes[usize::try_from(SIZE / 2).unwrap()], b'x');
    drop(held);
    assert!(scene.next().await.unwrap());
}

#[tokio::test]
async fn foreign_database_stops_the_rebuild_and_is_spared() {
    let scene = Scene::new();
    let foreign = NodeRequest { old: new(), ..scene.request.clone() };
    for head in [
        header("00000000-0000-4000-8000-000000000000"),
        vec![b'x'; 512],
        Tombstone::of(&foreign).to_sector().unwrap().to_vec(),
    ] {
        scene.fill(&head);
        let before = scene.bytes();
        for verdict in [Verdict::WipeOld, Verdict::WipeOurs] {
            let why = scene.hold(&verdict).await.unwrap_err();
            let said = format!("PVC {DB} for its block.db: expected the old OSD or a blank device, found ");
            assert!(matches!(&why, NodeError::Refused(why) if why.starts_with(&said)), "{why}");
        }
        assert!(scene.bytes() == before);
    }
    // While the old OSD is whole, nothing of a new one can be there.
    scene.fill(&Tombstone::of(&scene.request).to_sector().unwrap());
    assert!(scene.hold(&Verdict::WipeOld).await.is_err());
}

#[tokio::test]
async fn database_on_another_device_than_recorded_is_refused() {
    let mut scene = Scene::new();
    let mut other = db_on(&scene.path());
    other.disk.identity.size_bytes += 512;
    scene.evidence = evidence(&scene.request, &other, Some(OLD_HEADER));
    let why = scene.hold(&Verdict::WipeOld).await.unwrap_err();
    assert!(matches!(&why, NodeError::Refused(why) if why.starts_with("expected the device")), "{why}");
}

#[tokio::test]
async fn database_on_a_volume_with_other_names_is_cleared() {
    let mut scene = Scene::new();
    scene.fill(&header(OLD_HEADER));
    let mut before = db_on(&scene.path());
    before.disk.identity.by_id = ["scsi-elsewhere".to_owned()].into();
    before.disk.identity.by_path = ["pci-elsewhere".to_owned()].into();
    before.disk.identity.serial = Some("only-known-elsewhere".to_owned());
    scene.evidence = evidence(&scene.request, &before, Some(OLD_HEADER));
    assert!(scene.hold(&Verdict::WipeOld).await.unwrap().is_to_be_cleared);
}

#[test]
fn recorded_part_that_is_not_requested_is_refused() {
    let scene = Scene::new();
    assert_eq!(all_are_requested(&scene.request, &scene.evidence), Ok(()));
    let mut request = scene.request.clone();
    for db in [None, Some("set1-metadata-1y".to_owned())] {
        request.pvcs.as_mut().unwrap().db = db;
        let why = all_are_requested(&request, &scene.evidence).unwrap_err();
        assert_eq!(why, format!("its block.db is on PVC {DB}, which the agent's pod does not have"));
    }
    request.pvcs = None;
    assert!(all_are_requested(&request, &scene.evidence).is_err());
}
