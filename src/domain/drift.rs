//! Inconsistencies that no open record explains: slots without an OSD, OSDs without a Deployment, keys
//! without either.
//!
//! An observation finds them. A run fixes those that it may fix (`provision`), and reports the others to a
//! person. Only objects that are provably osd-migrate's are removed.

use std::collections::BTreeSet;
use std::fmt;

use super::commands::scale_osd;
use super::ledger::{FENCE, Ledger};
use super::observation::{Observation, Slot, SlotState};
use super::osd::{OsdFsid, OsdId, Weight};

/// Names of the keys that Ceph stores, never the keys themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keys {
    /// Ids without an OSD for which Ceph has a key (`auth get osd.3`).
    pub unused: BTreeSet<OsdId>,
    /// OSDs for which `config-key ls` has a dm-crypt key.
    pub dmcrypt: BTreeSet<OsdFsid>,
}

/// A single inconsistency.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// A slot is destroyed, and no OSD took its place.
    SlotWithoutOsd {
        /// id of the slot
        osd: OsdId,
    },
    /// A slot is destroyed, but its daemon is up.
    UpInDestroyedSlot {
        /// id of the slot
        osd: OsdId,
    },
    /// An OSD has no Deployment.
    OsdWithoutDeployment {
        /// OSD without a Deployment
        osd: OsdId,
    },
    /// A Deployment belongs to an OSD that Ceph does not have.
    DeploymentWithoutOsd {
        /// name of the Deployment
        name: String,
        /// OSD that Ceph does not have
        osd: OsdId,
    },
    /// Flags are set on an OSD without a record: by a person, or by a run whose ledger is lost.
    FlagsWithoutRecord {
        /// OSD with the flags
        osd: OsdId,
        /// `noout`, `noin`
        flags: Vec<&'static str>,
        /// reweight of the OSD, if it is still marked `new`: without `noin` its next boot would reset the
        /// reweight, unless it is set again
        reweight: Option<Weight>,
    },
    /// An OSD gets no data, and its Deployment has a backup of a record that is not in the ledger: a run was
    /// emptying the OSD when its ledger was lost.
    EmptiedWithoutRecord {
        /// OSD without data
        osd: OsdId,
        /// whether the OSD is out; otherwise it has CRUSH weight 0
        is_out: bool,
    },
    /// The CephCluster has a fence of osd-migrate that the ledger does not know: from a run whose ledger is
    /// lost.
    FenceWithoutRecord {
        /// value of the label
        value: String,
    },
    /// Ceph has a key of an OSD that does not exist.
    KeyWithoutOsd {
        /// id of the missing OSD
        osd: OsdId,
    },
    /// The mons store the disk encryption key of an OSD that does not exist.
    DmcryptKeyWithoutOsd {
        /// fsid of the missing OSD
        fsid: OsdFsid,
    },
}

impl Finding {
    /// Returns the code, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SlotWithoutOsd { .. } => "slot-without-osd",
            Self::UpInDestroyedSlot { .. } => "up-in-destroyed-slot",
            Self::OsdWithoutDeployment { .. } => "osd-without-deployment",
            Self::DeploymentWithoutOsd { .. } => "deployment-without-osd",
            Self::FlagsWithoutRecord { .. } => "flags-without-record",
            Self::EmptiedWithoutRecord { .. } => "emptied-without-record",
            Self::FenceWithoutRecord { .. } => "fence-without-record",
            Self::KeyWithoutOsd { .. } => "key-without-osd",
            Self::DmcryptKeyWithoutOsd { .. } => "dmcrypt-key-without-osd",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlotWithoutOsd { osd } => write!(
                f,
                "{osd} is destroyed, and no OSD has taken its id. If its Deployment still exists, a run \
                 recreates the OSD on an available disk of its node that the CephCluster selects. To remove \
                 the OSD instead: ceph osd purge {} --yes-i-really-mean-it",
                osd.0
            ),
            Self::UpInDestroyedSlot { osd } => write!(
                f,
                "{osd} is up although its slot is destroyed: another client gave it a new key and started \
                 it. To recreate the OSD in its slot: ceph osd out {}; wait until all PGs are clean; {}; \
                 ceph auth rm {osd}; clear its disk. A run then recreates the OSD",
                osd.0,
                scale_osd(*osd, 0)
            ),
            Self::OsdWithoutDeployment { osd } => {
                write!(
                    f,
                    "{osd} has no Deployment. If a run finds its disk, the run creates the Deployment; for \
                     an OSD on a PVC, Rook does. To inspect the disks: osd-migrate -n NAMESPACE plan --inventory"
                )
            }
            Self::DeploymentWithoutOsd { name, osd } => write!(
                f,
                "Deployment {name} exists, but Ceph has no {osd}. If the OSD is not needed, delete the \
                 Deployment: kubectl -n NAMESPACE delete deployment {name}"
            ),
            Self::FlagsWithoutRecord { osd, flags, reweight } => {
                let flags = flags.join(",");
                write!(f, "{osd} has the OSD flags {flags}, but no record of it exists. Unset the flags: ")?;
                if let Some(reweight) = reweight {
                    write!(f, "ceph osd reweight {} {reweight}; ", osd.0)?;
                }
                write!(f, "ceph osd unset-group {flags} {osd}")
            }
            Self::EmptiedWithoutRecord { osd, is_out } => emptied_without_record(*osd, *is_out, f),
            Self::FenceWithoutRecord { value } => write!(
                f,
                "the CephCluster has the label ceph.rook.io/do-not-reconcile={value}, which belongs to a run \
                 that is not in the ledger. When no run is working on its OSDs: kubectl -n NAMESPACE label \
                 cephcluster CEPHCLUSTER ceph.rook.io/do-not-reconcile-"
            ),
            Self::KeyWithoutOsd { osd } => {
                write!(
                    f,
                    "Ceph has a key of {osd}, but the OSD does not exist. If its disk is not needed: ceph \
                     auth rm {osd}"
                )
            }
            Self::DmcryptKeyWithoutOsd { fsid } => write!(
                f,
                "the mons store the disk encryption key of {fsid}, but no OSD has this fsid. If its disk is \
                 not needed: ceph auth rm client.osd-lockbox.{fsid}; ceph config-key rm \
                 dm-crypt/osd/{fsid}/luks"
            ),
        }
    }
}

