//! client.bootstrap-osd, with which node agents make OSDs. Rook from 1.19 on deletes it after each reconcile, older ones keep it. It
//! is made where it is missing, which is recorded before, and removed at the end where it was (P9).

use crate::domain::act::{Act, CephAct};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::Ledger;
use crate::domain::next::{Halt, Next, Saving, Wait};
use crate::domain::observation::{JobState, Observation};
use crate::domain::osd::OsdId;

/// Whether Ceph must be asked if it is there.
pub fn is_asked_for(ledger: &Ledger) -> bool {
    passes(Guard::BootstrapOurs, ledger.run.bootstrap) || ledger.in_flight().next().is_some()
}

/// The agent, once its key is there: recorded as ours, then made, one a turn. Not asked is not missing.
pub(super) fn keyed(agent: Act, osd: OsdId, ledger: &Ledger, seen: &Observation) -> Next {
    match seen.ceph.bootstrap {
        Some(true) => Next::Do(agent),
        None => Next::Wait(Wait::FreshView),
        Some(false) if passes(Guard::BootstrapSavedFirst, ledger.run.bootstrap) => {
            Next::Do(Act::Ceph(CephAct::Bootstrap { there: true }))
        }
        Some(false) => save(Some(osd), true, ledger),
    }
}

/// At the end of a run ours is removed, then forgotten; also by a run that finds nothing to do. Not while an agent may need it, or
/// one of Rook's: then the next run does it. A ledger that was lost says nothing of it.
pub fn put_away(last: Next, ledger: &Ledger, seen: &Observation) -> Next {
    let is_end = match &last {
        Next::Finished(_) => true,
        Next::Halt(halt) => !matches!(halt, Halt::LedgerLost { .. }),
        Next::Save { .. } | Next::Do(_) | Next::Wait(_) => false,
    };
    let kube = &seen.kube;
    let in_use = ledger.in_flight().next().is_some()
        || kube.node_jobs.iter().any(|job| job.state != JobState::Ended)
        || !kube.rook_prepares.is_empty();
    let is_ours = passes(Guard::BootstrapOurs, ledger.run.bootstrap);
    match seen.ceph.bootstrap.filter(|_| is_end && is_ours && !in_use) {
        Some(true) => Next::Do(Act::Ceph(CephAct::Bootstrap { there: false })),
        Some(false) => save(None, false, ledger),
        None => last,
    }
}

fn save(osd: Option<OsdId>, ours: bool, ledger: &Ledger) -> Next {
    let mut ledger = ledger.clone();
    ledger.run.bootstrap = ours;
    Next::Save { ledger, osd, why: Saving::Bootstrap { ours } }
}
