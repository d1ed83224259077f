//! The sequence of the agents of one record. Each agent saves its attempt under the lock; an agent that
//! starts after a later one has checked in does nothing.
//!
//! A pod may be slow to start, or be frozen before it has the lock, while its Job is given up. The runner's
//! next action rests on the inspection of the last attempt, so no earlier agent may run after it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::domain::inspection::RecordId;
use crate::domain::osd::OsdId;
use crate::node::error::NodeError;
use crate::node::state::issued;

fn path(state: &Path, osd: OsdId, record: &RecordId) -> PathBuf {
    issued::path(state, osd, record).with_extension("attempt")
}

/// Saves the attempt, unless a later one is saved already.
///
/// The caller must have the lock.
pub(crate) fn check_in(state: &Path, osd: OsdId, record: &RecordId, attempt: u32) -> Result<(), NodeError> {
    let path = path(state, osd, record);
    let last: u32 = match fs::read_to_string(&path) {
        // Text that a crash has cut off is no number, and its agent had done nothing.
        Ok(text) => text.trim().parse().unwrap_or(0),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(NodeError::io("read", &path)(error)),
    };
    if attempt < last {
        return Err(NodeError::Refused(format!(
            "attempt {attempt} is too late: attempt {last} of its record has already run on this node"
        )));
    }
    let young = path.with_extension("attempt.new");
    let mut file = File::create(&young).map_err(NodeError::io("write", &young))?;
    file.write_all(format!("{attempt}\n").as_bytes()).map_err(NodeError::io("write", &young))?;
    file.sync_all().map_err(NodeError::io("fsync", &young))?;
    fs::rename(&young, &path).map_err(NodeError::io("rename", &young))?;
    File::open(state).and_then(|folder| folder.sync_all()).map_err(NodeError::io("fsync", state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_of_an_earlier_attempt_is_refused_after_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let check_in =
            |record: &str, attempt| check_in(folder.path(), OsdId(3), &RecordId(record.to_owned()), attempt);
        for attempt in [1, 1, 3] {
            check_in("a-1", attempt).unwrap();
        }
        assert!(matches!(check_in("a-1", 2), Err(NodeError::Refused(why)) if why.contains("attempt 3")));
        check_in("a-1", 4).unwrap();
        check_in("b-2", 1).unwrap();
        fs::write(path(folder.path(), OsdId(3), &RecordId("b-2".to_owned())), "").unwrap();
        check_in("b-2", 1).unwrap();
    }
}
