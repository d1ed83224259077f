//! OSDs that the CephCluster no longer declares. They stay until a person requests their removal.
//!
//! Kernel names change from boot to boot. So an OSD is undeclared only if its disk is selected neither by a
//! name of today nor by the name under which the OSD was created. A disk that got another name stays
//! declared, whatever has its name now. What is not known counts as declared, and is reported.

use std::collections::{BTreeMap, BTreeSet};

use super::gate::names;
use super::inventory::{DiskSeen, DiskState, NodeInventory};
use super::observation::{Daemon, Observation, Slot};
use super::osd::{NodeName, OsdFsid, OsdId};
use super::provision::{self, Declared, NothingDeclared};

/// Names of the disks of OSDs when the OSDs were created, by fsid: kernel names, or paths below `/dev`.
pub type CreatedAs = BTreeMap<OsdFsid, BTreeSet<String>>;

/// Inventories of nodes; the error says why a node was not inspected.
pub type Inventories = BTreeMap<NodeName, Result<NodeInventory, String>>;

/// OSDs as the CephCluster declares them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// OSDs that are not declared, and why.
    pub undeclared: BTreeMap<OsdId, String>,
    /// OSDs of which that is not known, and why.
    pub unknown: BTreeMap<OsdId, String>,
}

/// Returns why nothing may be called undeclared: without this, one missing line would remove all OSDs.
///
/// An early design of Rook has both rules ("Cluster Updates", 2018): "if this value is updated to false, the
/// operator will only allow OSDs to be removed if there is a value set for deviceFilter"; "If there are no
/// individual nodes listed under the nodes field, then updating this field to false will not be allowed".
pub fn refused(seen: &Observation) -> Option<String> {
    let unreadable = &seen.kube.declaration.storage.config.unreadable;
    if !unreadable.is_empty() {
        return Some(format!("spec.storage can't be read: {}", unreadable.join("; ")));
    }
    let why = provision::declares_nothing(seen)?;
    Some(format!(
        "{why}, so that no OSD at all would be declared. Declare what stays, or name the OSDs to remove"
    ))
}

impl std::fmt::Display for NothingDeclared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoNodes => "useAllNodes is false, and spec.storage.nodes names no node",
            Self::NoDevices => {
                "useAllDevices is false, and spec.storage has neither devices nor deviceFilter nor devicePathFilter"
            }
        })
    }
}

/// Returns the nodes whose disks must be known.
///
/// No disk has to be known if the node is not selected, or if all of its disks are.
pub fn to_inspect(seen: &Observation) -> BTreeSet<NodeName> {
    let nodes = on_disks(seen).filter_map(|(_, _, daemon)| daemon.node.as_ref());
    let is_asked = |node: &&NodeName| {
        seen.kube.nodes.get(node).is_some_and(|node| node.ready)
            && provision::is_declared(node, seen)
            && Declared::on(node, seen).is_ok_and(|declared| !declared.is_nothing() && !declared.is_all())
    };
    nodes.filter(is_asked).cloned().collect()
}

/// Returns the OSDs that are not declared, and those of which that is not known.
///
/// OSDs on PVCs are declared by their device set, and not compared.
pub fn find(inventories: &Inventories, created_as: &CreatedAs, seen: &Observation) -> Found {
    let (mut found, none) = (Found::default(), BTreeSet::new());
    for (osd, slot, daemon) in on_disks(seen) {
        let created_as = slot.fsid.and_then(|fsid| created_as.get(&fsid)).unwrap_or(&none);
        let compared = Compared { slot, daemon, created_as, seen };
        match compared.why_undeclared(inventories) {
            Ok(Some(why)) => {
                found.undeclared.insert(osd, why);
            }
            Ok(None) => {}
            Err(why) => {
                found.unknown.insert(osd, why);
            }
        }
    }
    let without_node = seen
        .ceph
        .slots
        .iter()
        .filter(|(osd, slot)| slot.fsid.is_some() && !seen.kube.daemons.contains_key(osd));
    let why = || "it has no Deployment, so its node is not known".to_owned();
    found.unknown.extend(without_node.map(|(osd, _)| (*osd, why())));
    found
}

/// Returns the OSDs with data that are not on PVCs, with their Deployments.
fn on_disks(seen: &Observation) -> impl Iterator<Item = (OsdId, &Slot, &Daemon)> {
    seen.ceph.slots.iter().filter(|(_, slot)| slot.fsid.is_some()).filter_map(|(osd, slot)| {
        let daemon = seen.kube.daemons.get(osd).filter(|daemon| daemon.on_pvcs.is_none())?;
        Some((*osd, slot, daemon))
    })
}

/// An OSD that is compared with what is declared.
struct Compared<'a> {
    slot: &'a Slot,
    daemon: &'a Daemon,
    created_as: &'a BTreeSet<String>,
    seen: &'a Observation,
}

