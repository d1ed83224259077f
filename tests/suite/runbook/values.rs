//! Values of the code that have messages, and the codes of their variants.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use osd_migrate::ceph::CephError;
use osd_migrate::domain::classify::{PvcRefusal, Refusal};
use osd_migrate::domain::drift::Finding;
use osd_migrate::domain::gate::{Reason, StoppedBy};
use osd_migrate::domain::inspection::{NodeTask, RecordId};
use osd_migrate::domain::inventory::Rejection;
use osd_migrate::domain::ledger::Unreadable;
use osd_migrate::domain::next::{FenceOutcome, Halt, Summary, Wait};
use osd_migrate::domain::osd::{Epoch, NodeName, OsdId, PgId, Weight};
use osd_migrate::k8s::{Call, Context, K8sError, Server};

use crate::support::build::{BY_HAND, cluster, noon, old};

const OSD: OsdId = OsdId(5);

fn pg() -> PgId {
    "2.7".parse::<PgId>().unwrap()
}

pub(super) fn pvc() -> String {
    text("set1-data-0abc")
}

fn node() -> NodeName {
    NodeName("h1".to_owned())
}

pub(super) fn text(words: &str) -> String {
    words.to_owned()
}

fn unclean() -> String {
    text("active+undersized+degraded")
}

fn still_selected(whole_node: bool) -> Reason {
    let (disk, selected) = (text("/dev/sdb"), text("useAllDevices"));
    Reason::StillSelected { osd: OSD, node: node(), whole_node, disk, selected }
}

fn operator_runs(stopped_by: StoppedBy, ends: bool) -> Reason {
    Reason::OperatorRuns { name: text("rook-ceph/rook-ceph-operator"), stopped_by, ends }
}

