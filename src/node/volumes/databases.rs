//! The device for databases: found, proven to be available or this cluster's, and large enough.

use std::collections::BTreeMap;

use crate::domain::guard::{Guard, passes};
use crate::domain::osd::{ClusterFsid, DbDevice};
use crate::node::disk::devices::{self, Disk};
use crate::node::disk::marks::{self, Marks};
use crate::node::disk::usage;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::volumes::change::Change;
use crate::node::volumes::lvm::{self, Group, Lv, Member};
use crate::node::volumes::names::{cluster_tag, is_auxiliary_name};

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
    Err(refused(&disk, &format!("{free} MiB are available, but {needed} MiB are needed. See: vgs; lvs")))
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

/// Returns the available bytes of each volume group for databases of this cluster, by the uuid of its
/// physical volume.
///
/// Such a group is on one disk alone, and has volumes for databases and logs only, or none. A group that
/// another client created has to have some.
pub(crate) async fn groups(cluster: ClusterFsid) -> Result<BTreeMap<String, u64>, NodeError> {
    let (members, all) = tokio::try_join!(lvm::members(), lvm::volumes())?;
    Ok(for_databases(&members, &all, cluster))
}

fn for_databases(members: &[Member], all: &[Lv], cluster: ClusterFsid) -> BTreeMap<String, u64> {
    let is_it = |member: &&Member| {
        let disks = members.iter().filter(|other| other.group_uuid == member.group_uuid).count();
        let there: Vec<&Lv> = all.iter().filter(|lv| lv.group_uuid == member.group_uuid).collect();
        let is_for_databases = there.iter().all(|lv| is_ours(lv, cluster) && is_auxiliary(lv));
        disks == 1 && is_for_databases && is_of_cluster(&member.group, &there, cluster)
    };
    members.iter().filter(is_it).map(|member| (member.physical.clone(), member.free_bytes)).collect()
}

/// Returns whether a group with these volumes is this cluster's alone, and not for the data of an OSD.
fn is_of_cluster(group: &Group, there: &[&Lv], cluster: ClusterFsid) -> bool {
    let has_ours_only = !there.is_empty() && there.iter().all(|lv| is_ours(lv, cluster));
    let is_for_data = group.tags.iter().any(|tag| tag.starts_with("osd-migrate.osd="));
    !is_for_data && (group.tags.contains(&cluster_tag(cluster)) || has_ours_only)
}

/// Returns whether a volume is this cluster's.
///
/// osd-migrate's volumes have ceph-volume's tags only while their OSD is prepared.
fn is_ours(lv: &Lv, cluster: ClusterFsid) -> bool {
    lv.cluster == Some(cluster) || lv.tags.contains(&cluster_tag(cluster))
}

fn is_auxiliary(lv: &Lv) -> bool {
    let is_tagged = matches!(lv.ceph.kind.as_deref(), Some("db" | "wal"));
    is_tagged || (lv.ceph.kind.is_none() && is_auxiliary_name(&lv.name))
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
            "expected exactly one disk {} for the database, found none or several",
            db.identity.stable_name()
        )));
    };
    let found = marks::of(&disk).await?;
    if !matches!(&found, Marks::Signed(signature) if signature.physical_volume().is_some()) {
        let disk = disk.again(&host.sys_block, &host.dev)?;
        let is_unused = disk.holders.is_empty() && disk.partitions.is_empty() && !disk.read_only;
        let is_available = is_unused && found == Marks::None && !usage::is_in_use(&disk).await?;
        if !passes(Guard::DiskAvailable, is_available) {
            return Err(refused(&disk, "neither an available disk nor a volume group of this cluster"));
        }
        let free_bytes = disk.identity.size_bytes.saturating_sub(HEADER);
        return Ok((disk.clone(), State::Available(disk), free_bytes));
    }
    let Some((group, free_bytes)) = lvm::group_on(&disk.node).await? else {
        return Err(refused(
            &disk,
            "a physical volume without a volume group. If it is not needed, remove it with pvremove",
        ));
    };
    let all = lvm::volumes().await?;
    let there: Vec<&Lv> = all.iter().filter(|lv| lv.group == group.name).collect();
    if is_of_cluster(&group, &there, cluster) {
        return Ok((disk, State::Group(group.name), free_bytes));
    }
    Err(refused(&disk, &format!("volume group {} does not belong to this cluster alone", group.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::osd::OsdFsid;
    use crate::node::volumes::lvm::CephTags;
    use crate::node::volumes::names::{block, database};

    fn cluster(n: u128) -> ClusterFsid {
        ClusterFsid::new(uuid::Uuid::from_u128(n)).unwrap()
    }

    fn member(physical: &str, group: &str, tags: &[String]) -> Member {
        let tags = tags.to_vec();
        Member {
            physical: physical.to_owned(),
            group: Group { name: group.to_owned(), tags },
            group_uuid: group.to_owned(),
            free_bytes: 7,
        }
    }

    fn volume(group: &str, kind: Option<&str>, of: ClusterFsid) -> Lv {
        let fsid = OsdFsid::new(uuid::Uuid::from_u128(5)).unwrap();
        Lv {
            group: group.to_owned(),
            group_uuid: group.to_owned(),
            name: if kind == Some("block") { block(fsid) } else { database(fsid) },
            uuid: "lv".to_owned(),
            origin: None,
            layout: String::new(),
            size_bytes: 1,
            tags: Vec::new(),
            cluster: Some(of),
            ceph: CephTags { kind: kind.map(str::to_owned), ..CephTags::default() },
        }
    }

    #[test]
    fn volume_group_for_databases_is_empty_or_has_only_them() {
        let (ours, other) = (cluster(1), cluster(2));
        let mine = [cluster_tag(ours)];
        let found = |members: &[Member], all: &[Lv]| {
            for_databases(members, all, ours).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(found(&[member("a", "vg", &mine)], &[]), ["a"], "no volume is left in it");
        assert_eq!(found(&[member("a", "vg", &[])], &[]), [""; 0], "anybody may have created it");
        for kind in [Some("db"), Some("wal"), None] {
            assert_eq!(found(&[member("a", "vg", &[])], &[volume("vg", kind, ours)]), ["a"], "{kind:?}");
        }
        for foreign in [volume("vg", Some("block"), ours), volume("vg", Some("db"), other)] {
            let all = [volume("vg", Some("db"), ours), foreign];
            assert_eq!(found(&[member("a", "vg", &mine)], &all), [""; 0]);
        }
        let for_data = [cluster_tag(ours), "osd-migrate.osd=3".to_owned()];
        assert_eq!(found(&[member("a", "vg", &for_data)], &[]), [""; 0]);
        let on_two = [member("a", "vg", &mine), member("b", "vg", &mine)];
        assert_eq!(found(&on_two, &[]), [""; 0], "it is on two disks");
    }
}
