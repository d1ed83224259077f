//! Gates of the removal of an OSD.

use super::answer::{Gate, first_not_open, shut_if};
use super::data::{fresh, pgs_of};
use super::emptied::{emptiable, safe_to_destroy};
use super::mark_out::HOLDS_DATA;
use super::missing::none_missing;
use super::node::node_ready;
use super::stop::{around_any_stop, data_before_stop, ok_to_stop};
use super::surroundings::{flag_in_the_way, flags_of, not_ambiguous, surroundings};
use super::{Reason, rook};
use crate::domain::ledger::Run;
use crate::domain::observation::Observation;
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::policy::Accepted;
use crate::domain::removal::{DiskAfter, RemovalRequest};
use crate::domain::view::View;
use std::collections::BTreeSet;

/// Returns the gate that is open if an OSD of this kind can be removed, or replaced under its id.
pub fn removable(osd: OsdId, keep_id: bool, seen: &Observation) -> Gate {
    let is_up = seen.ceph.slots.get(&osd).is_some_and(|slot| slot.up);
    let why = match seen.kube.daemons.get(&osd) {
        None => format!(
            "it has no Deployment. Once it is down and out and Ceph needs no data of it (ceph osd safe-to-destroy {osd}), \
             remove it by hand: ceph osd purge {osd} --yes-i-really-mean-it"
        ),
        Some(daemon) if daemon.on_pvcs.is_some() => {
            "it is on a PersistentVolumeClaim, and Rook would create it again. Lower the count of its device set, and \
             remove it with Rook's own Job (rook ceph osd remove)"
                .to_owned()
        }
        Some(_) if keep_id && is_up => {
            "it is up, and only an OSD that is dead is replaced under its id. Stop it, or migrate it in place".to_owned()
        }
        Some(daemon) => match &daemon.managed_externally {
            None => return Gate::Open,
            Some(what) => format!(
                "it has the {what}: Rook replaces it, or a person keeps it as it is. Remove that from its Deployment {} \
                 first",
                daemon.name
            ),
        },
    };
    Gate::Shut(Reason::NotRemovable { osd, why })
}

/// Returns the gate that is open if the removal of an OSD of this kind can be recorded, too.
///
/// The record stores the location in CRUSH, which is restored if the OSD is kept.
pub fn can_begin(osd: OsdId, keep_id: bool, seen: &Observation) -> Gate {
    let is_unplaced = seen.ceph.slots.get(&osd).is_some_and(|slot| slot.crush.is_none());
    let node = seen.kube.daemons.get(&osd).and_then(|daemon| daemon.node.as_ref());
    let host = node.map_or_else(|| "HOST".to_owned(), |node| node.0.replace('.', "-"));
    let unplaced = || Reason::NotRemovable {
        osd,
        why: format!(
            "it has no location in CRUSH. Give it one, without weight, so that no data moves: ceph osd crush add {osd} 0 \
             host={host}"
        ),
    };
    first_not_open([removable(osd, keep_id, seen), shut_if(is_unplaced, unplaced)])
}

/// Returns the OSD, and the OSDs that leave with it because their node is removed as a whole.
///
/// Their data moves at the same time, so the forecast is about all of them.
pub fn removed_together(osd: OsdId, view: View<'_>) -> BTreeSet<OsdId> {
    let requests = &view.seen.kube.requests.removals;
    let node = requests.get(&osd).and_then(|request| request.node.as_ref());
    let of_node = requests.iter().filter(|(_, request)| node.is_some() && request.node.as_ref() == node);
    let stands = |osd: OsdId, request: &RemovalRequest| {
        let slot = view.slot(osd).filter(|slot| slot.fsid == Some(request.fsid));
        slot.is_some()
            && view.selects_to_remove(osd)
            && view.ledger.refused(osd, &view.policy.run).is_none()
            && can_begin(osd, request.keep_id, view.seen) == Gate::Open
    };
    let others = of_node.filter(|(other, request)| stands(**other, request)).map(|(other, _)| *other);
    others.chain([osd]).collect()
}

