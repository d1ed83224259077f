//! Inspects the disk of an OSD: what carries the OSD, its proof, and what the image can do.

use crate::domain::inspection::{Content, Directory, Evidence, Inspection, NodeRequest, Proof};
use crate::domain::osd::DeviceIdentity;
use crate::domain::proof::finding::DiskFinding;
use crate::domain::removal::DiskAfter;
use crate::node::agent::outcome::{Outcome, inspection};
use crate::node::agent::recorded::{add_pieces, recorded};
use crate::node::create::capability;
use crate::node::error::NodeError;
use crate::node::find::on_pvc;
use crate::node::find::search::{self, Search};
use crate::node::host::Host;
use crate::node::legacy::directory;
use crate::node::legacy::files::Sharing;
use crate::node::pvc::available::available;
use crate::node::state::persistence;
use crate::node::steps::Steps;
use crate::node::volumes::{databases, luks, stack};

/// Reads what carries the OSD, its proof, and what the image can do; changes nothing on the disk.
pub(crate) async fn inspect(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    if request.directory.as_ref().is_some_and(|directory| directory.onto.is_none()) {
        return removed_directory(request, host, steps).await;
    }
    let (search, asked) = tokio::join!(
        steps.time("find", search(request, host)),
        steps.time("capability", capability::ask(host))
    );
    let search = match search {
        Ok(search) => search,
        // The key is asked first: without it, a LUKS header of this record can't be read either.
        Err(error) => return Outcome::failed(luks::check_key(host, request).err().unwrap_or(error)),
    };
    let refused = forgets_issued(request, host).or_else(|| luks::check_key(host, request).err());
    let refused = refused.or_else(|| foreign_data(request, &search));
    let refused = refused.or_else(|| unnamed_partition(request, host, &search));
    let refused = match (&search, refused.or_else(|| foreign_layers(request, host, &search))) {
        (Search::One(found), None) => steps
            .time("key", luks::check_key_of_old(host, request, (&found.disk, &found.examine.content)))
            .await
            .err(),
        (Search::One(_) | Search::None(_) | Search::Several(_), refused) => refused,
    };
    let blank = match &search {
        Search::One(found) if request.looks_for_blank() => {
            Some(available(host, request, &found.disk, &found.examine).await)
        }
        Search::One(_) | Search::None(_) | Search::Several(_) => None,
    };
    let mut inspection = inspection(request, host, search, &asked);
    if request.evidence.is_none() {
        let missing = steps.time("kernel", capability::missing_targets(request)).await;
        inspection.capability.missing_tools.extend(missing);
    }
    let refused = refused.or_else(|| add_blank(&mut inspection, blank?));
    if let Some(error) = refused {
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

/// Reads the directory of an OSD that is removed: it goes to no disk, so none is searched.
async fn removed_directory(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let (proof, asked) = tokio::join!(
        steps.time("directory", directory::prove(request, host)),
        steps.time("capability", capability::ask(host))
    );
    let (content, evidence, error) = match proof {
        Ok(proof) => {
            let content = content_of(&proof);
            let (device, auxiliary) = (DeviceIdentity::none(), Vec::new());
            (content, Some(Evidence { device, proof, usable_bytes: 0, auxiliary }), None)
        }
        Err(why) => (Content::NotFound { inspected: why.to_string() }, None, Some(why)),
    };
    let capability = asked.capability.clone();
    let inspection = Inspection { content, evidence, capability, volume: None, kernel: None };
    Outcome { inspection: Some(inspection), error, left: Vec::new() }
}

/// Returns the OSD in a directory as the content of what was inspected.
fn content_of(proof: &Proof) -> Content {
    match (proof.kind(), proof.names()) {
        (Some(format), Some((osd_fsid, whoami, cluster))) => {
            Content::Osd { format, osd_fsid, whoami, cluster }
        }
        _ => Content::Other { what: "a directory without an OSD".to_owned() },
    }
}

/// Adds what the first inspection of PVCs that are to become an OSD has found.
fn add_blank(
    inspection: &mut Inspection,
    found: Result<Result<Evidence, String>, NodeError>,
) -> Option<NodeError> {
    match found {
        Ok(Ok(evidence)) => inspection.evidence = Some(evidence),
        Ok(Err(what)) => inspection.content = Content::Other { what },
        Err(error) => return Some(error),
    }
    None
}

/// Returns the error for data of another owner on a device that the new OSD is to get.
///
/// Asked before the OSD is stopped.
fn foreign_data(request: &NodeRequest, search: &Search) -> Option<NodeError> {
    let Search::One(found) = search else { return None };
    let why =
        found.examine.foreign.clone().filter(|_| request.evidence.is_none() && !request.looks_for_blank())?;
    Some(NodeError::Foreign(why))
}

/// Returns the error for a node whose folder for issued fsids may be lost.
///
/// Between `osd new` and the report, only that folder says that an unfinished OSD is one of osd-migrate.
/// Asked before the OSD is stopped. A removal issues no fsid.
fn forgets_issued(request: &NodeRequest, host: &Host) -> Option<NodeError> {
    if request.evidence.is_some() || request.after.is_some() {
        return None;
    }
    let kind = match persistence::lost_on_restart(&host.state) {
        Ok(kind) => kind?,
        Err(error) => return Some(error),
    };
    let (node, namespace, osd) = (&host.node, &host.namespace, request.osd);
    Some(NodeError::Refused(format!(
        "spec.dataDirHostPath of the CephCluster is on {kind} on node {node}, and a restart of the node may lose what an \
         agent keeps there: the fsid of an unfinished OSD. Mount a file system of a disk there; then: osd-migrate -n \
         {namespace} retry {osd}"
    )))
}

/// Returns the error for a partition without a unique id: a later agent could not find it again.
///
/// Asked before the OSD is stopped. The disk of a removed OSD that keeps its content is not needed again.
fn unnamed_partition(request: &NodeRequest, host: &Host, search: &Search) -> Option<NodeError> {
    let Search::One(found) = search else { return None };
    let is_unnamed = request.evidence.is_none() && found.disk.identity.wwn.is_none();
    let disk =
        found.disk.parent.as_ref().filter(|_| is_unnamed && request.after != Some(DiskAfter::Leave))?;
    let (name, part) = (&found.disk.name, found.disk.node.display());
    let disk = host.dev.join(disk.replace('!', "/"));
    let (disk, namespace, osd) = (disk.display(), &host.namespace, request.osd);
    Some(NodeError::Refused(format!(
        "partition {part} has no unique id, or is elsewhere in the partition table on {disk} than in the kernel: after the \
         stop it could not be found again. Compare on the node: partx -s {disk}; cat /sys/class/block/{name}/start \
         /sys/class/block/{name}/size. If they differ: partx -u {disk}; then: osd-migrate -n {namespace} retry {osd}"
    )))
}

/// Returns the error for a layer of the host on the OSD's disk; such a layer is never closed or wiped.
///
/// Asked before the OSD is stopped.
fn foreign_layers(request: &NodeRequest, host: &Host, search: &Search) -> Option<NodeError> {
    let Search::One(found) = search else { return None };
    let proof = found.examine.proof.as_ref().filter(|_| found.examine.about == Some(request.old))?;
    stack::foreign_layer(host, &found.disk, proof, request.data_pvc()).map(NodeError::Refused)
}

/// Checks, before the OSD is stopped, that its new database can be created on the configured device.
///
/// After the stop the database may exist already. An image without LVM's tools is reported separately.
async fn database(request: &NodeRequest, host: &Host, steps: &Steps) -> Result<(), NodeError> {
    match &request.db {
        Some(db) if request.evidence.is_none() && capability::missing_for_volumes(host).is_empty() => {
            steps.time("database", databases::prove(host, db, request.cluster)).await
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
            let (device, auxiliary) = (directory.onto.clone()?, Vec::new());
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
    if let Some(pvc) = request.data_pvc() {
        return on_pvc::any(host, request, pvc, Sharing::WithTheDaemon).await;
    }
    if let Some(onto) = request.directory.as_ref().and_then(|directory| directory.onto.as_ref()) {
        let is_blank = |examine: &DiskFinding| examine.content == Content::Blank;
        return search::recorded(host, onto, request, Sharing::WithTheDaemon, is_blank).await;
    }
    if request.on_file {
        return search::on_file(host, |found| found.examine.about == Some(request.old)).await;
    }
    let mut search = search::carrier(host, request).await?;
    add_pieces(request, host, &mut search).await?;
    Ok(search)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::disk::devices::Disk;
    use crate::node::find::search::FoundDisk;
    use crate::node::samples::{bare_disk, host, request};

    fn found(parent: Option<&str>, wwn: Option<&str>) -> Search {
        let mut disk = Disk { parent: parent.map(str::to_owned), ..bare_disk(&["ata-1-part1"], 1 << 40) };
        (disk.name, disk.node) = ("sdb1".into(), "/dev/sdb1".into());
        disk.identity.wwn = wwn.map(str::to_owned);
        let examine = DiskFinding::plain(Content::Blank, None);
        Search::One(Box::new(FoundDisk { disk, examine, volume: None }))
    }

    #[test]
    fn state_folder_in_memory_is_refused_before_the_stop() {
        let root = tempfile::tempdir().unwrap();
        let (mut host, asked) = (host(root.path()), request("n1"));
        host.state = "/dev/shm".into();
        let refused = forgets_issued(&asked, &host).unwrap().to_string();
        for part in ["spec.dataDirHostPath", "is on tmpfs on node n1", "retry osd.1"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        let removed = NodeRequest { after: Some(DiskAfter::Wipe), ..asked.clone() };
        assert!(forgets_issued(&removed, &host).is_none());
        host.state = "/proc".into();
        assert!(forgets_issued(&asked, &host).is_none(), "any other file system");
    }

    #[test]
    fn partition_without_a_unique_id_is_refused_before_the_stop() {
        let root = tempfile::tempdir().unwrap();
        let (mut host, asked) = (host(root.path()), request("n1"));
        host.dev = "/dev".into();
        let unnamed = found(Some("sdb"), None);
        let refused = unnamed_partition(&asked, &host, &unnamed).unwrap().to_string();
        for part in ["/dev/sdb1", "partx -u /dev/sdb;", "osd-migrate -n rook-ceph retry osd.1"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        for named in [found(Some("sdb"), Some("partuuid-1")), found(None, None)] {
            assert!(unnamed_partition(&asked, &host, &named).is_none(), "{named:?}");
        }
        let left = NodeRequest { after: Some(DiskAfter::Leave), ..asked };
        assert!(unnamed_partition(&left, &host, &unnamed).is_none());
    }
}