impl Compared<'_> {
    /// Returns why the OSD is not declared; `None` if it is, and an error if that is not known.
    fn why_undeclared(&self, inventories: &Inventories) -> Result<Option<String>, String> {
        let node = self.daemon.node.as_ref().ok_or("its node is not known")?;
        if !provision::is_declared(node, self.seen) {
            if let Some(entry) = provision::entry_that_may_mean(node, self.seen) {
                return Err(format!(
                    "no entry of spec.storage.nodes names node {node}. The entry {entry} of spec.storage.nodes names no node \
                     of the cluster, and may mean this one"
                ));
            }
            return Ok(Some(format!("the CephCluster does not select node {node}")));
        }
        let declared = Declared::on(node, self.seen)?;
        if declared.is_all() {
            return Ok(None);
        }
        if declared.is_nothing() {
            return Err(format!(
                "no disk of node {node} is selected, neither by devices nor by a filter. To remove all its OSDs, take \
                 the node out of spec.storage.nodes"
            ));
        }
        if self.daemon.data_dir.is_some() {
            return Err("it is in a directory of its node".to_owned());
        }
        let inventory = match inventories.get(node) {
            Some(Ok(inventory)) => inventory,
            Some(Err(why)) => return Err(format!("the disks of node {node} were not inspected: {why}")),
            None => return Err(format!("the disks of node {node} were not inspected")),
        };
        self.by_disks(&declared, inventory, node)
    }

    fn by_disks(
        &self,
        declared: &Declared<'_>,
        inventory: &NodeInventory,
        node: &NodeName,
    ) -> Result<Option<String>, String> {
        let fsid = self.slot.fsid.ok_or("it is destroyed")?;
        let disks = disks_of(fsid, inventory);
        if disks.is_empty() {
            return Err(format!("no disk of node {node} has its fsid {fsid}"));
        }
        let of_today = names_of(&disks, fsid, inventory);
        if declared.selects_any(&of_today) || declared.selects_any(self.created_as) {
            return Ok(None);
        }
        if declared.uses_kernel_names() && !self.created_as.iter().any(|name| is_kernel_name(name)) {
            return Err(format!(
                "the kernel name under which it was created is not known, and the CephCluster selects disks by such names: \
                 {declared}"
            ));
        }
        if let Some(link) = declared.link_without_disk(inventory) {
            return Err(format!("{link} leads to no disk of node {node}, and may have led to this one"));
        }
        let kernel: Vec<&String> = disks.iter().map(|disk| &disk.name).collect();
        let before = if self.created_as.is_empty() {
            String::new()
        } else {
            format!(" (created as {})", names(self.created_as))
        };
        Ok(Some(format!(
            "its disk {}{before} on node {node} is not selected. The CephCluster selects {declared}",
            names(kernel)
        )))
    }
}

/// Returns the disks of a node with the data of the OSD, by its fsid in their labels.
///
/// A disk with the database alone is left out: `metadataDevice` names it, and no filter does.
fn disks_of(fsid: OsdFsid, inventory: &NodeInventory) -> Vec<&DiskSeen> {
    let is_its = |disk: &&DiskSeen| matches!(&disk.state, DiskState::Ours { fsid: of, .. } if *of == fsid);
    let has_database =
        |disk: &&DiskSeen| inventory.osds.iter().any(|osd| osd.db_disk.as_ref() == Some(&disk.name));
    let all: Vec<&DiskSeen> = inventory.disks.iter().filter(is_its).collect();
    let data: Vec<&DiskSeen> = all.iter().copied().filter(|disk| !has_database(disk)).collect();
    if data.is_empty() { all } else { data }
}

/// Returns all names of today: those of the disks, of the disks whose partitions they are, and of the volume.
fn names_of(disks: &[&DiskSeen], fsid: OsdFsid, inventory: &NodeInventory) -> BTreeSet<String> {
    let is_parent = |disk: &&DiskSeen| disks.iter().any(|part| part.parent.as_ref() == Some(&disk.name));
    let whole = inventory.disks.iter().filter(is_parent);
    let volumes = inventory.osds.iter().filter(|osd| osd.fsid == fsid).map(|osd| osd.block_path.clone());
    let of_disk = |disk: &DiskSeen| disk.links.iter().cloned().chain([disk.name.clone()]).collect::<Vec<_>>();
    disks.iter().copied().chain(whole).flat_map(of_disk).chain(volumes).collect()
}

/// Returns whether a name is `sdb` or `/dev/sdb`.
///
/// The kernel gives names such as `dm-3` in the order in which volumes are opened: they name no disk.
fn is_kernel_name(name: &str) -> bool {
    let bare = name.strip_prefix("/dev/").unwrap_or(name);
    !bare.is_empty() && !bare.contains('/') && !bare.starts_with("dm-")
}