/// Returns the gate that is open if this can become of what the OSD is on: a directory gets no mark, and it
/// is removed only if no Rook would fill it again.
pub fn fits_place(osd: OsdId, disk: DiskAfter, seen: &Observation) -> Gate {
    let Some(path) = seen.kube.daemons.get(&osd).and_then(|daemon| daemon.data_dir.as_ref()) else {
        return Gate::Open;
    };
    if disk == DiskAfter::Mark {
        let why = "it is in a directory, and only a disk gets a mark. Use --disk wipe (the directory is deleted), or \
                   --disk leave";
        return Gate::Shut(Reason::NotRemovable { osd, why: why.to_owned() });
    }
    // Rook up to 1.2 creates an OSD `osd<id>` in each declared directory
    // (pkg/daemon/ceph/osd/daemon.go, `getDataDirs`, v1.2.7).
    let parent = path.rsplit_once('/').map(|(parent, _)| parent);
    let declared = &seen.kube.declaration.storage.directories;
    let selected = declared.iter().find(|declared| *declared == path || Some(declared.as_str()) == parent);
    selected
        .map_or(Gate::Open, |selected| Gate::Shut(Reason::DirectoryDeclared { osd, path: selected.clone() }))
        .guarded()
}

/// Returns the gate before the removal of any OSD, except for the PGs.
pub fn before_any_removal(run: &Run, seen: &Observation) -> Gate {
    first_not_open([
        weights_not_reset(run, seen),
        around_any_stop(run, seen),
        flag_in_the_way(&HOLDS_DATA, seen),
    ])
}

/// Returns the gate before the CRUSH weight of an OSD is set to 0, so that it is emptied.
///
/// Neither the state of its node nor `ok-to-stop` is asked: an OSD that serves while it is emptied endangers
/// nothing, and the nodes of OSDs that are removed are often cordoned.
pub fn before_drop_weight(
    osd: OsdId,
    node: &NodeName,
    run: &Run,
    accepted: &Accepted,
    seen: &Observation,
) -> Gate {
    first_not_open([
        before_any_removal(run, seen),
        not_ambiguous(osd, seen),
        rook::prepares_none_on(Some(node), seen),
        data_before_stop(osd, &pgs_of(osd, seen), accepted, seen),
        emptiable(osd, seen),
    ])
}

/// Returns the gate before the stop of an OSD that is removed, and empty.
pub fn before_last_stop(
    osd: OsdId,
    node: &NodeName,
    run: &Run,
    accepted: &Accepted,
    seen: &Observation,
) -> Gate {
    let is_up = seen.ceph.slots.get(&osd).is_some_and(|slot| slot.up);
    first_not_open([
        around_any_stop(run, seen),
        not_ambiguous(osd, seen),
        if is_up { flags_of(osd, seen) } else { Gate::Open },
        rook::prepares_none_on(Some(node), seen),
        data_before_stop(osd, &pgs_of(osd, seen), accepted, seen),
        ok_to_stop(osd, seen),
        safe_to_destroy(osd, seen),
    ])
}

/// Returns the gate before the disk of a destroyed OSD is wiped: no PG lacks a replica.
///
/// No PG needs the disk. But as long as a replica is missing anywhere, no data is given up.
pub fn before_last_wipe(osd: OsdId, node: &NodeName, run: &Run, seen: &Observation) -> Gate {
    first_not_open([
        none_missing(osd, &seen.ceph),
        fresh(|_| true, &seen.ceph),
        surroundings(run, seen),
        rook::prepares_none_on(Some(node), seen),
        node_ready(node, seen),
    ])
}

/// Returns the gate that is shut if a running Rook would reset a CRUSH weight of 0, or has done so.
pub fn weights_not_reset(run: &Run, seen: &Observation) -> Gate {
    let resets = seen.kube.declaration.resets_weights && rook::is_away(run, seen) != Gate::Open;
    shut_if(resets, || Reason::RookResetsWeights { cluster: seen.kube.declaration.name.clone() })
}
