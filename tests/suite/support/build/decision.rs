//! What the program decided: the codes of saves, quarantines, and the end of a run.

use osd_migrate::domain::next::{Next, Saving, Summary};

use super::ids::OPERATOR;

/// Last line of a run that leaves nothing to do.
pub(crate) const FINISHED: &str = "finished: nothing is left to do; Rook's operator rook-ceph/rook-ceph-operator is scaled to 0, \
     which osd-migrate no longer needs. Scale it up: kubectl -n rook-ceph scale deployment rook-ceph-operator \
     --replicas=1 [finished]";

/// Returns the summary of a run that leaves nothing to do.
pub(crate) fn nothing_left() -> Summary {
    Summary { operator_at_0: Some(OPERATOR.to_owned()), ..Summary::default() }
}

/// Returns the code of a save, if the step is one.
pub(crate) fn word(next: &Next) -> Option<&'static str> {
    match next {
        Next::Save { why, .. } => Some(why.code()),
        _ => None,
    }
}

/// Returns why an OSD is quarantined, if it is.
pub(crate) fn quarantine(next: &Next) -> Option<&str> {
    match next {
        Next::Save { why: Saving::Quarantine { why }, .. } => Some(why),
        _ => None,
    }
}
