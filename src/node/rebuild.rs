//! The tasks. Each inspects first, under the lock, and does only what is left to do.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::capability::{self, CapabilityAnswer};
use super::content::DiskFinding;
use super::devices::Disk;
use super::error::NodeError;
use super::find::{self, FoundDisk, Search};
use super::legacy::{Sharing, directory, pieces, remains};
use super::proof::{self, Verdict};
use super::remake::{self, Order};
use super::{Host, Steps, issued, label, mons, volumes};
use crate::domain::inspection::{
    Capability, Content, Directory, Evidence, Inspection, KernelDisk, NodeRequest, Piece, Proof,
};
use crate::domain::osd::{Mode, ObjectStore, OsdFsid, device_type};

/// The agent's last observation, and why it did not do its task.
pub(crate) struct Outcome {
    pub(crate) inspection: Option<Inspection>,
    pub(crate) error: Option<NodeError>,
    /// Remains on the host after the task is done, with reasons.
    pub(crate) left: Vec<String>,
}

impl Outcome {
    pub(crate) fn failed(error: NodeError) -> Self {
        Self { inspection: None, error: Some(error), left: Vec::new() }
    }
}

/// Reads what carries the OSD, its proof, and what the image can do; changes nothing on the disk.
pub(crate) async fn inspect(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let (search, asked) = tokio::join!(
        steps.time("find", search(request, host)),
        steps.time("capability", capability::ask(host))
    );
    let search = match search {
        Ok(search) => search,
        Err(error) => return Outcome::failed(error),
    };
    let layers = foreign_layers(request, host, &search);
    let mut inspection = inspection(request, host, search, &asked);
    if let Some(error) = layers {
        inspection.evidence = None;
        return Outcome { inspection: Some(inspection), error: Some(error), left: Vec::new() };
    }
    let error = match &request.directory {
        Some(directory) => {
            let proof = steps.time("directory", directory::prove(request, host)).await;
            add_directory(&mut inspection, directory, proof, request.evidence.is_some())
        }
        None => None,
    };
    let error = match error {
        None => database(request, host, steps).await.err(),
        error => error,
    };
    Outcome { inspection: Some(inspection), error, left: Vec::new() }
}

/// Returns the error for a layer of the host on the OSD's disk; such a layer is never closed or wiped.
///
/// Asked before the OSD is stopped.
fn foreign_layers(request: &NodeRequest, host: &Host, search: &Search) -> Option<NodeError> {
    let Search::One(found) = search else { return None };
    let proof = found.examine.proof.as_ref().filter(|_| found.examine.about == Some(request.old))?;
    volumes::foreign_layer(host, &found.disk, proof).map(NodeError::Refused)
}

/// Checks, before the OSD is stopped, that its new database can be created on the configured device.
///
/// After the stop the database may exist already. An image without LVM's tools is reported separately.
async fn database(request: &NodeRequest, host: &Host, steps: &Steps) -> Result<(), NodeError> {
    match &request.db {
        Some(db) if request.evidence.is_none() && capability::missing_for_volumes(host).is_empty() => {
            steps.time("database", volumes::prove_database(host, db, request.cluster)).await
        }
        Some(_) | None => Ok(()),
    }
}

/// Combines the OSD in a directory and the blank device for it into one proof.
///
/// Once the OSD is recorded, the device alone shows the progress of the rebuild. The state of the directory
/// is then no error.
fn add_directory(
    inspection: &mut Inspection,
    directory: &Directory,
    proof: Result<Proof, NodeError>,
    is_recorded: bool,
) -> Option<NodeError> {
    match proof {
        Ok(proof) if inspection.content == Content::Blank => {
            let (device, auxiliary) = (directory.onto.clone(), Vec::new());
            let usable_bytes = device.size_bytes;
            inspection.evidence = Some(Evidence { device, proof, usable_bytes, auxiliary });
            None
        }
        Ok(_) => None,
        Err(why) => (!is_recorded).then_some(why),
    }
}

async fn search(request: &NodeRequest, host: &Host) -> Result<Search, NodeError> {
    if let Some(evidence) = &request.evidence {
        return recorded(request, evidence, host, Sharing::WithTheDaemon).await;
    }
    if let Some(directory) = &request.directory {
        let is_blank = |examine: &DiskFinding| examine.content == Content::Blank;
        return find::recorded(host, &directory.onto, request, Sharing::WithTheDaemon, is_blank).await;
    }
    if request.on_file {
        return find::on_file(host, |found| found.examine.about == Some(request.old)).await;
    }
    let mut search = find::carrier(host, request).await?;
    add_pieces(request, host, &mut search).await?;
    Ok(search)
}

