//! BlueStore's label, read by `ceph-bluestore-tool show-label`. Labels of OSDs that ceph-volume created
//! contain the OSD's key, so only the fields named here are taken from a label.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::domain::inspection::Content;
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId, Role};
use crate::node::error::NodeError;
use crate::node::tools::command::{QUICK, blocking};
use crate::node::tools::query::Query;

/// Offsets of labels: the start, and the offsets of copies since Tentacle (`bdev_label_multi`).
pub(crate) const PLACES: [u64; 5] = [0, 1 << 30, 10 << 30, 100 << 30, 1000 << 30];
/// First bytes of a label.
const MAGIC: &[u8; 23] = b"bluestore block device\n";
/// Digits and dashes of a uuid.
const UUID: usize = 36;

/// Content of a label, without the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) osd_fsid: OsdFsid,
    pub(crate) whoami: Option<OsdId>,
    pub(crate) cluster: Option<ClusterFsid>,
    pub(crate) finished: bool,
    pub(crate) activatable: bool,
    /// `main`, or `bluefs db`, `bluefs wal` on the OSD's other devices.
    pub(crate) part: String,
}

impl Label {
    /// Converts the label into its form in a report.
    pub(crate) fn into_content(self) -> Content {
        let Self { osd_fsid, whoami, cluster, finished, activatable, part: _ } = self;
        Content::Bluestore { osd_fsid, whoami, cluster, finished, activatable }
    }

    /// Returns a text for people.
    pub(crate) fn described(&self) -> String {
        format!("`{}` of OSD {}", self.part, self.osd_fsid)
    }

    /// Returns the role of the device.
    pub(crate) fn role(&self) -> Option<Role> {
        match self.part.as_str() {
            "main" => Some(Role::Block),
            "bluefs db" => Some(Role::Db),
            "bluefs wal" => Some(Role::Wal),
            _ => None,
        }
    }
}

/// An OSD's key.
///
/// The type has no `Debug`, and the key leaves this process only through a pipe.
pub(crate) struct Key(String);

impl Key {
    /// Returns the input of `osd new -i -`.
    pub(crate) fn to_secrets(&self) -> Vec<u8> {
        serde_json::json!({ "cephx_secret": self.0 }).to_string().into_bytes()
    }
}

/// Returns the offsets at which a label begins.
///
/// Reads without Ceph's tool, so that the check is cheap on every disk.
pub(crate) fn places(node: &Path, from: u64, length: u64) -> Result<Vec<u64>, NodeError> {
    let file = File::open(node).map_err(NodeError::io("open", node))?;
    let mut found = Vec::new();
    for place in PLACES.into_iter().filter(|place| place + 4096 <= length) {
        let mut head = [0; MAGIC.len()];
        file.read_exact_at(&mut head, from + place).map_err(NodeError::io("read", node))?;
        if head == *MAGIC {
            found.push(place);
        }
    }
    Ok(found)
}

/// Returns the OSD of the label at the start of a device: the uuid follows the magic bytes in plain text.
pub(crate) fn fsid_at_head(node: &Path) -> Result<Option<OsdFsid>, NodeError> {
    let file = File::open(node).map_err(NodeError::io("open", node))?;
    let mut head = [0; MAGIC.len() + UUID];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(NodeError::io("read", node)(error)),
    }
    let uuid = head.strip_prefix(MAGIC).and_then(|rest| std::str::from_utf8(rest).ok());
    Ok(uuid.and_then(|uuid| uuid.parse().ok()))
}

/// Reads the label of a device that has one.
pub(crate) async fn read(node: &Path) -> Result<Label, NodeError> {
    let raw: Raw = show(node).await?;
    raw.into_label(&node.display().to_string())
}

/// Reads the key in the label of a device.
pub(crate) async fn read_key(node: &Path) -> Result<Key, NodeError> {
    let raw: WithKey = show(node).await?;
    raw.osd_key.map(Key).ok_or_else(|| NodeError::Unreadable {
        subject: format!("the label of {}", node.display()),
        why: "it contains no osd_key".to_owned(),
    })
}

async fn show<T: DeserializeOwned>(node: &Path) -> Result<T, NodeError> {
    let answer = Query::Label(node).ask_well().await?;
    // The error does not quote the text: the text may contain a key.
    parse(&answer.stdout).ok_or_else(|| NodeError::Unreadable {
        subject: format!("the label of {}", node.display()),
        why: "not the JSON of ceph-bluestore-tool show-label".to_owned(),
    })
}