fn emptied_without_record(osd: OsdId, is_out: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (state, size, command) = if is_out {
        ("is out", "", format!("ceph osd in {}", osd.0))
    } else {
        let size = ", with the size of its device in TiB as WEIGHT";
        ("has CRUSH weight 0", size, format!("ceph osd crush reweight {osd} WEIGHT"))
    };
    write!(
        f,
        "{osd} {state}, and its Deployment has a backup of a record that is not in the ledger: a run was emptying \
         the OSD. To let it get data again{size}: {command}"
    )
}

/// Returns whether an OSD gets no data, and only a backup without a record shows that a run was emptying it.
///
/// Such a backup is not deleted as an orphan: it is the last trace of the lost record.
pub fn is_left_empty(osd: OsdId, ledger: &Ledger, seen: &Observation) -> bool {
    let is_without_data = |slot: &Slot| slot.state == SlotState::Exists && !slot.gets_data();
    seen.kube.backups.get(&osd).is_some_and(|record| !ledger.has(record))
        && seen.ceph.slots.get(&osd).is_some_and(is_without_data)
}

/// Returns all inconsistencies, except those of OSDs with an open record, which are being worked on.
pub fn find(ledger: &Ledger, seen: &Observation, keys: &Keys) -> Vec<Finding> {
    let (slots, daemons) = (&seen.ceph.slots, &seen.kube.daemons);
    let closed = |osd: &OsdId| !ledger.records.contains_key(osd);
    let mut found = BTreeSet::new();
    for (osd, slot) in slots.iter().filter(|(osd, _)| closed(osd)) {
        match slot.state {
            SlotState::Destroyed if slot.up => {
                found.insert(Finding::UpInDestroyedSlot { osd: *osd });
            }
            // Rook replaces the OSD, or a person keeps it from Rook: osd-migrate neither recreates nor purges
            // it.
            SlotState::Destroyed
                if daemons.get(osd).is_some_and(|daemon| daemon.managed_externally.is_some()) => {}
            SlotState::Destroyed => {
                found.insert(Finding::SlotWithoutOsd { osd: *osd });
            }
            SlotState::Exists if !daemons.contains_key(osd) => {
                found.insert(Finding::OsdWithoutDeployment { osd: *osd });
            }
            SlotState::Exists | SlotState::New => {}
        }
        let flags: Vec<_> = [(slot.noout, "noout"), (slot.noin, "noin")]
            .into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, flag)| flag)
            .collect();
        if !flags.is_empty() {
            let reweight = (slot.state == SlotState::New && slot.noin).then_some(slot.reweight);
            found.insert(Finding::FlagsWithoutRecord { osd: *osd, flags, reweight });
        }
        if is_left_empty(*osd, ledger, seen) {
            found.insert(Finding::EmptiedWithoutRecord { osd: *osd, is_out: !slot.is_in });
        }
    }
    for (osd, daemon) in daemons.iter().filter(|(osd, _)| closed(osd) && !slots.contains_key(osd)) {
        found.insert(Finding::DeploymentWithoutOsd { name: daemon.name.clone(), osd: *osd });
    }
    // A frozen runner may set the last removed fence again: the next run handles that.
    let is_known =
        |value: &String| [&ledger.run.fence, &ledger.run.last_fence].contains(&&Some(value.clone()));
    let ours = seen.kube.fence.clone().filter(|value| value.starts_with(FENCE) && !is_known(value));
    found.extend(ours.map(|value| Finding::FenceWithoutRecord { value }));
    // Fsids of the records: OSDs that are being created, and those that were.
    let ours: BTreeSet<OsdFsid> = ledger
        .records
        .values()
        .flat_map(|record| record.issued.iter().copied().chain([record.old]))
        .collect();
    let is_there =
        |fsid: &OsdFsid| ours.contains(fsid) || slots.values().any(|slot| slot.fsid == Some(*fsid));
    let unused = keys.unused.iter().filter(|osd| closed(osd) && !slots.contains_key(osd));
    found.extend(unused.map(|osd| Finding::KeyWithoutOsd { osd: *osd }));
    let dmcrypt = keys.dmcrypt.iter().filter(|fsid| !is_there(fsid));
    found.extend(dmcrypt.map(|fsid| Finding::DmcryptKeyWithoutOsd { fsid: *fsid }));
    found.into_iter().collect()
}
