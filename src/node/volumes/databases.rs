//! The device for databases: found, proven to be available or this cluster's, and large enough.

use crate::domain::guard::{Guard, passes};
use crate::domain::osd::{ClusterFsid, DbDevice};
use crate::node::disk::devices::{self, Disk};
use crate::node::disk::marks::{self, Marks};
use crate::node::disk::usage;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::volumes::change::Change;
use crate::node::volumes::lvm::{self, Lv};
use crate::node::volumes::names::cluster_tag;

/// Bytes that LVM reserves at the front of a physical volume (its default `default_data_alignment`, 1 MiB).
const HEADER: u64 = 1 << 20;

/// State of the device.
enum State {
    /// Nothing is on the device.
    Available(Disk),
    /// The device is a volume group of this cluster, with this name.
    Group(String),
}

/// Proves, before anything is destroyed for it, that a database can be created on the device.
///
/// Changes nothing.
pub(crate) async fn prove(host: &Host, db: &DbDevice, cluster: ClusterFsid) -> Result<(), NodeError> {
    let (disk, _, free_bytes) = state(host, db, cluster).await?;
    // Without a configured size the database takes all available bytes; there must be at least one.
    let needed = db.size_mib.map_or(1, |mib| mib.saturating_mul(1 << 20));
    if passes(Guard::DatabaseFits, free_bytes >= needed) {
        return Ok(());
    }
    let (free, needed) = (free_bytes >> 20, needed.div_ceil(1 << 20));
    Err(refused(&disk, &format!("{free} MiB are free, and {needed} MiB are needed; see `vgs`, `lvs`")))
}

/// Returns the volume group on the device.
///
/// Creates it if nothing is on the device; uses an existing one if it is this cluster's.
pub(super) async fn group(host: &Host, db: &DbDevice, cluster: ClusterFsid) -> Result<String, NodeError> {
    match state(host, db, cluster).await? {
        (_, State::Group(name), _) => Ok(name),
        (_, State::Available(disk), _) => {
            let name = format!("ceph-{}", uuid::Uuid::new_v4());
            let tags = [cluster_tag(cluster)];
            Change::VgCreate { name: &name, tags: &tags, device: &disk.node }.done().await?;
            Ok(name)
        }
    }
}

fn refused(disk: &Disk, what: &str) -> NodeError {
    NodeError::Refused(format!("{}, for the database: {what}", disk.described()))
}

/// Returns the device as found, its state, and how many bytes of it are available.
async fn state(host: &Host, db: &DbDevice, cluster: ClusterFsid) -> Result<(Disk, State, u64), NodeError> {
    let disks = devices::of_host(host).await?.disks;
    let mut fitting = disks.into_iter().filter(|disk| db.identity.is_same_as(&disk.identity));
    let (Some(disk), None) = (fitting.next(), fitting.next()) else {
        return Err(NodeError::Refused(format!(
            "none, or more than one, of the disks is {}, for the database",
            db.identity.stable_name()
        )));
    };
    let mine = cluster_tag(cluster);
    let found = marks::of(&disk).await?;
    if !matches!(&found, Marks::Signed(signature) if signature.physical_volume().is_some()) {
        let disk = disk.again(&host.sys_block, &host.dev)?;
        let is_unused = disk.holders.is_empty() && disk.partitions.is_empty() && !disk.read_only;
        let is_available = is_unused && found == Marks::None && !usage::is_in_use(&disk).await?;
        if !passes(Guard::DiskAvailable, is_available) {
            return Err(refused(&disk, "neither free nor a volume group of this cluster"));
        }
        let free_bytes = disk.identity.size_bytes.saturating_sub(HEADER);
        return Ok((disk.clone(), State::Available(disk), free_bytes));
    }
    let Some((group, free_bytes)) = lvm::group_on(&disk.node).await? else {
        return Err(refused(&disk, "a physical volume of no volume group; see `pvs`, `pvremove`"));
    };
    let all = lvm::volumes().await?;
    let mut there = all.iter().filter(|lv| lv.group == group.name).peekable();
    // osd-migrate's volumes have ceph-volume's tags only while their OSD is prepared.
    let is_ours = |lv: &Lv| lv.cluster == Some(cluster) || lv.tags.contains(&mine);
    let is_of_cluster = there.peek().is_some() && there.all(is_ours);
    let is_for_data = group.tags.iter().any(|tag| tag.starts_with("osd-migrate.osd="));
    if !is_for_data && (group.tags.contains(&mine) || is_of_cluster) {
        return Ok((disk, State::Group(group.name), free_bytes));
    }
    Err(refused(&disk, &format!("volume group {} is not of this cluster alone", group.name)))
}