/// Adds the parts of the old OSD on other devices to its finding.
async fn add_pieces(request: &NodeRequest, host: &Host, search: &mut Search) -> Result<(), NodeError> {
    if let Search::One(found) = search
        && found.examine.about == Some(request.old)
    {
        found.examine = pieces::complete(host, &found.disk, found.examine.clone()).await?;
    }
    Ok(())
}

/// Creates the new OSD on the recorded disk.
pub(crate) async fn rebuild(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let evidence = match evidence_of(request) {
        Ok(evidence) => evidence,
        Err(error) => return Outcome::failed(error),
    };
    let (search, asked) = tokio::join!(
        steps.time("find", recorded(request, evidence, host, Sharing::No)),
        steps.time("capability", capability::ask(host)),
    );
    let found = match search {
        Ok(Search::One(found)) => found,
        Ok(search @ (Search::None(_) | Search::Several(_))) => {
            let inspection = inspection(request, host, search, &asked);
            let why = inspection.content.to_string();
            let error = Some(NodeError::Refused(why));
            return Outcome { inspection: Some(inspection), error, left: Vec::new() };
        }
        Err(error) => return Outcome::failed(error),
    };
    let done = remake::make(&Order { request, evidence, host, steps }, &found, &asked).await;
    // Search again from the start: numbers, partitions and even the disk's name may have changed.
    let last = steps.time("read", recorded(request, evidence, host, Sharing::No)).await;
    let error = match (done, &last) {
        (Err(error), _) => Some(error),
        (Ok(said), Ok(search)) => not_done(request, evidence, host, search, said.as_deref()),
        (Ok(_), Err(_)) => None, // reported below
    };
    match (last, error) {
        (Ok(search), error) => {
            let is_done = error.is_none();
            let left =
                if is_done { steps.time("remains", remains::remove(request, host)).await } else { vec![] };
            Outcome { inspection: Some(inspection(request, host, search, &asked)), error, left }
        }
        (Err(_), Some(error)) | (Err(error), None) => Outcome::failed(error),
    }
}

/// Re-registers a finished OSD of osd-migrate's whose slot was destroyed externally.
pub(crate) async fn restore_slot(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let mut outcome = inspect(request, host, steps).await;
    if outcome.error.is_none() {
        outcome.error = steps.time("restore-slot", deployment_by(request, host)).await.err();
    }
    outcome
}

/// Removes the old OSD's directory.
pub(crate) async fn clear(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let error = steps.time("remove", directory::clear(request, host)).await.err();
    Outcome { inspection: None, error, left: Vec::new() }
}

async fn deployment_by(request: &NodeRequest, host: &Host) -> Result<(), NodeError> {
    let evidence = evidence_of(request)?;
    let issued = issued(request, host)?;
    match recorded(request, evidence, host, Sharing::No).await? {
        Search::One(found) => match proof::verdict(request, evidence, &issued, &found.examine) {
            Verdict::Done => {
                let fsid = found
                    .examine
                    .about
                    .ok_or_else(|| NodeError::Refused("the disk does not name an OSD".to_owned()))?;
                if request.target.encrypted {
                    let why = "its encryption key was deleted when its slot was destroyed, so the OSD can \
                               only be recreated";
                    return Err(NodeError::Refused(why.to_owned()));
                }
                let volume = found.volume.as_ref().map(|volume| PathBuf::from(&volume.block_path));
                let key = label::read_key(&volume.unwrap_or(found.disk.node)).await?;
                mons::osd_new(host, fsid, request.osd, &key).await
            }
            Verdict::WipeOld
            | Verdict::WipeOurs
            | Verdict::WipeMisplaced(_)
            | Verdict::TakeAvailable
            | Verdict::Refuse(_) => Err(NodeError::Refused(format!(
                "expected a finished OSD that osd-migrate created, found {}",
                found.examine.content
            ))),
        },
        Search::None(what) | Search::Several(what) => Err(NodeError::Refused(what)),
    }
}

/// Returns why the disk does not show what ceph-volume should have created.
fn not_done(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    search: &Search,
    said: Option<&str>,
) -> Option<NodeError> {
    let issued = match issued(request, host) {
        Ok(issued) => issued,
        Err(error) => return Some(error),
    };
    let carries = match search {
        Search::One(found) if proof::verdict(request, evidence, &issued, &found.examine) == Verdict::Done => {
            return None;
        }
        Search::One(found) => found.examine.content.to_string(),
        Search::None(what) | Search::Several(what) => what.clone(),
    };
    Some(NodeError::NotDone(format!(
        "the disk carries {carries}; {}",
        said.unwrap_or("ceph-volume did not run")
    )))
}

