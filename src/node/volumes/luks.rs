//! LUKS for an OSD on a PVC that is to be encrypted: the header that the agent writes, and the mappings that
//! it opens.
//!
//! The agent writes the header, not ceph-volume. A header of ceph-volume is anonymous until a second command
//! names it, and ceph-volume sends its passphrase to the mons. This header has a uuid that follows from the
//! record, so that an empty one says whose it is; its label and subsystem are those of Rook. Database and log
//! on PVCs of their own get a header each, with the same key, as in Rook.
//!
//! The header is made in a file, and then written in place of the tombstone while the device is open
//! exclusively, its first sector last. The first sector has everything by which a header is recognised. So at
//! every instant the device shows either the tombstone or the whole header with its key.
//!
//! The key passes from the Secret to cryptsetup as the path of a file; this process never reads it.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use crate::domain::inspection::{Content, NodeRequest, RecordId};
use crate::domain::osd::pvc::{KEY_IN_SECRET, PerPvc, key_secret, mapping_name};
use crate::domain::osd::{ClusterFsid, Kind, Role};
use crate::node::disk::devices::Disk;
use crate::node::disk::wipe::ExclusiveDisk;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::tools::query::Query;
use crate::node::volumes::change::Change;
use crate::node::volumes::mapped::{Mapped, opened};

/// Bytes of a LUKS2 header with its key slots: the data begin after them. cryptsetup's own default.
pub(crate) const HEADER_BYTES: u64 = 16 << 20;
/// Additional bytes of the file that a header is made in: cryptsetup refuses a device without room for data.
const ROOM_BYTES: u64 = 1 << 20;
/// Namespace of the uuids of headers.
///
/// It is a random uuid that nothing else uses, so no other program's header has a uuid of osd-migrate.
const NAMESPACE: Uuid = Uuid::from_u128(0xd8c3_ef09_010d_4d07_9810_54f4_e68a_8551);
/// Number of characters of a label that a LUKS2 header has room for: cryptsetup cuts longer ones, and fails
/// from 2.8.2 on.
const LABEL_CHARS: usize = 47;
/// Exit status of cryptsetup if a key opens no key slot.
const NO_PERMISSION: i32 = 2;
/// Number of tries to close a mapping: udevd probes a new one, and a killed mkfs takes a moment to end.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(250);

/// Returns the uuid of the header that is written for a record, by what the OSD has on the device.
pub(crate) fn header_uuid(record: &RecordId, role: Role) -> String {
    let name = match role {
        Role::Db => format!("{record}-db"),
        Role::Wal => format!("{record}-wal"),
        Role::Block | Role::Data | Role::Journal => record.to_string(),
    };
    Uuid::new_v5(&NAMESPACE, name.as_bytes()).to_string()
}

/// Returns whether a header is the one that is written for the record of a request.
///
/// A record that does not encrypt writes none.
pub(crate) fn is_of_record(uuid: &str, request: &NodeRequest, role: Role) -> bool {
    request.pvc_with_key().is_some() && uuid == header_uuid(&request.record, role)
}

/// Returns Rook's label of the header on a PVC, as the header shows it.
pub(super) fn label_of(pvc: &str) -> String {
    format!("pvc_name={pvc}").chars().take(LABEL_CHARS).collect()
}

/// Returns Rook's subsystem of the headers of a cluster.
pub(super) fn subsystem_of(cluster: ClusterFsid) -> String {
    format!("ceph_fsid={cluster}")
}

/// Returns the name of the mapping in which an agent only reads.
///
/// It is not Rook's name: Rook would take a mapping of that name for its own, although it is read-only.
pub(super) fn reading_name(pvc: &str) -> String {
    format!("{pvc}-osd-migrate")
}

/// Checks that the key exists, if the OSD is to be encrypted.
pub(crate) fn check_key(host: &Host, request: &NodeRequest) -> Result<(), NodeError> {
    let Some(pvc) = request.pvc_with_key() else { return Ok(()) };
    match fs::metadata(&host.key) {
        Ok(meta) if meta.is_file() && meta.len() > 0 => Ok(()),
        Ok(_) | Err(_) => Err(NodeError::Refused(format!(
            "Secret {} has no usable key `{KEY_IN_SECRET}`. Restore the key: it is never replaced",
            key_secret(pvc)
        ))),
    }
}

/// Checks that the key opens the header of the old OSD, if the OSD is encrypted and is to stay so.
///
/// Asked before the OSD is stopped: with another key it could not be started again.
pub(crate) async fn check_key_of_old(
    host: &Host,
    request: &NodeRequest,
    (disk, content): (&Disk, &Content),
) -> Result<(), NodeError> {
    let is_encrypted = matches!(content, Content::Osd { format: Kind::RawCrypt, .. });
    let Some(pvc) = request.pvc_with_key().filter(|_| is_encrypted && request.evidence.is_none()) else {
        return Ok(());
    };
    let ask = Query::KeyOpens { device: &disk.node, key: &host.key };
    ask.ask_well().await.map(drop).map_err(|error| {
        refused_key(
            error,
            pvc,
            "the LUKS header of its device. The OSD could not be started again after a stop",
        )
    })
}

/// Writes the header for the new OSD over the tombstone, on the device of a PVC with that role.
pub(crate) async fn write_header(
    host: &Host,
    request: &NodeRequest,
    (pvc, role): (&str, Role),
    disk: &ExclusiveDisk,
) -> Result<(), NodeError> {
    let file = HeaderFile::make(&host.scratch)?;
    Change::LuksFormat {
        file: &file.0,
        uuid: &header_uuid(&request.record, role),
        label: &label_of(pvc),
        subsystem: &subsystem_of(request.cluster),
        key: &host.key,
    }
    .done()
    .await?;
    disk.write_header(file.read()?).await
}

