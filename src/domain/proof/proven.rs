//! Compares what is read of an OSD now with its recorded proof.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::domain::guard::{Guard, passes};
use crate::domain::inspection::{Evidence, NodeRequest, Proof};
use crate::domain::osd::{OsdFsid, Role};

/// Part of a proof by partitions that can be read while the disk is open exclusively, which keeps it from
/// being mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reread {
    /// unique guids of all partitions in the table
    pub partitions: Vec<String>,
    /// uuid of the file system on the data partition
    pub fs_uuid: Option<String>,
    /// OSD of the label that a partition begins with, by the partition's unique guid
    pub labels: BTreeMap<String, OsdFsid>,
}

/// Checks that the evidence is of the OSD that the request names, and that the disk's content equals it.
pub fn old_is_proven(request: &NodeRequest, evidence: &Evidence, seen: &Proof) -> Result<(), String> {
    let Some((fsid, whoami, cluster)) = evidence.proof.names() else {
        return Err("expected an available disk, found an OSD".to_owned());
    };
    let mut differences = Differences::default();
    differences.note("OSD fsid of the evidence", &request.old, &fsid);
    differences.note("OSD id of the evidence", &request.osd, &whoami);
    differences.note("cluster of the evidence", &request.cluster, &cluster);
    differences.proofs(&evidence.proof, seen);
    differences.into_result()
}

/// Compares the part of a proof by partitions that can be read while the disk is open exclusively.
pub fn same_partitions(recorded: &Proof, seen: &Reread) -> Result<(), String> {
    let Proof::Partitions { parts, fs_uuid, osd_fsid, .. } = recorded else {
        return Err(format!("expected {}, found partitions", kind(recorded)));
    };
    let mut differences = Differences::default();
    differences.note("number of partitions", &parts.len(), &seen.partitions.len());
    for (role, uuid) in parts {
        let found = seen.partitions.iter().find(|found| *found == uuid).map_or("none", String::as_str);
        differences.note(&format!("partition for {role}"), uuid.as_str(), found);
        if matches!(role, Role::Block | Role::Db | Role::Wal) {
            let found = seen.labels.get(uuid).map_or_else(|| "none".to_owned(), OsdFsid::to_string);
            differences.note(&format!("OSD in the label of {role}"), &osd_fsid.to_string(), &found);
        }
    }
    let or_none = |uuid: &Option<String>| uuid.clone().unwrap_or_else(|| "none".to_owned());
    differences.note("file system", &or_none(fs_uuid), &or_none(&seen.fs_uuid));
    differences.into_result()
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn note<T: PartialEq + Display + ?Sized>(&mut self, what: &str, expected: &T, found: &T) {
        if expected != found {
            self.0.push(format!("{what}: expected {expected}, found {found}"));
        }
    }

    fn proofs(&mut self, expected: &Proof, found: &Proof) {
        if let (Some(recorded), Some(seen)) = (expected.names(), found.names()) {
            self.note("OSD fsid on the disk", &recorded.0, &seen.0);
            self.note("OSD id on the disk", &recorded.1, &seen.1);
            self.note("cluster on the disk", &recorded.2, &seen.2);
        }
        let (recorded, seen) = (marks(expected), marks(found));
        if let (Proof::Volume { alone: true, name, .. }, Proof::Volume { alone: false, .. }) =
            (expected, found)
        {
            self.0.push(format!(
                "{name} was alone in its volume group, but its volume group has other volumes now"
            ));
        }
        let same_kind = expected.kind().is_some() && expected.kind() == found.kind();
        if same_kind && recorded.len() == seen.len() {
            for ((what, recorded), (_, seen)) in recorded.iter().zip(&seen) {
                self.note(what, recorded.as_str(), seen.as_str());
            }
        } else {
            self.note("kind", &kind(expected), &kind(found));
        }
    }

    fn into_result(self) -> Result<(), String> {
        if passes(Guard::ProofNames, self.0.is_empty()) { Ok(()) } else { Err(self.0.join("; ")) }
    }
}

/// Returns the marks of a proof in addition to the names; the kinds have different numbers of marks.
fn marks(proof: &Proof) -> Vec<(String, String)> {
    let described = |what: &str, value: &str| (what.to_owned(), value.to_owned());
    match proof {
        Proof::BluestoreLabel { activatable, .. } => {
            vec![described("key in the label", &activatable.to_string())]
        }
        Proof::Partitions { parts, fs_uuid, .. } => {
            let parts = parts.iter().map(|(role, uuid)| (format!("partition for {role}"), uuid.clone()));
            let fs = described("file system", fs_uuid.as_deref().unwrap_or("none"));
            parts.chain([fs]).collect()
        }
        Proof::Volume { group, volume, luks, .. } => vec![
            described("volume group", group),
            described("volume", volume),
            described("LUKS header", luks.as_deref().unwrap_or("none")),
        ],
        Proof::Luks { header, .. } => vec![described("LUKS header", header)],
        Proof::Directory { path, .. } => vec![described("directory", path)],
        Proof::Available { .. } => Vec::new(),
    }
}

fn kind(proof: &Proof) -> String {
    proof.kind().map_or_else(|| "an available disk".to_owned(), |kind| kind.to_string())
}

#[cfg(test)]
#[path = "proven_tests.rs"]
mod tests;
