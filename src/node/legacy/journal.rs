//! The head of Filestore's journal, which identifies the OSD. libblkid does not know the journal's own
//! signature.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::domain::osd::OsdFsid;
use crate::node::error::NodeError;

/// First bytes: the form of the head, and how many bytes follow.
///
/// They have not changed since Argonaut.
const BEGINS: [u8; 8] = [4, 0, 0, 0, 64, 0, 0, 0];
/// Offset of the fsid, after `BEGINS` and 64 bits of flags.
const FSID_AT: usize = 16;

/// Returns the OSD of the journal at the start of a device or file.
pub(super) fn fsid_at_head(node: &Path) -> Result<Option<OsdFsid>, NodeError> {
    let file = File::open(node).map_err(NodeError::io("open", node))?;
    let mut head = [0; FSID_AT + 16];
    file.read_exact_at(&mut head, 0).map_err(NodeError::io("read", node))?;
    Ok(parse(&head))
}

fn parse(head: &[u8]) -> Option<OsdFsid> {
    head.strip_prefix(&BEGINS)?;
    let fsid = head.get(FSID_AT..FSID_AT + 16)?.try_into().ok()?;
    OsdFsid::new(uuid::Uuid::from_bytes(fsid))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first 80 bytes that mkfs of 16.2.15 writes.
    const HEAD: &[u8] =
        include_bytes!("../../../tests/suite/fixtures/legacy/16.2.15/readers/journal-head.bin");

    #[test]
    fn journal_head_written_by_mkfs_yields_the_osd_fsid() {
        assert_eq!(parse(HEAD).unwrap().to_string(), "92810c19-d331-49e2-b880-1dc501f87008");
    }

    #[test]
    fn journal_head_that_is_malformed_yields_no_osd_fsid() {
        assert_eq!(parse(&[0; 32]), None);
        assert_eq!(parse(&HEAD[..31]), None);
        let mut other = HEAD.to_vec();
        other[0] = 3;
        assert_eq!(parse(&other), None);
        other[0] = 4;
        other[FSID_AT..FSID_AT + 16].fill(0);
        assert_eq!(parse(&other), None, "an fsid of zeros is none");
    }
}
