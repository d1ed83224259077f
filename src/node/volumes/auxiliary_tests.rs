use super::*;
use crate::domain::inspection::{Piece, Proof};
use crate::domain::osd::{DbDevice, OsdId};
use crate::domain::removal::DiskAfter;
use crate::node::samples::{bare_disk, request};
use crate::node::volumes::lvm::{CephTags, Group};

/// Returns a request to recreate the OSD on volumes.
fn on_volumes() -> NodeRequest {
    let mut request = request("n1");
    request.target.mode = Mode::Lvm;
    request
}

/// Returns the database of the request's OSD, with all its tags.
fn db(request: &NodeRequest) -> Lv {
    Lv {
        group: "metadata".into(),
        group_uuid: "G".into(),
        name: "db-1".into(),
        uuid: "D".into(),
        origin: None,
        layout: "linear".into(),
        size_bytes: 1 << 30,
        tags: Vec::new(),
        cluster: Some(request.cluster),
        ceph: CephTags {
            kind: Some("db".into()),
            osd_fsid: Some(request.old),
            whoami: Some(request.osd),
            ..CephTags::default()
        },
    }
}

fn segment(physical: &str, device: &str, volume: Option<&str>) -> Segment {
    Segment {
        device: device.into(),
        physical: physical.into(),
        group: Group { name: "metadata".into(), tags: Vec::new() },
        group_uuid: "G".into(),
        volume: volume.map(str::to_owned),
    }
}

/// Returns a group on two disks, with the database on the second one.
fn segments() -> [Segment; 3] {
    let second = |volume| segment("P2", "/dev/nvme1n1", volume);
    [segment("P1", "/dev/nvme0n1", None), second(Some("D")), second(None)]
}

fn located(lv: &Lv, segments: &[Segment], request: &NodeRequest) -> Result<PieceLocation, String> {
    location(lv, Role::Db, (std::slice::from_ref(lv), segments), request)
}

fn evidence(place: PieceLocation, request: &NodeRequest) -> Evidence {
    let (osd_fsid, whoami, cluster) = (request.old, request.osd, request.cluster);
    Evidence {
        device: bare_disk(&["ata-1"], 1).identity,
        proof: Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: true },
        usable_bytes: 1,
        auxiliary: vec![Piece { role: Role::Db, place }],
    }
}

#[test]
fn db_volume_is_created_again_on_the_pv_that_it_was_on() {
    let request = on_volumes();
    let place = located(&db(&request), &segments(), &request).unwrap();
    let evidence = evidence(place, &request);
    let again = Again::of(&evidence, Role::Db).unwrap();
    assert!(Again::of(&evidence, Role::Wal).is_none());
    assert_eq!(again.place(&segments()), Ok(("metadata".to_owned(), Some("/dev/nvme1n1".into()))));
    // The device of the physical volume has another name after a reboot, and the group was renamed.
    let mut renamed = segments();
    for segment in &mut renamed {
        segment.group.name = "databases".into();
        segment.device = if segment.physical == "P2" { "/dev/nvme0n1" } else { "/dev/nvme1n1" }.into();
    }
    assert_eq!(again.place(&renamed), Ok(("databases".to_owned(), Some("/dev/nvme0n1".into()))));
}

#[test]
fn db_volume_recorded_without_its_pv_is_created_in_its_group() {
    let request = on_volumes();
    let text = r#"{"volume":{"name":"metadata/db-1","uuid":"D","group":"G","size_bytes":1}}"#;
    let recorded = evidence(serde_json::from_str(text).unwrap(), &request);
    let again = Again::of(&recorded, Role::Db).unwrap();
    assert_eq!(again.place(&segments()), Ok(("metadata".to_owned(), None)));
    assert_eq!(again.expect_place(&segments()), Ok(()));
    assert!(again.place(&[]).unwrap_err().contains("volume group G for the block.db no longer exists"));
}

