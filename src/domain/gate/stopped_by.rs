//! Who can stop Rook's operator.

/// Way in which Rook's operator can be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoppedBy {
    /// By the run, with `--scale-operator`, or by a person.
    Flag,
    /// By a person: `--scale-operator` is for OSDs that are migrated or removed.
    Person,
    /// By a person: the run has scaled it to 0, and another client has scaled it up again.
    PersonAgain,
    /// By a person, before an edit of the CephCluster: this Rook supports no fence.
    PersonBeforeEdit,
}