/// Calls `work` with the mappings of all PVCs that Rook also opens, and closes the mappings afterwards.
pub(crate) async fn while_open<T>(
    host: &Host,
    pvcs: &PerPvc<String>,
    work: impl AsyncFnOnce(&[(Role, PathBuf)]) -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    let mut open = Vec::new();
    let opened = open_all(host, pvcs, &mut open).await;
    let nodes: Vec<_> = open.iter().map(|(role, name)| (*role, mapping_node(host, name))).collect();
    let done = match opened {
        Ok(()) => work(&nodes).await,
        Err(error) => Err(error),
    };
    // Each is closed, also if another one can't be.
    let mut closed = Ok(());
    for (_, name) in &open {
        closed = closed.and(close(name).await);
    }
    done.and_then(|done| closed.map(|()| done))
}

/// Opens the mappings of all PVCs; `open` gets those that are open, also if the next one can't be opened.
async fn open_all(
    host: &Host,
    pvcs: &PerPvc<String>,
    open: &mut Vec<(Role, String)>,
) -> Result<(), NodeError> {
    for (role, pvc) in pvcs.iter() {
        let (device, name) = (host.pvc_device(role), mapping_name(pvc, role));
        free_name(host, &name).await?;
        let change = Change::LuksOpen { device: &device, mapping: &name, key: &host.key, read_only: false };
        change.done().await.map_err(|error| of_opening(error, &pvcs.data))?;
        open.push((role, name));
    }
    Ok(())
}

/// Closes a mapping of this name whose device is gone; another one of the name is an error.
///
/// Rook does not close its mappings when the pod of an OSD ends. If a driver then detaches the volume and
/// attaches it again, the volume is another device, and the mapping of the former one keeps the name.
async fn free_name(host: &Host, name: &str) -> Result<(), NodeError> {
    let Some(other) = Mapped::decrypting_as(host, name) else { return Ok(()) };
    let below = other.below(host);
    if below.is_empty() {
        return close(name).await;
    }
    Err(NodeError::Refused(format!(
        "the device-mapper device {name} lies on {}, which is not the device of this PVC. Close it on the node: \
         cryptsetup close {name}",
        below.join(", ")
    )))
}

fn mapping_node(host: &Host, name: &str) -> PathBuf {
    host.dev.join("mapper").join(name)
}

/// Calls `work` with the path of a mapping in which it may read.
///
/// That is the mapping that is open already, of Rook or of an agent that was killed, or one for reading only,
/// which is closed afterwards.
pub(crate) async fn read<T>(
    host: &Host,
    request: &NodeRequest,
    disk: &Disk,
    pvc: &str,
    work: impl AsyncFnOnce(&Path) -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    let name = reading_name(pvc);
    match opened(Mapped::over(host, &disk.holders)) {
        Some(open) if open.name != name => return work(&open.node).await,
        Some(_) => close(&name).await?,
        None => free_name(host, &name).await?,
    }
    let open = Change::LuksOpen { device: &disk.node, mapping: &name, key: &host.key, read_only: true };
    // Database and log have the key of the data.
    open.done().await.map_err(|error| of_opening(error, request.data_pvc().unwrap_or(pvc)))?;
    let done = work(&mapping_node(host, &name)).await;
    let closed = close(&name).await;
    done.and_then(|done| closed.map(|()| done))
}

fn of_opening(error: NodeError, data_pvc: &str) -> NodeError {
    refused_key(error, data_pvc, "the LUKS header that was written with it")
}

/// Returns the refusal for a key that does not open `what`; another error stays.
fn refused_key(error: NodeError, data_pvc: &str, what: &str) -> NodeError {
    if let NodeError::Ended { status, .. } = &error
        && status.code() == Some(NO_PERMISSION)
    {
        return NodeError::Refused(format!(
            "the key `{KEY_IN_SECRET}` of Secret {} does not open {what}. Restore the key: it is never replaced",
            key_secret(data_pvc)
        ));
    }
    error
}

/// Closes all mappings that lie on a device, and returns the device as it is then.
pub(crate) async fn close_all(host: &Host, disk: &Disk) -> Result<Disk, NodeError> {
    for mapped in Mapped::over(host, &disk.holders).iter().filter(|mapped| mapped.is_crypt()) {
        close(&mapped.name).await?;
    }
    disk.again(&host.sys_block, &host.dev)
}

/// Closes a mapping, with retries while it is in use.
#[expect(clippy::disallowed_methods, reason = "cryptsetup does not wait until a mapping is no longer in use")]
async fn close(mapping: &str) -> Result<(), NodeError> {
    let close = Change::CryptClose { mapping };
    for _ in 1..TRIES {
        if close.done().await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
    close.done().await
}

/// File that a header is made in, removed when dropped.
struct HeaderFile(PathBuf);

impl HeaderFile {
    fn make(folder: &Path) -> Result<Self, NodeError> {
        let file = Self(folder.join(format!("osd-migrate-header-{}", Uuid::new_v4())));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file.0);
        made.and_then(|made| made.set_len(HEADER_BYTES + ROOM_BYTES))
            .map_err(NodeError::io("create", &file.0))?;
        Ok(file)
    }

    fn read(&self) -> Result<Vec<u8>, NodeError> {
        let mut bytes = Vec::new();
        let file = File::open(&self.0).map_err(NodeError::io("open", &self.0))?;
        file.take(HEADER_BYTES).read_to_end(&mut bytes).map_err(NodeError::io("read", &self.0))?;
        Ok(bytes)
    }
}

impl Drop for HeaderFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

#[cfg(test)]
#[path = "luks_tests.rs"]
mod tests;
