//! client.bootstrap-osd, the key with which node agents create OSDs.
//!
//! Rook from 1.19 on deletes the key after each reconcile, older versions keep it. If it is missing,
//! osd-migrate records that and creates it, and removes it at the end (P9).

use crate::domain::act::{Act, CephAct};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::Ledger;
use crate::domain::next::{Halt, Next, Saving, Wait};
use crate::domain::observation::JobState;
use crate::domain::osd::OsdId;
use crate::domain::view::View;

/// Returns whether to ask Ceph if the key exists.
pub(crate) fn is_asked_for(ledger: &Ledger) -> bool {
    passes(Guard::BootstrapOurs, ledger.run.bootstrap) || ledger.in_flight().next().is_some()
}

/// Returns the next step until the key exists; `None` once it does.
///
/// A missing key is first recorded as osd-migrate's and then created, one step an iteration.
///
/// A key that was not asked for does not count as missing.
pub(crate) fn change(osd: OsdId, view: View<'_>) -> Option<Next> {
    match view.seen.ceph.bootstrap {
        Some(true) => None,
        None => Some(Next::Wait(Wait::FreshView)),
        Some(false) if passes(Guard::BootstrapSavedFirst, view.ledger.run.bootstrap) => {
            Some(Next::Do(Act::Ceph(CephAct::Bootstrap { there: true })))
        }
        Some(false) => Some(save(Some(osd), true, view.ledger)),
    }
}

/// Removes the key at the end of a run.
///
/// A run that finds nothing to do removes it too.
///
/// The key stays while an agent or a prepare Job of Rook may need it. The next run removes it then. Before an
/// uninstall, which no run follows, only the pod of an agent that was given up is left: it does not count.
/// After a lost ledger nothing is known of the key.
pub(crate) fn at_the_end(last: Next, view: View<'_>) -> Next {
    let is_end = match &last {
        Next::Finished(_) => true,
        Next::Halt(halt) => !matches!(halt, Halt::LedgerLost { .. }),
        Next::Save { .. } | Next::Do(_) | Next::Wait(_) => false,
    };
    let kube = &view.seen.kube;
    let in_use = view.ledger.in_flight().next().is_some()
        || (!view.policy.leaves && kube.node_jobs.iter().any(|job| job.state != JobState::Ended))
        || !kube.rook_prepares.is_empty();
    let restored = || restore(view).filter(|_| is_end && !in_use);
    restored().unwrap_or(last)
}

/// Returns the next step until the key that osd-migrate created is removed and its entry cleared; `None` if
/// that is done, or nothing is known of the key.
pub(crate) fn restore(view: View<'_>) -> Option<Next> {
    let is_ours = passes(Guard::BootstrapOurs, view.ledger.run.bootstrap);
    let exists = view.seen.ceph.bootstrap.filter(|_| is_ours)?;
    let remove = || Next::Do(Act::Ceph(CephAct::Bootstrap { there: false }));
    Some(if exists { remove() } else { save(None, false, view.ledger) })
}

/// Returns whether the key exists that osd-migrate created.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    view.ledger.run.bootstrap && view.seen.ceph.bootstrap == Some(true)
}

fn save(osd: Option<OsdId>, ours: bool, ledger: &Ledger) -> Next {
    let mut ledger = ledger.clone();
    ledger.run.bootstrap = ours;
    Next::Save { ledger, osd, why: Saving::Bootstrap { ours } }
}
