use std::collections::BTreeMap;

use super::*;
use crate::domain::inspection::{Capability, Directory};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{DeviceIdentity, Kind, OsdId};
use crate::domain::proof::finding::DiskFinding;
use crate::node::disk::tombstone::Tombstone;
use crate::node::samples::{bare_disk, host, request as rebuild};

fn identity() -> DeviceIdentity {
    bare_disk(&["ata-1"], 10 << 30).identity
}

fn label_proof() -> Proof {
    let NodeRequest { old, osd, cluster, .. } = rebuild("n1");
    Proof::BluestoreLabel { osd_fsid: old, whoami: osd, cluster, activatable: true }
}

fn evidence(proof: Proof) -> Evidence {
    Evidence { device: identity(), proof, usable_bytes: 10 << 30, auxiliary: Vec::new() }
}

fn request(after: Option<DiskAfter>) -> NodeRequest {
    NodeRequest { task: NodeTask::Wipe, after, evidence: Some(evidence(label_proof())), ..rebuild("n1") }
}

fn found(examine: DiskFinding) -> FoundDisk {
    FoundDisk { disk: bare_disk(&["ata-1"], 10 << 30), examine, volume: None }
}

fn old() -> DiskFinding {
    let NodeRequest { old, osd, cluster, .. } = rebuild("n1");
    let content = Content::Bluestore {
        osd_fsid: old,
        whoami: Some(osd),
        cluster: Some(cluster),
        finished: true,
        activatable: true,
    };
    DiskFinding { proof: Some(label_proof()), ..DiskFinding::plain(content, Some(old)) }
}

fn asked(slot: Option<&str>) -> CapabilityAnswer {
    let capability = Capability {
        ceph_version: "ceph version 15.2.17".into(),
        raw_osd_id: false,
        stores: [].into(),
        missing_tools: [].into(),
        key_accepted: true,
        key_trouble: None,
        tool_trouble: None,
    };
    let slots: BTreeMap<OsdId, String> = slot.map(|word| (OsdId(1), word.to_owned())).into_iter().collect();
    CapabilityAnswer { capability, slots: Ok(slots) }
}

/// Returns whether a found disk may be wiped, or why not.
fn proved(request: &NodeRequest, examine: DiskFinding, asked: &CapabilityAnswer) -> Result<(), String> {
    let root = tempfile::tempdir().unwrap();
    let (host, steps) = (host(root.path()), Steps::default());
    let (evidence, _) = requested(request).unwrap();
    let order = Order { request, evidence, host: &host, steps: &steps };
    prove_removed(&order, &found(examine), asked).map(drop).map_err(|error| error.to_string())
}

#[test]
fn wipe_is_refused_if_its_request_is_not_for_one() {
    let says =
        |request: &NodeRequest| requested(request).err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(says(&request(Some(DiskAfter::Wipe))), "");
    assert_eq!(says(&request(Some(DiskAfter::Mark))), "");
    assert!(says(&request(Some(DiskAfter::Leave))).contains("keep its content"));
    assert!(says(&request(None)).contains("does not say"));
    let asked = || request(Some(DiskAfter::Wipe));
    assert!(says(&NodeRequest { evidence: None, ..asked() }).contains("no proof"));
    for proof in [
        Proof::Available { tombstone: None },
        Proof::Directory {
            format: Kind::FilestoreDirectory,
            path: "/srv/osd1".into(),
            osd_fsid: asked().old,
            whoami: asked().osd,
            cluster: asked().cluster,
        },
    ] {
        let why = says(&NodeRequest { evidence: Some(evidence(proof)), ..asked() });
        assert!(why.contains("not that of an OSD on a disk"), "{why}");
    }
    let directory = Directory { path: "/srv/osd1".into(), onto: Some(identity()) };
    for elsewhere in [
        NodeRequest { pvcs: Some(PerPvc::of_data("pvc".into())), ..asked() },
        NodeRequest { directory: Some(directory), ..asked() },
        NodeRequest { on_file: true, ..asked() },
    ] {
        assert!(says(&elsewhere).contains("is not supported"));
    }
}

#[tokio::test]
async fn refused_wipe_reports_why_and_inspects_nothing() {
    let root = tempfile::tempdir().unwrap();
    let outcome = wipe(&request(Some(DiskAfter::Leave)), &host(root.path()), &Steps::default()).await;
    assert!(matches!(outcome.error, Some(NodeError::Refused(_))));
    assert_eq!(outcome.inspection, None);
}

#[test]
fn only_the_removed_osd_or_its_tombstone_is_wiped() {
    let destroyed = asked(Some("destroyed"));
    let stone = Tombstone::of(&rebuild("n1"));
    let tombstone = |stone: Tombstone| DiskFinding::plain(stone.into_content(), None);
    for after in [DiskAfter::Wipe, DiskAfter::Mark] {
        let request = request(Some(after));
        assert_eq!(proved(&request, old(), &destroyed), Ok(()), "no `raw prepare --osd-id` is needed");
        assert_eq!(proved(&request, tombstone(stone.clone()), &destroyed), Ok(()));
        let mut other_osd = stone.clone();
        other_osd.osd = OsdId(2);
        let mut other_label = old();
        other_label.proof = None;
        for foreign in [
            tombstone(other_osd),
            other_label,
            DiskFinding::plain(Content::Blank, None),
            DiskFinding::other("a signature of ext4", None),
            DiskFinding::other(Mark::of(&request).described(), None),
        ] {
            let why = proved(&request, foreign.clone(), &destroyed).unwrap_err();
            assert!(why.contains("expected OSD 55ebe299"), "{why}: {foreign:?}");
        }
    }
}

#[test]
fn disk_of_an_osd_that_is_not_destroyed_is_not_wiped() {
    for (slot, found) in [(Some("up"), "up"), (Some("down"), "down"), (None, "absent")] {
        let why = proved(&request(Some(DiskAfter::Wipe)), old(), &asked(slot)).unwrap_err();
        assert_eq!(why, format!("the slot of osd.1: expected destroyed, found {found}"));
    }
}

#[test]
fn finished_wipe_is_recognised_by_a_blank_disk_or_its_mark() {
    let (blank, marked) = (request(Some(DiskAfter::Wipe)), request(Some(DiskAfter::Mark)));
    let finding = |content| DiskFinding::plain(content, None);
    let mark_of = |request: &NodeRequest| Content::Other { what: Mark::of(request).described() };
    assert!(is_wiped(&blank, &finding(Content::Blank)));
    assert!(is_wiped(&marked, &finding(mark_of(&marked))));
    let mut other = marked.clone();
    other.old = "65ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap();
    for (request, content) in [
        (&marked, Content::Blank),
        (&marked, mark_of(&other)),
        (&marked, Content::Other { what: "a gpt partition table with 0 partitions".into() }),
        (&blank, mark_of(&blank)),
        (&blank, Tombstone::of(&blank).into_content()),
        (&rebuild("n1"), Content::Blank),
    ] {
        assert!(!is_wiped(request, &finding(content.clone())), "{content:?}");
    }
    assert!(!is_wiped(&blank, &old()));
}