fn evidence_of(request: &NodeRequest) -> Result<&Evidence, NodeError> {
    let target = &request.target;
    let is_created = match target.mode {
        Mode::Raw => !target.encrypted && request.db.is_none(),
        Mode::Lvm => !request.on_file,
    };
    if target.store != ObjectStore::bluestore() || !is_created {
        let with = if request.db.is_some() { " with a database on another device" } else { "" };
        let on = if request.on_file { " on a file" } else { "" };
        return Err(NodeError::Refused(format!(
            "`{target}`{with}{on} is not supported, only bluestore raw or lvm"
        )));
    }
    request.evidence.as_ref().ok_or_else(|| NodeError::Refused("the request contains no proof".to_owned()))
}

pub(crate) fn issued(request: &NodeRequest, host: &Host) -> Result<BTreeSet<OsdFsid>, NodeError> {
    issued::read(&issued::path(&host.state, request.osd, &request.record))
}

async fn recorded(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    sharing: Sharing,
) -> Result<Search, NodeError> {
    let issued = issued(request, host)?;
    if request.on_file {
        let is_it = |found: &FoundDisk| proof::same_device(&evidence.device, &found.disk.identity).is_ok();
        return find::on_file(host, is_it).await;
    }
    let mut search =
        find::recorded(host, &evidence.device, request, sharing, |examine| {
            match proof::verdict(request, evidence, &issued, examine) {
                Verdict::Done
                | Verdict::WipeOld
                | Verdict::WipeOurs
                | Verdict::WipeMisplaced(_)
                | Verdict::TakeAvailable => true,
                Verdict::Refuse(_) => volumes_of(request, &issued, examine).is_some(),
            }
        })
        .await?;
    if let Search::One(found) = &mut search
        && let Some(fsid) = volumes_of(request, &issued, &found.examine)
    {
        (found.examine, found.volume) = volumes::examine(request, fsid).await?;
    }
    add_pieces(request, host, &mut search).await?;
    Ok(search)
}

/// Returns the issued fsid that a physical volume is named after, if OSDs of this kind are created on
/// volumes.
fn volumes_of(request: &NodeRequest, issued: &BTreeSet<OsdFsid>, examine: &DiskFinding) -> Option<OsdFsid> {
    let is_volume = request.target.mode == Mode::Lvm && matches!(examine.content, Content::Other { .. });
    examine.about.filter(|fsid| is_volume && issued.contains(fsid))
}

fn inspection(request: &NodeRequest, host: &Host, search: Search, asked: &CapabilityAnswer) -> Inspection {
    let mut capability = asked.capability.clone();
    let is_on_volumes = |examine: &DiskFinding| {
        examine.layer.is_some() || examine.proof.as_ref().is_some_and(volumes::is_mapped)
    };
    if request.target.mode == Mode::Lvm
        || matches!(&search, Search::One(found) if is_on_volumes(&found.examine))
    {
        capability.missing_tools.extend(capability::missing_for_volumes(host));
    }
    match search {
        Search::One(found) => {
            let FoundDisk { disk, examine, volume } = *found;
            let kernel = kernel(&disk);
            let evidence = examine
                .proof
                .filter(|_| examine.about == Some(request.old))
                .map(|proof| evidence(disk, proof, examine.auxiliary, examine.usable_bytes));
            Inspection { content: examine.content, evidence, capability, volume, kernel }
        }
        Search::None(inspected) => nothing(Content::NotFound { inspected }, capability),
        Search::Several(disks) => {
            nothing(Content::Other { what: format!("several disks carry this OSD: {disks}") }, capability)
        }
    }
}

fn nothing(content: Content, capability: Capability) -> Inspection {
    Inspection { content, evidence: None, capability, volume: None, kernel: None }
}

fn kernel(disk: &Disk) -> Option<KernelDisk> {
    let device_type = device_type(disk.rotational, &disk.name).to_owned();
    (!disk.is_file()).then(|| KernelDisk { node: disk.node.display().to_string(), device_type })
}

fn evidence(disk: Disk, proof: Proof, auxiliary: Vec<Piece>, usable_bytes: Option<u64>) -> Evidence {
    let usable_bytes = usable_bytes.unwrap_or(disk.identity.size_bytes);
    Evidence { usable_bytes, device: disk.identity, proof, auxiliary }
}
