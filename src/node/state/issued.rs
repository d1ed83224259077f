//! Issued fsids: the fsids that the shim let through to `osd new` for one OSD and record. Each is written and
//! fsynced *before* the command is passed on. So no fsid of osd-migrate can be in the osdmap or on a disk
//! without being known here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::domain::inspection::{NodeRequest, RecordId};
use crate::domain::osd::{OsdFsid, OsdId};
use crate::node::error::NodeError;
use crate::node::host::Host;

/// Returns the path of the file with the issued fsids of an OSD and record.
///
/// A record's id is set by osd-migrate, but it becomes part of a path. So only plain characters are used.
pub(crate) fn path(state: &Path, osd: OsdId, record: &RecordId) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let record: String = record.0.chars().map(plain).collect();
    state.join(format!("osd-{}.{record}.issued", osd.0))
}

/// Adds an issued fsid; when the function returns, the fsid is on the disk.
pub(crate) fn add(path: &Path, fsid: OsdFsid) -> Result<(), NodeError> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(NodeError::io("open", path))?;
    // A line break first ends what a crash may have left of the line before.
    file.write_all(format!("\n{fsid}\n").as_bytes()).map_err(NodeError::io("write", path))?;
    file.sync_all().map_err(NodeError::io("fsync", path))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(NodeError::io("fsync", folder))
}

/// Returns all issued fsids.
///
/// A line that is no fsid was cut off by a crash before its command was passed on, so it counts as not
/// issued.
pub(crate) fn read(path: &Path) -> Result<BTreeSet<OsdFsid>, NodeError> {
    match std::fs::read(path) {
        Ok(bytes) => {
            Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| line.parse().ok()).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(NodeError::io("read", path)(error)),
    }
}

/// Returns the issued fsids of all agents of this node, with the OSD that each was for.
pub(crate) fn all(state: &Path) -> Result<BTreeMap<OsdFsid, OsdId>, NodeError> {
    let entries = match std::fs::read_dir(state) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(NodeError::io("list", state)(error)),
    };
    let mut all = BTreeMap::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let osd = name
            .strip_suffix(".issued")
            .and_then(|name| name.strip_prefix("osd-")?.split('.').next()?.parse().ok());
        if let Some(osd) = osd {
            all.extend(read(&path)?.into_iter().map(|fsid| (fsid, osd)));
        }
    }
    Ok(all)
}

/// Returns the issued fsids of the request's OSD and record: those of the node, and those that agents
/// reported before its system was installed again.
pub(crate) fn of(request: &NodeRequest, host: &Host) -> Result<BTreeSet<OsdFsid>, NodeError> {
    let of_node = read(&path(&host.state, request.osd, &request.record))?;
    Ok(of_node.union(&request.issued).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fsid(n: u8) -> OsdFsid {
        format!("00000000-0000-0000-0000-0000000000{n:02}").parse().unwrap()
    }

    #[test]
    fn issued_fsids_are_read_past_a_torn_line() {
        let state = tempfile::tempdir().unwrap();
        let path = path(state.path(), OsdId(3), &RecordId("r-1".into()));
        assert_eq!(read(&path).unwrap(), BTreeSet::new());
        add(&path, fsid(1)).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"00000000-0000-00").unwrap();
        add(&path, fsid(2)).unwrap();
        assert_eq!(read(&path).unwrap(), BTreeSet::from([fsid(1), fsid(2)]));
        std::fs::write(state.path().join("osd-3.lock"), "").unwrap();
        assert_eq!(all(state.path()).unwrap(), BTreeMap::from([(fsid(1), OsdId(3)), (fsid(2), OsdId(3))]));
        assert_eq!(all(&state.path().join("none")).unwrap(), BTreeMap::new());
    }

    #[test]
    fn fsids_of_the_ledger_count_on_a_node_that_was_installed_again() {
        let state = tempfile::tempdir().unwrap();
        let host = crate::node::samples::host(state.path());
        std::fs::create_dir_all(&host.state).unwrap();
        let request = NodeRequest { issued: [fsid(1)].into(), ..crate::node::samples::request("n1") };
        assert_eq!(of(&request, &host).unwrap(), BTreeSet::from([fsid(1)]));
        add(&path(&host.state, request.osd, &request.record), fsid(2)).unwrap();
        assert_eq!(of(&request, &host).unwrap(), BTreeSet::from([fsid(1), fsid(2)]));
    }

    #[test]
    fn issued_file_never_leaves_the_state_folder() {
        let path = path(Path::new("/state"), OsdId(3), &RecordId("../x y".into()));
        assert_eq!(path, Path::new("/state/osd-3.___x_y.issued"));
    }
}