pub(crate) fn reasons() -> Vec<Reason> {
    let (pg, node, osd) = (pg(), node(), OSD);
    let (since, state) = (Some(noon()), unclean());
    vec![
        Reason::StatisticsIncomplete { known: 96, expected: 97 },
        Reason::StatisticsOld { pg, reported: Epoch(611), needed: Epoch(614) },
        Reason::NotClean { count: 3, pg, state: state.clone(), down: BTreeSet::from([OsdId(3)]) },
        Reason::Peering { pg, state: text("peering") },
        Reason::Merging { pool: text("rbd") },
        Reason::Down { osd },
        Reason::AgentAtWork { job: text("osd-migrate-inspect-5-55ebe299-7-2") },
        Reason::StopReverted { why: text("WHY"), until: noon() },
        Reason::NotOkToStop { bad_pgs: 4 },
        Reason::NotAsked,
        Reason::NoRedundancy { pool: text("rbd") },
        Reason::CannotBeEmptied { osd, why: text("WHY") },
        Reason::EmptyingUnknown { osd, why: Some(text("WHY")) },
        Reason::EmptyingUnknown { osd, why: None },
        Reason::StillNeeded { osd, pg, state: state.clone() },
        Reason::MarkedIn { osd },
        Reason::NotRemovable { osd, why: text("WHY") },
        still_selected(false),
        still_selected(true),
        Reason::NodeLost { osd, node: node.clone() },
        Reason::DirectoryDeclared { osd, path: text("/var/lib/rook") },
        Reason::RookResetsWeights { cluster: text("CEPHCLUSTER") },
        Reason::NotSafeToDestroy { osd },
        Reason::OtherReplicaMissing { pg, state: state.clone() },
        Reason::Full { code: text("OSD_NEARFULL") },
        Reason::Flag { flag: text("norecover"), on: None },
        Reason::Flag { flag: text("nodown"), on: Some(text("h1")) },
        Reason::TooSmall { usable: 400, needed: 500 },
        Reason::UsageUnknown,
        Reason::Upgrading,
        Reason::ImageChanged { declared: text("ceph:v20"), known: text("ceph:v18") },
        Reason::RookPrepares { job: text("rook-ceph-osd-prepare-h1"), node: Some(node.clone()) },
        Reason::RookPrepares { job: text("rook-ceph-osd-prepare-h1"), node: None },
        Reason::RookMigrates { osd, name: text("rook-ceph/rook-ceph-operator") },
        operator_runs(StoppedBy::Flag, false),
        operator_runs(StoppedBy::PersonAgain, false),
        operator_runs(StoppedBy::Person, false),
        operator_runs(StoppedBy::PersonBeforeEdit, false),
        operator_runs(StoppedBy::Flag, true),
        Reason::OperatorNotFound { checked: noon() },
        Reason::FenceNotAcknowledged { name: text("rook-ceph/rook-ceph-operator") },
        Reason::FencedExternally { value: text("true") },
        Reason::FencedExternally { value: text("osd-migrate-3-a7") },
        Reason::PdbExcludesOsd { osd: OsdId(3) },
        Reason::Draining { domain: text("h1") },
        Reason::PdbRejected { why: text("WHY") },
        Reason::AdmissionRefused { osd, why: text("WHY") },
        Reason::AdmissionUnknown { osd, why: None },
        Reason::AdmissionUnknown { osd, why: Some(text("WHY")) },
        Reason::AmbiguousObjects { what: text("osd.5 has two Deployments: a and b") },
        Reason::KeyRotation { osd },
        Reason::OtherPvc { osd, pvc: text("set1-data-0a") },
        Reason::NodeNotReady { node: node.clone() },
        Reason::NodeCordoned { node: node.clone() },
        Reason::StartedExternally,
        Reason::RolloutInProgress { osd },
        Reason::MonDown,
        Reason::External,
        Reason::RookRemovesOutOsds,
        Reason::NotConfirmed,
        Reason::ChangedSincePlan {
            plan: "0123456789abcdef".parse().unwrap(),
            approved: text("osd.5 on a"),
            now: text("osd.5 on b"),
        },
        Reason::Paused { since },
        Reason::Cancelled { since },
        Reason::OutsideWindow {
            windows: "22:00-05:00".parse().unwrap(),
            opens_at: "2026-09-21T22:00:00Z".parse().ok(),
        },
        Reason::CommitLatency { median: Duration::from_millis(63), limit: Duration::from_millis(50) },
        Reason::CommitLatencyUnknown { osd },
        Reason::FailureLimit { quarantined: BTreeSet::from([OsdId(3), osd]) },
        Reason::NeedsDevice { node: node.clone(), bytes: 40 << 30, selected: text("useAllDevices") },
        Reason::DisksNotInspected { node: node.clone(), why: None },
        Reason::NoDatabaseDevice { node: node.clone(), why: text("WHY") },
        Reason::DisksNotInspected { node, why: Some(text("its agent sends no heartbeat")) },
        Reason::RemappedPgNotClean { pg, state },
        Reason::BackfillIncomplete { osd },
        Reason::Queued { osd },
    ]
}

pub(crate) fn halts() -> Vec<Halt> {
    let (osd, old, node) = (OSD, old(BY_HAND), node());
    let quarantined = vec![(OsdId(3), text("WHY")), (osd, text("WHY"))];
    vec![
        Halt::LedgerLost { place: text("Deployment rook-ceph-osd-5"), record: RecordId(text("55ebe299-7")) },
        Halt::LedgerLost { place: text("the CephCluster"), record: RecordId(text("55ebe299-7")) },
        Halt::UnsafeToWipe {
            osd,
            old,
            key: text("the key on its disk"),
            reason: Reason::OtherReplicaMissing { pg: pg(), state: unclean() },
        },
        Halt::DiskTaken {
            osd,
            old,
            key: text("the key in /data/osd5/keyring on node h1"),
            node,
            disk: text("/dev/disk/by-id/ata-X"),
            found: text("a LUKS header"),
        },
        Halt::MisplacedInUse { osd, misplaced: OsdId(6) },
        Halt::Quarantined { quarantined: quarantined.clone() },
        Halt::CrashLoop { job: text("55ebe299-1c2d-4f6a-9d6e-0c5a1b7e9f00"), starts: 10 },
        Halt::FailureLimit { quarantined },
    ]
}