/// Parses the object of the one requested device.
///
/// Some releases print lines before the JSON.
fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    let json = text.get(text.find('{')?..)?;
    let by_device: BTreeMap<String, T> = serde_json::from_str(json).ok()?;
    let mut labels = by_device.into_values();
    let label = labels.next()?;
    labels.next().is_none().then_some(label)
}

#[derive(Deserialize)]
struct Raw {
    osd_uuid: OsdFsid,
    whoami: Option<String>,
    ceph_fsid: Option<ClusterFsid>,
    mkfs_done: Option<String>,
    ready: Option<String>,
    #[serde(default)]
    description: String,
    osd_key: Option<Hidden>,
}

#[derive(Deserialize)]
struct WithKey {
    osd_key: Option<String>,
}

/// A value that exists; its content is not kept.
struct Hidden;

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl Raw {
    fn into_label(self, subject: &str) -> Result<Label, NodeError> {
        let whoami = self.whoami.map(|text| text.parse()).transpose().map_err(
            |error: crate::domain::osd::NotAnOsd| NodeError::Unreadable {
                subject: format!("the label of {subject}"),
                why: format!("whoami: {error}"),
            },
        )?;
        Ok(Label {
            osd_fsid: self.osd_uuid,
            whoami,
            cluster: self.ceph_fsid,
            // `ready` is the last key that the OSD's mkfs writes, after BlueStore's own mkfs has ended
            // (OSD::write_meta, 16.2 to 20.2). BlueStore's `mkfs_done` is in the label of 16.2 and 18.2, but
            // no longer in that of 20.2.4.
            finished: self.ready.as_deref() == Some("ready")
                && self.mkfs_done.as_deref().is_none_or(|done| done == "yes"),
            activatable: self.osd_key.is_some(),
            part: self.description,
        })
    }
}

/// Returns the OSD whose label a device begins with.
pub(crate) async fn label_at(node: &Path) -> Result<Option<OsdFsid>, NodeError> {
    let path = node.to_owned();
    blocking("read", node.display().to_string(), QUICK, move || fsid_at_head(&path)).await
}

const LABEL: u64 = 4096;