#[test]
fn db_volume_that_is_not_linear_on_one_pv_is_refused() {
    let request = on_volumes();
    let linear = db(&request);
    let spread = [segment("P1", "/dev/nvme0n1", Some("D")), segment("P2", "/dev/nvme1n1", Some("D"))];
    let why = located(&linear, &spread, &request).unwrap_err();
    assert!(why.contains("metadata/db-1 (on 2 physical volumes) cannot be created again"), "{why}");
    assert!(why.contains("--skip osd.1"), "{why}");
    // An earlier version destroyed such an OSD: its rebuild goes on.
    let asked = NodeRequest {
        evidence: Some(evidence(located(&linear, &segments(), &request).unwrap(), &request)),
        ..request.clone()
    };
    assert!(matches!(located(&linear, &spread, &asked), Ok(PieceLocation::Volume { physical: None, .. })));
    // The segments of such volumes belong to hidden volumes.
    for layout in ["thin,sparse", "raid,raid1", "cache"] {
        let other = Lv { layout: layout.into(), ..linear.clone() };
        let hidden = [segment("P1", "/dev/nvme0n1", Some("hidden"))];
        let why = located(&other, &hidden, &request).unwrap_err();
        assert!(why.contains(&format!("({layout}) cannot be created again")), "{why}");
        // Only its removal is needed: the database of a raw OSD is with its data.
        let mut raw = request.clone();
        raw.target.mode = Mode::Raw;
        let removed = NodeRequest { after: Some(DiskAfter::Wipe), ..request.clone() };
        let identity = bare_disk(&["nvme-2"], 1).identity;
        let elsewhere = NodeRequest { db: Some(DbDevice { identity, size_mib: None }), ..request.clone() };
        for request in [raw, removed, elsewhere] {
            let place = located(&other, &hidden, &request);
            assert!(matches!(place, Ok(PieceLocation::Volume { physical: None, .. })), "{place:?}");
        }
    }
}

#[test]
fn db_volume_without_a_tag_of_its_osd_is_refused() {
    let request = on_volumes();
    let complete = db(&request);
    assert!(is_of_old(&complete, &request) && expect_tags(&complete, Role::Db, &request).is_ok());
    let without = |change: fn(&mut Lv)| {
        let mut lv = complete.clone();
        change(&mut lv);
        located(&lv, &segments(), &request).unwrap_err()
    };
    for (why, tag) in [
        (without(|lv| lv.ceph.osd_fsid = None), format!("ceph.osd_fsid={}", request.old)),
        (without(|lv| lv.ceph.whoami = None), "ceph.osd_id=1".to_owned()),
        (without(|lv| lv.ceph.whoami = Some(OsdId(2))), "ceph.osd_id=1".to_owned()),
        (without(|lv| lv.cluster = None), format!("ceph.cluster_fsid={}", request.cluster)),
    ] {
        assert!(why.contains(&format!("block.db metadata/db-1 does not have the tag {tag}. ")), "{why}");
        assert!(why.ends_with(&format!("lvchange --addtag {tag} metadata/db-1")), "{why}");
    }
}

#[test]
fn db_volume_with_a_snapshot_is_refused() {
    let request = on_volumes();
    let lv = db(&request);
    let snapshot = Lv { name: "before".into(), uuid: "S".into(), origin: Some("D".into()), ..lv.clone() };
    let why = location(&lv, Role::Db, (&[lv.clone(), snapshot], &segments()), &request).unwrap_err();
    assert!(why.contains("metadata/db-1 has the snapshot metadata/before"), "{why}");
}

#[test]
fn moved_db_volume_or_missing_pv_stops_the_rebuild() {
    let request = on_volumes();
    let place = located(&db(&request), &segments(), &request).unwrap();
    let evidence = evidence(place, &request);
    let again = Again::of(&evidence, Role::Db).unwrap();
    assert_eq!(again.expect_place(&segments()), Ok(()));
    let removed = [segment("P1", "/dev/nvme0n1", None), segment("P2", "/dev/nvme1n1", None)];
    assert_eq!(again.expect_place(&removed), Ok(()), "an interrupted rebuild has removed the volume");
    let moved = [segment("P1", "/dev/nvme0n1", Some("D")), segment("P2", "/dev/nvme1n1", None)];
    assert!(again.expect_place(&moved).unwrap_err().contains("was moved to another physical volume"));
    let reduced = [segment("P1", "/dev/nvme0n1", Some("D"))];
    let missing = [segment("P1", "/dev/nvme0n1", None), segment("P2", "[unknown]", Some("D"))];
    for segments in [&reduced[..], &missing[..]] {
        assert!(
            again.expect_place(segments).unwrap_err().contains("P2 for the block.db is missing in volume")
        );
    }
}