pub(crate) fn waits() -> Vec<Wait> {
    let (osd, node, reason) = (OSD, node(), Reason::MonDown);
    let job = text("osd-migrate-rebuild-5-55ebe299-7-2");
    let trouble = Some(text("TROUBLE"));
    let emptying = |pgs, elsewhere, first| Wait::Emptying {
        osd,
        pgs,
        bytes: 5 << 30,
        elsewhere,
        flags: [].into(),
        first,
    };
    vec![
        Wait::Gate { osd, reason: reason.clone() },
        Wait::Node { node: node.clone(), reason: reason.clone() },
        Wait::Fence { reason: reason.clone() },
        Wait::Inventory { node: node.clone(), trouble: trouble.clone() },
        Wait::Agent { osd, task: NodeTask::Rebuild, job: job.clone(), trouble: trouble.clone() },
        Wait::AgentSilent { osd, job },
        Wait::AgentBusy { osd, node: node.clone(), why: text("WHY") },
        Wait::AgentNodeLost { osd, node },
        Wait::AgentRests { osd, failures: 2, why: text("WHY"), until: noon() },
        Wait::NotOurStop { osd },
        emptying(12, None, None),
        emptying(12, None, Some((pg(), text("active+recovering")))),
        emptying(0, Some(pg()), None),
        Wait::Down { osd },
        Wait::UnsafeToWipe { osd, reason },
        Wait::RookDeploys { osd, operator: text("rook-ceph/rook-ceph-operator"), minutes: 10 },
        Wait::Up { osd, trouble },
        Wait::MarkedOutExternally { osd, reweight: Weight(0x8000) },
        Wait::ActiveClean {
            osd,
            pgs: 12,
            objects: 3400,
            bytes: 5 << 30,
            states: [].into(),
            flags: [].into(),
        },
        Wait::FreshView,
    ]
}

pub(crate) fn refusals() -> Vec<Refusal> {
    vec![
        Refusal::NotBuiltYet(text("WHAT")),
        Refusal::TooOld(text("VERSION")),
        Refusal::Orphan,
        Refusal::NoMetadata,
        Refusal::NoDeployment,
        Refusal::NoNode(text("h1")),
        Refusal::NoPod(OSD),
        Refusal::NodeUnclear { node: text("h1"), entry: text("stor1") },
        Refusal::NoCrushItem,
        Refusal::ManagedExternally(text("WHAT")),
        Refusal::HostDevice(text("WHAT")),
        Refusal::NoWayBack,
        Refusal::OnPvc(PvcRefusal::NoSet { set: Some(text("set1")), pvc: pvc() }),
        Refusal::OnPvc(PvcRefusal::NoSet { set: None, pvc: pvc() }),
        Refusal::OnPvc(PvcRefusal::SetUnclear { what: text("WHAT") }),
        Refusal::OnPvc(PvcRefusal::PvcNotBound { pvc: pvc(), phase: text("Lost") }),
        Refusal::OnPvc(PvcRefusal::PvcNoBlock { pvc: pvc() }),
        Refusal::OnPvc(PvcRefusal::PvcOnePod { pvc: pvc() }),
        Refusal::OnPvc(PvcRefusal::LvmOnPvc { pvc: pvc() }),
        Refusal::OnPvc(no_database_pvc(Some("0"))),
        Refusal::OnPvc(no_database_pvc(None)),
        Refusal::OnPvc(PvcRefusal::KeyInKms { kms: text("vault"), set: text("set1") }),
        Refusal::OnPvc(PvcRefusal::OldRotation { osd: OSD }),
        Refusal::OnPvc(PvcRefusal::PvcNameTooLong { pvc: pvc(), set: text("set1") }),
    ]
}

fn no_database_pvc(index: Option<&str>) -> PvcRefusal {
    let (set, index, template) = (text("set1"), index.map(text), text("metadata"));
    PvcRefusal::NoDatabasePvc { set, index, template, why: text("WHY") }
}