/// Returns the BlueStore label that a volume or mapping begins with.
pub(crate) async fn label_on(node: &Path) -> Result<Option<Label>, NodeError> {
    let path = node.to_owned();
    let head = move || places(&path, 0, LABEL);
    if blocking("read", node.display().to_string(), QUICK, head).await?.is_empty() {
        return Ok(None);
    }
    read(node).await.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples::{self, RELEASES, said};

    /// A label of 16.2.15, created by ceph-volume raw prepare.
    ///
    /// The key is not a real one.
    const BY_CEPH_VOLUME: &str = r#"{
        "/dev/loop15": {
            "osd_uuid": "500fff8e-39ff-4d5f-a72f-3cd43f874c6b",
            "size": 6442450944,
            "btime": "2026-11-21T09:52:07.139227+0000",
            "description": "main",
            "bluefs": "1",
            "ceph_fsid": "5f382147-dc61-408c-ad68-8e6a2e37590b",
            "magic": "ceph osd volume v026",
            "mkfs_done": "yes",
            "osd_key": "c2VjcmV0",
            "ready": "ready",
            "whoami": "3"
        }
    }"#;

    fn label(text: &str) -> Label {
        parse::<Raw>(text).unwrap().into_label("x").unwrap()
    }

    #[test]
    fn ceph_volumes_label_is_finished_and_activatable() {
        let label = label(BY_CEPH_VOLUME);
        assert!(label.finished && label.activatable);
        assert_eq!((label.whoami, label.part.as_str()), (Some(OsdId(3)), "main"));
        let sent = serde_json::to_string(&label.into_content()).unwrap();
        assert!(!sent.contains("c2VjcmV0"), "{sent}");
        let WithKey { osd_key } = parse(BY_CEPH_VOLUME).unwrap();
        assert_eq!(Key(osd_key.unwrap()).to_secrets(), br#"{"cephx_secret":"c2VjcmV0"}"#);
    }

    #[test]
    fn captured_labels_of_each_legacy_kind_are_read() {
        let parts = [("db", Role::Db), ("wal", Role::Wal)];
        for (kind, osd, auxiliary) in [
            ("bluestore-part", 0, &[][..]),
            ("bluestore-dir", 1, &parts[..]),
            ("bluestore-part-db", 2, &parts[..]),
            ("rook-part", 3, &parts[..]),
            ("rook-part-db", 4, &parts[..]),
            ("bluestore-dev", 5, &[][..]),
            ("bluestore-dev-db", 6, &parts[..]),
            ("bluestore-hand-part", 7, &[][..]),
        ] {
            for release in RELEASES {
                let block = label(&samples::label(release, kind, "block"));
                assert_eq!(
                    (block.role(), block.whoami),
                    (Some(Role::Block), Some(OsdId(osd))),
                    "{release}: {kind}"
                );
                assert!(block.finished && !block.activatable && block.cluster.is_some(), "{release}: {kind}");
                for (part, role) in auxiliary {
                    let label = label(&samples::label(release, kind, part));
                    assert_eq!(
                        (label.role(), label.osd_fsid),
                        (Some(*role), block.osd_fsid),
                        "{release}: {kind}"
                    );
                    assert_eq!(
                        (label.whoami, label.cluster, label.finished),
                        (None, None, false),
                        "{release}: {kind}"
                    );
                }
            }
        }
    }

    #[test]
    fn label_without_a_key_or_ready_is_not_activatable_or_finished() {
        assert!(!label(&BY_CEPH_VOLUME.replace("osd_key", "other")).activatable);
        assert!(!label(&BY_CEPH_VOLUME.replace("\"ready\": \"ready\",", "")).finished);
        let young = r#"x: load failed
            {"/dev/a": {"osd_uuid": "500fff8e-39ff-4d5f-a72f-3cd43f874c6b", "size": 1, "description": "main"}}"#;
        let young = label(young);
        assert_eq!((young.finished, young.whoami, young.cluster), (false, None, None));
    }

    #[test]
    fn labels_of_three_releases_are_read() {
        for release in RELEASES {
            let answer = |name: &str| said(release, &format!("show-label-{name}"));
            for (name, osd, activatable) in
                [("by-hand.json", 0, false), ("raw.json", 3, true), ("db-main.json", 4, true)]
            {
                let label = label(&answer(name));
                assert_eq!((label.whoami, label.activatable), (Some(OsdId(osd)), activatable), "{release}");
                assert!(label.cluster.is_some() && label.part == "main", "{release}");
                assert!(label.finished, "{release}: {name}");
            }
            let db = label(&answer("db-db.json"));
            assert_eq!((db.part.as_str(), db.whoami, db.finished), ("bluefs db", None, false), "{release}");
            assert!(parse::<Raw>(&answer("blank.txt")).is_none(), "{release}");
        }
    }

    #[test]
    fn malformed_label_is_never_taken_for_a_label() {
        assert!(parse::<Raw>("{}").is_none());
        assert!(parse::<Raw>("unable to read label").is_none());
        assert!(parse::<Raw>(&BY_CEPH_VOLUME.replace("500fff8e-39ff", "00000000-0000")).is_some());
        assert!(parse::<Raw>(&BY_CEPH_VOLUME.replace("500fff8e-", "")).is_none());
        assert!(parse::<Raw>(&BY_CEPH_VOLUME.replace("\"3\"", "\"x\"")).unwrap().into_label("x").is_err());
    }

    #[test]
    fn osd_fsid_is_read_in_plain_text_at_the_head_of_a_label() {
        let image = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(fsid_at_head(image.path()).unwrap(), None, "too short");
        image.as_file().set_len(4096).unwrap();
        assert_eq!(fsid_at_head(image.path()).unwrap(), None);
        image.as_file().write_all_at(MAGIC, 0).unwrap();
        assert_eq!(fsid_at_head(image.path()).unwrap(), None, "cut short");
        image.as_file().write_all_at(b"500fff8e-39ff-4d5f-a72f-3cd43f874c6b\n", MAGIC.len() as u64).unwrap();
        let fsid = fsid_at_head(image.path()).unwrap().unwrap();
        assert_eq!(fsid.to_string(), "500fff8e-39ff-4d5f-a72f-3cd43f874c6b");
    }

    #[test]
    fn label_copies_are_found_where_tentacle_writes_them() {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(2 << 30).unwrap();
        assert_eq!(places(image.path(), 0, 2 << 30).unwrap(), [0; 0]);
        image.as_file().write_all_at(MAGIC, 1 << 30).unwrap();
        assert_eq!(places(image.path(), 0, 2 << 30).unwrap(), [1 << 30]);
        image.as_file().write_all_at(MAGIC, 0).unwrap();
        assert_eq!(places(image.path(), 0, 2 << 30).unwrap(), [0, 1 << 30]);
        assert_eq!(places(image.path(), 512, 1 << 20).unwrap(), [0; 0]);
    }
}
