//! Reads the disks of a node, and reports.

use std::collections::BTreeMap;

use crate::domain::inspection::{Content, NodeProblem};
use crate::domain::inventory::{DiskSeen, DiskState, InventoryReport, InventoryRequest, NodeInventory};
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};
use crate::node::create::capability;
use crate::node::disk::devices::{self, Disk};
use crate::node::disk::kubelet::Mapped;
use crate::node::disk::label;
use crate::node::disk::marks::{self, Marks};
use crate::node::disk::usage::{self, Mounts};
use crate::node::disk::{file_disk, parts};
use crate::node::error::NodeError;
use crate::node::find::content;
use crate::node::host::Host;
use crate::node::inventory::rejections::{LvmOsd, Rejections};
use crate::node::inventory::state::{Facts, KnownOsds, Seen, read_label};
use crate::node::inventory::{osds, rejections, state};
use crate::node::legacy::files::{Reading, Sharing};
use crate::node::state::issued;
use crate::node::steps::{Steps, now};
use crate::node::volumes::databases;

/// Reads the node's disks and reports.
///
/// The caller may run a heartbeat in parallel.
pub async fn inventory(request: &InventoryRequest, host: &Host) -> InventoryReport {
    let began_at = now();
    let steps = Steps::default();
    let seen = if request.node == host.node {
        see(request, host, &steps).await
    } else {
        Err(NodeError::Refused(format!(
            "the request is for node {}, but the agent runs on node {}",
            request.node, host.node
        )))
    };
    let (inventory, problem) = match seen {
        Ok(inventory) => (Some(inventory), None),
        Err(error) => (None, Some(error.into_problem())),
    };
    InventoryReport {
        run: request.run.clone(),
        number: request.number,
        node: request.node.clone(),
        began_at,
        ended_at: now(),
        steps: steps.into_tenths(),
        inventory,
        problem: problem.as_ref().map(NodeProblem::message).map(str::to_owned),
    }
}

async fn see(request: &InventoryRequest, host: &Host, steps: &Steps) -> Result<NodeInventory, NodeError> {
    let mut notes = Notes::default();
    if request.on_file {
        let (capability, facts) = tokio::join!(
            steps.time("capability", capability::of_image(host)),
            steps.time("file", async {
                facts_of(file_disk::as_disk(host)?, &Mounts::default(), &Mapped::default(), host).await
            })
        );
        let (facts, known) = (facts?, known(request, host, Vec::new(), &[], &mut notes));
        let disks = vec![seen(&facts, state::judge(&facts, &known))];
        let osds = osds::on(
            std::slice::from_ref(&Seen { facts, parts: Vec::new() }),
            &known,
            None,
            &capability.ceph_version,
        );
        return Ok(NodeInventory {
            capability,
            disks,
            osds,
            database_groups: BTreeMap::new(),
            notes: notes.0,
        });
    }
    let (capability, all, volumes, inventory) = tokio::join!(
        steps.time("capability", capability::of_image(host)),
        steps.time("disks", read(host, &mut notes)),
        steps.time("volumes", rejections::lvm_osds()),
        steps.time("inventory", rejections::rejections()),
    );
    let all = all?;
    let volumes = notes.unless("ceph-volume lvm list", volumes);
    let inventory = notes.unless("ceph-volume inventory", inventory);
    let known = known(request, host, volumes, &all, &mut notes);
    let disks = steps.time("states", states(&all, &known, &inventory)).await;
    let raw = steps.time("raw list", rejections::raw_osds(&osds::labelled(&all))).await;
    let raw = match raw {
        Ok(found) => Some(found),
        Err(error) => {
            notes.add("ceph-volume raw list", &error);
            None
        }
    };
    let osds = osds::on(&all, &known, raw.as_ref(), &capability.ceph_version);
    let groups = steps.time("groups", groups(&all, request.cluster)).await;
    let database_groups = notes.unless("the volume groups for databases", groups);
    Ok(NodeInventory { capability, disks, osds, database_groups, notes: notes.0 })
}

/// Sentences for people about what could not be inspected.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn add(&mut self, what: &str, error: &NodeError) {
        self.0.push(format!("{what}: {error}"));
    }

    /// Returns the answer, or a default value after adding a note.
    fn unless<T: Default>(&mut self, what: &str, answer: Result<T, NodeError>) -> T {
        answer.unwrap_or_else(|error| {
            self.add(what, &error);
            T::default()
        })
    }
}

/// Reads every disk and partition of the node, one after the other.
///
/// The disks share buses, and no disk is waited for longer than its limit.
async fn read(host: &Host, notes: &mut Notes) -> Result<Vec<Seen>, NodeError> {
    let listed = devices::of_host(host).await?;
    let faults = listed.unseen.iter().filter(|what| !devices::is_no_fault(what));
    notes.0.extend(faults.map(|what| format!("could not inspect {what}")));
    let (mounts, volumes) = (usage::mounts(host), Mapped::read(host).await?);
    let mut all = Vec::new();
    for disk in listed.disks {
        let found = parts::of(&disk, &host.sys_block, &host.dev).await?;
        notes.0.extend(found.unseen.iter().map(|what| format!("could not inspect {what}")));
        let mut parts = Vec::new();
        for part in found.disks {
            parts.push(facts_of(part, &mounts, &volumes, host).await?);
        }
        let mut facts = facts_of(disk, &mounts, &volumes, host).await?;
        // Only while the daemon runs: a mount by this agent would block a daemon that starts in that instant.
        if parts.iter().any(|part| part.mounted.is_some()) {
            facts.filestore = filestore(&facts.disk, host).await;
        }
        all.push(Seen { facts, parts });
    }
    Ok(all)
}