pub(crate) fn rejections() -> Vec<Rejection> {
    vec![
        Rejection::ReadOnly,
        Rejection::TooSmall { bytes: 4 << 30 },
        Rejection::Partitioned { count: 2 },
        Rejection::Mounted { at: text("/data") },
        Rejection::InUse { by: vec![text("dm-0")] },
        Rejection::ForeignCeph { cluster: Some(cluster()) },
        Rejection::ForeignCeph { cluster: None },
        Rejection::Lvm,
        Rejection::Luks,
        Rejection::Signature { kind: text("ext4") },
        Rejection::Data { what: text("WHERE") },
        Rejection::PersistentVolume { name: text("pv-x"), claim: Some(text("NAMESPACE/NAME")) },
        Rejection::PersistentVolume { name: text("pv-x"), claim: None },
        Rejection::MayBePersistentVolume { name: text("pv-x"), path: text("/mnt/disks/a") },
        Rejection::MayBeAttached { name: text("pv-x"), claim: text("NAMESPACE/NAME") },
        Rejection::NoStableName,
        Rejection::Unreadable { why: text("WHY") },
        Rejection::CephVolume { why: vec![text("WHY")] },
    ]
}

pub(crate) fn findings() -> Vec<Finding> {
    let osd = OSD;
    vec![
        Finding::SlotWithoutOsd { osd },
        Finding::UpInDestroyedSlot { osd },
        Finding::OsdWithoutDeployment { osd },
        Finding::DeploymentWithoutOsd { name: text("rook-ceph-osd-5"), osd },
        Finding::FlagsWithoutRecord { osd, flags: vec!["noout", "noin"], reweight: None },
        Finding::EmptiedWithoutRecord { osd, is_out: true },
        Finding::EmptiedWithoutRecord { osd, is_out: false },
        Finding::FlagsWithoutRecord { osd, flags: vec!["noout", "noin"], reweight: Some(Weight(0x8000)) },
        Finding::FenceWithoutRecord { value: text("osd-migrate-3-a7") },
        Finding::KeyWithoutOsd { osd },
        Finding::DmcryptKeyWithoutOsd { fsid: old(BY_HAND) },
    ]
}

pub(crate) fn unreadable() -> Vec<Unreadable> {
    vec![
        Unreadable::Newer(9),
        Unreadable::Broken { key: text("osd-5"), why: text("WHY") },
        Unreadable::Lost { listed: vec![3, 5], held: vec![3] },
    ]
}

/// Returns summaries with a message of their own, each with the field that causes it.
pub(super) fn summaries() -> Vec<(&'static str, Summary)> {
    let osds = || BTreeSet::from([OsdId(3), OSD]);
    let nodes = || BTreeSet::from(["h1", "h2"].map(|name| NodeName(text(name))));
    let why = || vec![(OSD, text("WHY"))];
    let operator_at_0 = || Some(text("rook-ceph/rook-ceph-operator"));
    let plain = Summary::default;
    vec![
        ("cancelled", Summary { cancelled: true, ..plain() }),
        ("unconfirmed", Summary { unconfirmed: osds(), ..plain() }),
        ("quarantined", Summary { quarantined: why(), ..plain() }),
        ("refused", Summary { refused: why(), ..plain() }),
        ("skipped", Summary { skipped: why(), ..plain() }),
        ("refused", Summary { refused: (0..30).map(|osd| (OsdId(osd), text("WHY"))).collect(), ..plain() }),
        ("skipped", Summary { skipped: (0..30).map(|osd| (OsdId(osd), text("WHY"))).collect(), ..plain() }),
        ("unconfirmed_nodes", Summary { unconfirmed_nodes: nodes(), ..plain() }),
        ("places", Summary { places: vec![text("device set `set1`, index 2: WHY [place-left]")], ..plain() }),
        ("pvcs_left_to_rook", Summary { pvcs_left_to_rook: [pvc()].into(), ..plain() }),
        ("unconfirmed_pvcs", Summary { unconfirmed_pvcs: [pvc()].into(), ..plain() }),
        ("problems", Summary { problems: vec![(text("h1"), text("WHY"))], ..plain() }),
        ("left_to_rook", Summary { left_to_rook: nodes(), ..plain() }),
        ("withheld_from_rook", Summary { withheld_from_rook: osds(), ..plain() }),
        ("fenced_since", Summary { fenced_since: Some(noon()), ..plain() }),
        ("reshaped_by_rook", Summary { reshaped_by_rook: osds(), ..plain() }),
        ("rotations_left", Summary { rotations_left: osds(), ..plain() }),
        ("rotations_left", Summary { rotations_left: (0..30).map(OsdId).collect(), ..plain() }),
        (
            "unmatched",
            Summary {
                unmatched: [text("osd.99 is selected and does not exist. See: ceph osd tree")].into(),
                ..plain()
            },
        ),
        ("half_way", Summary { half_way: osds(), ..plain() }),
        ("operator_at_0", Summary { operator_at_0: operator_at_0(), ..plain() }),
        (
            "left_to_rook_at_0",
            Summary { operator_at_0: operator_at_0(), left_to_rook_at_0: osds(), ..plain() },
        ),
    ]
    .into_iter()
    .chain(fence_outcomes().into_iter().map(|fence| ("fence", Summary { fence: Some(fence), ..plain() })))
    .collect()
}

