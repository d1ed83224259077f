//! The Deployment of another OSD of a device set, from which that of a new OSD is made.
//!
//! A new OSD has no Deployment that was backed up, and the shape of an OSD on PVCs differs from one Rook
//! release to the next. The Deployments of one set in one release are alike.

use crate::domain::act::SourceDeployment;
use crate::domain::classify;
use crate::domain::observation::{Daemon, Observation, OnPvcs};
use crate::domain::osd::{Mode, OsdId};

/// Requirements on the Deployment of a new OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Name of the device set.
    pub set: &'a str,
    /// The OSD is encrypted.
    pub encrypted: bool,
    /// The database is on a PVC of its own.
    pub db: bool,
    /// The log is on a PVC of its own.
    pub wal: bool,
}

/// Returns the Deployment of an OSD of the set that has everything wanted.
///
/// An OSD that is up comes first: its Deployment is known to work. Without such an OSD there is none, unless
/// `may_be_down`: the new OSD exists already.
pub fn source(
    wanted: Wanted<'_>,
    except: Option<OsdId>,
    may_be_down: bool,
    seen: &Observation,
) -> Option<SourceDeployment> {
    let is_up = |osd: OsdId| seen.ceph.slots.get(&osd).is_some_and(|slot| slot.up);
    let fitting = || {
        let all = seen.kube.daemons.iter().filter(|(osd, _)| except != Some(**osd));
        all.filter(|(_, daemon)| fits(wanted, daemon, seen))
    };
    let up = fitting().find(|(osd, _)| is_up(**osd));
    let (osd, daemon) = up.or_else(|| fitting().next().filter(|_| may_be_down))?;
    Some(SourceDeployment { osd: *osd, deployment: daemon.uid.clone() })
}

fn fits(wanted: Wanted<'_>, daemon: &Daemon, seen: &Observation) -> bool {
    let has_shape = |on: &OnPvcs| {
        on.data.is_some()
            && (on.db.is_some(), on.wal.is_some()) == (wanted.db, wanted.wal)
            && classify::set_of(on, seen).is_some_and(|set| set.name == wanted.set)
    };
    daemon.on_pvcs.as_ref().is_some_and(has_shape)
        && daemon.opens_encryption == wanted.encrypted
        && daemon.mode == Some(Mode::Raw)
        && daemon.fsid.is_some()
        && daemon.stopped_by.is_none()
        // An order of a person or of Rook for that OSD does not apply to the new one.
        && daemon.managed_externally.is_none()
}
