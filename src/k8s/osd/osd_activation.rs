//! Activation of an OSD by its layout on its devices, and locking of its volumes when its pod ends. Pure.

use serde_json::{Value, json};

use crate::domain::osd::Mode;
use crate::k8s::osd::osd_env::literals;
use crate::k8s::osd::render_osd::Osd;
use crate::k8s::rook::mon_access::mons;

/// Script that finds the disk and creates the data folder from it.
const RAW: &str = include_str!("activate_osd.sh");
/// Script with a function that opens the logical volumes and creates the data folder from them.
const LVM: &str = include_str!("activate_lvm.sh");
/// Script that creates the data folder from a file of the node.
const FILE: &str = include_str!("activate_file.sh");
/// Script that starts the daemon of an encrypted OSD and first opens its volumes if they are locked.
const START_ENCRYPTED: &str = include_str!("start_encrypted.sh");
/// Script that locks the volumes of an encrypted OSD as soon as its daemon has released them.
const LOCK: &str = include_str!("lock_encrypted.sh");

/// Path in the pod of the folder in which the agent keeps the file of a test's OSD.
const FILE_FOLDER: &str = "/var/lib/rook/osd-migrate";

impl Osd<'_> {
    fn is_locked(&self) -> bool {
        self.deploy.layout.encrypted
    }

    /// Returns the path of the store inside the OSD's pod.
    pub(super) fn block_path(&self) -> String {
        let path = &self.deploy.block_path;
        match path.rsplit('/').next() {
            Some(file) if self.deploy.on_file => format!("{FILE_FOLDER}/{file}"),
            Some(_) | None => path.clone(),
        }
    }

    /// Returns the value of `ROOK_CV_MODE`.
    pub(crate) fn mode(&self) -> &'static str {
        match self.deploy.layout.mode {
            Mode::Raw => "raw",
            Mode::Lvm => "lvm",
        }
    }

    pub(super) fn store_flag(&self) -> String {
        format!("--{}", self.deploy.store)
    }

    /// Returns the mounts that activation needs.
    pub(super) fn mounts_of_activation(&self) -> Vec<&'static str> {
        let mut mounts = vec!["rook-config-override", "rook-ceph-log", "devices", "run-udev", "activate-osd"];
        if self.deploy.on_file {
            mounts.push("rook-data");
        }
        mounts
    }

    pub(super) fn activate(&self) -> Value {
        let (id, fsid, block_path) = (self.id(), self.deploy.fsid.to_string(), self.block_path());
        let store = self.store_flag();
        let vars = [
            ("CEPH_VOLUME_DEBUG", "1"),
            ("CEPH_VOLUME_SKIP_RESTORECON", "1"),
            ("DM_DISABLE_UDEV", "1"),
            ("ROOK_BLOCK_PATH", block_path.as_str()),
            ("ROOK_CV_MODE", self.mode()),
            ("ROOK_ENCRYPTED_DEVICE", if self.is_locked() { "true" } else { "false" }),
            ("ROOK_METADATA_DEVICE", self.deploy.db_path.as_deref().unwrap_or_default()),
            ("ROOK_OSD_ID", &id),
            ("ROOK_OSD_STORE_FLAG", &store),
            ("ROOK_OSD_UUID", &fsid),
            ("ROOK_WAL_DEVICE", self.deploy.wal_path.as_deref().unwrap_or_default()),
        ];
        let mut env = literals(&vars);
        let script = match self.deploy.layout.mode {
            _ if self.deploy.on_file => FILE.to_owned(),
            Mode::Raw => RAW.to_owned(),
            Mode::Lvm => {
                // The script asks the mons for the key of an encrypted OSD.
                if let Some(env) = env.as_array_mut() {
                    env.extend(mons());
                }
                format!("{LVM}\nactivate\n")
            }
        };
        let mounts = self.mounts(&self.mounts_of_activation());
        self.container("activate", &["/bin/bash", "-c", &script], &[], &env, &mounts)
    }

    /// Returns the command of the container `osd`, without its arguments.
    pub(super) fn start_command(&self) -> Vec<String> {
        if self.is_locked() {
            let script = format!("{LVM}\n{START_ENCRYPTED}");
            ["/bin/bash", "-c", &script, "--", "ceph-osd"].map(str::to_owned).into()
        } else {
            vec!["ceph-osd".to_owned()]
        }
    }

    /// Returns the teardown, if one is needed: an open volume of an encrypted OSD would be readable for as
    /// long as its node runs.
    pub(super) fn lifecycle(&self) -> Option<Value> {
        self.is_locked().then(|| json!({"preStop": {"exec": {"command": ["/bin/bash", "-c", LOCK]}}}))
    }
}