/// Returns results of `fence`.
pub(crate) fn fence_outcomes() -> Vec<FenceOutcome> {
    let name = || text("rook-ceph/rook-ceph-operator");
    let osds = || BTreeSet::from([OsdId(3), OSD]);
    vec![
        FenceOutcome::InForce { since: noon() },
        FenceOutcome::NotNeeded { operator: Some(name()) },
        FenceOutcome::NotNeeded { operator: None },
        FenceOutcome::NotInForce { reason: Reason::MonDown },
        FenceOutcome::Refused { reason: Reason::MonDown },
        FenceOutcome::ScaledByRun { name: name() },
        FenceOutcome::Removed,
        FenceOutcome::OfRun { value: text("osd-migrate-3-a7") },
        FenceOutcome::InProgress { osds: osds() },
        FenceOutcome::ChangedByRook { osds: osds() },
    ]
}

/// Returns errors that end with a command which other code puts together.
pub(super) fn errors_with_a_command() -> Vec<(String, String)> {
    let call = Call {
        verb: "list",
        resource: text("deployments.apps"),
        name: None,
        namespace: Some(text("rook-ceph")),
    };
    let refused = |user: &str| CephError::NotAllowed {
        user: text(user),
        command: "osd destroy-actual",
        osd: Some(OSD),
        said: text("access denied"),
    };
    let forbidden = K8sError::Forbidden { call: call.clone(), message: text("MESSAGE") };
    let context = Context { name: text("lab"), user: Some(text("jane")), file: None };
    let pod = Server::in_cluster("https://10.96.0.1", "rook-ceph");
    let user_forbidden = K8sError::UserForbidden {
        call,
        message: "MESSAGE".into(),
        server: Arc::new(Server { context: Some(context), ..pod }),
    };
    let users = ["client.osd-migrate", "client.mine"].map(|user| refused(user).to_string());
    let of_ceph = users.map(|said| (text("ceph-not-allowed"), said));
    of_ceph
        .into_iter()
        .chain([forbidden, user_forbidden].map(|error| (text(error.code()), error.to_string())))
        .collect()
}

/// Returns the name of a value's variant.
pub(super) fn name(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// Returns the code of an error's variant, as the derive forms it: `NotAKey` is `ceph-not-a-key`.
pub(crate) fn coded(prefix: &str, variant: &str) -> String {
    variant.chars().fold(text(prefix), |code, c| {
        let dash = if c.is_ascii_uppercase() { "-" } else { "" };
        code + dash + &c.to_ascii_lowercase().to_string()
    })
}
