//! List of the temporary changes.

use super::{bootstrap, drains, fence, flags, marked_out, operator, recovery, scrub};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::next::Next;
use crate::domain::view::View;

/// Change of the cluster that lasts as long as a migration needs it.
pub struct Temporary {
    /// Name of the change, as its file is called.
    pub name: &'static str,
    /// The changed object, as people know it.
    pub what: &'static str,
    /// Returns whether the former value is saved, which is so from before the change until after its restore.
    pub is_saved: fn(&Ledger) -> bool,
    /// Returns whether the cluster is changed by osd-migrate, also by a frozen runner after the restore.
    pub is_changed: fn(View<'_>) -> bool,
    /// Returns the next step to restore the former value; `None` if that is done.
    pub restore: fn(View<'_>) -> Option<Next>,
}

/// All temporary changes.
pub const ALL: [Temporary; 8] = [
    Temporary {
        name: "fence",
        what: "label of the CephCluster",
        is_saved: |ledger| ledger.run.fence.is_some(),
        is_changed: fence::is_changed,
        restore: fence::restore,
    },
    Temporary {
        name: "operator",
        what: "Rook's operator at 0",
        is_saved: |ledger| ledger.run.operator.is_some(),
        is_changed: operator::is_changed,
        restore: operator::restore,
    },
    Temporary {
        name: "drains",
        what: "PodDisruptionBudget",
        is_saved: |ledger| ledger.run.pdb.is_some(),
        is_changed: drains::is_changed,
        restore: drains::restore,
    },
    Temporary {
        name: "bootstrap",
        what: "user client.bootstrap-osd of Ceph",
        is_saved: |ledger| ledger.run.bootstrap,
        is_changed: bootstrap::is_changed,
        restore: bootstrap::restore,
    },
    Temporary {
        name: "scrub",
        what: "flags noscrub and nodeep-scrub",
        is_saved: |ledger| ledger.run.scrub.is_some(),
        is_changed: scrub::is_changed,
        restore: scrub::restore,
    },
    Temporary {
        name: "recovery",
        what: "options about recovery",
        is_saved: |ledger| ledger.run.recovery.is_some(),
        is_changed: recovery::is_changed,
        restore: recovery::restore,
    },
    Temporary {
        name: "flags",
        what: "flags noout and noin of OSDs",
        is_saved: |ledger| ledger.records.values().any(|record| record.stop_intended_at.is_some()),
        is_changed: flags::is_changed,
        restore: flags::restore,
    },
    Temporary {
        name: "marked_out",
        what: "OSDs marked out",
        is_saved: |ledger| ledger.records.values().any(Record::is_marked_out),
        is_changed: marked_out::is_changed,
        restore: marked_out::restore,
    },
];