async fn facts_of(disk: Disk, mounts: &Mounts, volumes: &Mapped, host: &Host) -> Result<Facts, NodeError> {
    let (mounted, volume) = (mounts.of(&disk, &host.sys_fs), volumes.of(&disk.node));
    let marks = marks::of(&disk).await;
    let label = match &marks {
        Ok(Marks::Label) => Some(label::read(&disk.node).await.map_err(|error| error.to_string())),
        Ok(_) | Err(_) => None,
    };
    let marks = marks.map_err(|error| error.to_string());
    Ok(Facts { disk, mounted, volume, marks, label, filestore: None })
}

async fn filestore(disk: &Disk, host: &Host) -> Option<(OsdFsid, OsdId, ClusterFsid)> {
    let reading = Reading { scratch: &host.scratch, sharing: Sharing::WithTheDaemon, whom: None };
    let examine = content::examine(disk, reading).await.ok()?;
    if let Content::Osd { osd_fsid, whoami, cluster, .. } = examine.content {
        return Some((osd_fsid, whoami, cluster));
    }
    None
}

fn known(
    request: &InventoryRequest,
    host: &Host,
    volumes: Vec<LvmOsd>,
    all: &[Seen],
    notes: &mut Notes,
) -> KnownOsds {
    let cluster = request.cluster;
    let issued = notes.unless("the fsids that this node issued", issued::all(&host.state));
    let mut ours: BTreeMap<OsdFsid, Option<OsdId>> =
        issued.into_iter().map(|(fsid, osd)| (fsid, Some(osd))).collect();
    let labels = all.iter().flat_map(Seen::all).filter_map(read_label);
    ours.extend(
        labels.filter(|label| label.cluster == Some(cluster)).map(|label| (label.osd_fsid, label.whoami)),
    );
    let tags = volumes.iter().filter(|volume| volume.cluster == cluster);
    ours.extend(tags.map(|volume| (volume.fsid, Some(volume.osd))));
    KnownOsds { cluster, ours, volumes }
}

async fn states(all: &[Seen], known: &KnownOsds, inventory: &Rejections) -> Vec<DiskSeen> {
    let mut disks = Vec::new();
    for disk in all {
        let mut own = last_word(&disk.facts, state::judge(&disk.facts, known), inventory).await;
        let mut parts = Vec::new();
        for part in &disk.parts {
            let judged = state::of_partition(&disk.facts, &own, state::judge(part, known));
            parts.push(seen(part, last_word(part, judged, inventory).await));
        }
        let ours = parts.iter().find(|part| matches!(part.state, DiskState::Ours { .. }));
        if let (DiskState::Rejected { .. }, Some(part)) = (&own, ours) {
            own = part.state.clone();
        }
        disks.push(seen(&disk.facts, own));
        disks.extend(parts);
    }
    disks
}

/// Returns the available MiB of each disk, by kernel name, whose volume group is for databases of this
/// cluster.
async fn groups(all: &[Seen], cluster: ClusterFsid) -> Result<BTreeMap<String, u64>, NodeError> {
    let physical = |disk: &Seen| match &disk.facts.marks {
        Ok(Marks::Signed(signature)) => signature.physical_volume().map(str::to_owned),
        Ok(_) | Err(_) => None,
    };
    let disks = all.iter().filter_map(|disk| Some((disk.facts.disk.name.clone(), physical(disk)?)));
    let disks: Vec<(String, String)> = disks.collect();
    if disks.is_empty() {
        return Ok(BTreeMap::new()); // LVM waits for all disks of the node
    }
    let free_bytes = databases::groups(cluster).await?;
    Ok(disks.into_iter().filter_map(|(name, uuid)| Some((name, free_bytes.get(&uuid)? >> 20))).collect())
}

/// Returns the final state of a disk.
///
/// Only a disk with nothing on it is asked further: see `usage::is_held`.
async fn last_word(facts: &Facts, judged: DiskState, inventory: &Rejections) -> DiskState {
    if !matches!(judged, DiskState::Available | DiskState::Tombstone { .. }) {
        return judged;
    }
    let held = usage::is_in_use(&facts.disk).await.map_err(|error| error.to_string());
    state::at_last(judged, &facts.disk.name, held, inventory.get(&facts.disk.node))
}

fn seen(facts: &Facts, state: DiskState) -> DiskSeen {
    let Disk { name, parent, links, identity, rotational, .. } = facts.disk.clone();
    DiskSeen { name, parent, links, identity, rotational, state }
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;
