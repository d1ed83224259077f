//! What is wanted: the owner's declaration (the CephCluster) and how to go about it (flags).

use std::collections::BTreeSet;

use super::osd::{ObjectStore, OsdId};

/// What the CephCluster declares, as far as it matters here. Parsed from the untyped object, any version since v1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Declaration {
    /// Name of the CephCluster.
    pub name: String,
    /// Its uid: owner of the Deployments.
    pub uid: String,
    /// `apiVersion`, for owner references.
    pub api_version: String,
    /// `spec.storage.store.type`; bluestore where it is empty.
    pub store: ObjectStore,
    /// `spec.storage.migration.confirmation` is `yes-really-migrate-osds`, or `spec.storage.store.updateStore` is `yes-really-update-store`.
    pub confirmed: bool,
    /// `spec.dataDirHostPath`
    pub data_dir: String,
    /// `spec.cephVersion.image`: the image that new OSDs are prepared with.
    pub image: String,
    /// `spec.external.enable`
    pub external: bool,
    /// `spec.removeOSDsIfOutAndSafeToRemove`
    pub removes_out_osds: bool,
    /// `spec.network.provider` is `host`
    pub host_network: bool,
    /// `spec.storage.config.encryptedDevice`, cluster wide, is `"true"`
    pub encrypted: bool,
    /// A metadata device, database or wal size, or several OSDs per device are asked for somewhere under `spec.storage`: sentences for people.
    pub unsupported: Vec<String>,
    /// `spec.disruptionManagement.pgHealthyRegex`: with it Rook decides which PG states are healthy. It is read, and not
    /// honoured: it can only relax or replace our own rule (`gate::is_clean`), which stays in force whatever it says. So no
    /// gate asks it, and `plan` must not show it as if one did.
    pub pg_healthy_regex: Option<String>,
}

/// How to go about it: flags of `run` and `plan`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Policy {
    /// `--confirm yes-really-migrate-osds`
    pub confirmed: bool,
    /// `--select`: only these OSDs; all where empty.
    pub select: BTreeSet<OsdId>,
    /// `--skip`: not these.
    pub skip: BTreeSet<OsdId>,
}

impl Policy {
    /// Whether the owner lets this run touch the OSD.
    pub fn selects(&self, osd: OsdId) -> bool {
        (self.select.is_empty() || self.select.contains(&osd)) && !self.skip.contains(&osd)
    }

    /// Confirmed by flag or in the CephCluster (P12).
    pub fn is_confirmed(&self, declaration: &Declaration) -> bool {
        self.confirmed || declaration.confirmed
    }
}
