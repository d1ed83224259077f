//! LVM's queries: a fixed list, no shell. They never lock. Tags of volumes contain keys
//! (`ceph.cephx_lockbox_secret`), so only the tags named in this file are retained.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId, Role};
use crate::node::error::NodeError;
use crate::node::tools::command::run;
use crate::node::tools::query;
use crate::node::volumes::hidden;

/// Limit of one command: LVM waits for the disks of the node one after the other.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// Options of every query.
///
/// `--nohints`: LVM's hints do not include what another pod created.
const QUIET: [&str; 8] =
    ["--readonly", "--nohints", "--reportformat", "json", "--units", "b", "--nosuffix", "--options"];

/// A logical volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lv {
    pub(super) group: String,
    pub(super) group_uuid: String,
    pub(super) name: String,
    /// uuid of the volume; also the name of its dm-crypt mapping, as ceph-volume calls it.
    pub(super) uuid: String,
    /// uuid of the volume of which this one is a snapshot.
    pub(super) origin: Option<String>,
    /// How it is laid out: `linear`, `striped`, `thin,sparse`, `raid,raid1` and others.
    pub(super) layout: String,
    pub(super) size_bytes: u64,
    /// Tags of osd-migrate.
    pub(super) tags: Vec<String>,
    /// Cluster of the volume's OSD, by ceph-volume's tag.
    pub(super) cluster: Option<ClusterFsid>,
    /// Rest of the content of ceph-volume's tags.
    pub(super) ceph: CephTags,
}

impl Lv {
    /// Returns `VG/LV`.
    pub(super) fn named(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// Returns what forbids the removal of the volume: LVM removes its snapshots together with it.
    pub(super) fn snapshot(&self, all: &[Self]) -> Option<String> {
        let of_this = |other: &&Self| other.origin.as_deref() == Some(self.uuid.as_str());
        let name = all.iter().find(of_this).map(Self::named)?;
        Some(format!(
            "{} has the snapshot {name}, which would be removed with it. Remove the snapshot first",
            self.named()
        ))
    }

    /// Returns the path of the volume's node.
    pub(super) fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.group).join(&self.name)
    }

    /// Returns the path of the node of the volume's dm-crypt mapping, which exists while the mapping is open.
    pub(super) fn mapping(&self) -> PathBuf {
        Path::new("/dev/mapper").join(&self.uuid)
    }
}

/// Content of ceph-volume's tags of a volume, without the key that they contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CephTags {
    /// `ceph.type`: `block`, `data` (of a Filestore), `db`, `wal`, `journal`
    pub(super) kind: Option<String>,
    pub(super) osd_fsid: Option<OsdFsid>,
    pub(super) whoami: Option<OsdId>,
    pub(super) encrypted: bool,
    /// uuids of the OSD's other parts: of a volume, or of a partition.
    pub(super) auxiliary: Vec<(Role, String)>,
}

/// Auxiliary parts, as tags name them: `ceph.db_uuid`.
const AUXILIARY: [(Role, &str); 3] = [(Role::Db, "db"), (Role::Wal, "wal"), (Role::Journal, "journal")];

/// A volume group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) tags: Vec<String>,
}

/// A physical volume and its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) physical: String,
    pub(super) group: Group,
    pub(super) group_uuid: String,
    /// Available bytes of the group.
    pub(super) free_bytes: u64,
}

/// A segment of a physical volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// Current device of the physical volume.
    pub(super) device: PathBuf,
    pub(super) physical: String,
    pub(super) group: Group,
    pub(super) group_uuid: String,
    /// uuid of the volume on the segment, hidden volumes included; none if the segment is available.
    pub(super) volume: Option<String>,
}

/// Returns all logical volumes of the node.
pub(super) async fn volumes() -> Result<Vec<Lv>, NodeError> {
    let options = "vg_name,vg_uuid,lv_name,lv_uuid,lv_size,lv_tags,lv_layout,origin_uuid";
    let report: Report = ask(&["lvs", options]).await?;
    Ok(report.lvs().map(Row::into_lv).collect())
}

/// Returns all segments of all physical volumes of the node.
pub(super) async fn segments() -> Result<Vec<Segment>, NodeError> {
    let options = "pv_name,pv_uuid,vg_name,vg_uuid,vg_tags,lv_uuid";
    let report: Report = ask(&["pvs", options, "--segments"]).await?;
    Ok(report.segments().map(Row::into_segment).collect())
}

/// Returns the volume group on a device and the group's available bytes; none if the device is in no group.
pub(super) async fn group_on(device: &Path) -> Result<Option<(Group, u64)>, NodeError> {
    let report: Report = ask(&["pvs", "vg_name,vg_tags,vg_free", &device.display().to_string()]).await?;
    let mut groups = report.pvs().map(|row| (row.vg_free.parse().unwrap_or(0), row.into_group()));
    Ok(groups.find(|(_, group)| !group.name.is_empty()).map(|(free, group)| (group, free)))
}

/// Returns all physical volumes that are in a group.
pub(super) async fn members() -> Result<Vec<Member>, NodeError> {
    let report: Report = ask(&["pvs", "pv_uuid,vg_name,vg_uuid,vg_tags,vg_free"]).await?;
    Ok(report.pvs().filter(|row| !row.vg_name.is_empty()).map(Row::into_member).collect())
}

/// Returns the tags of a volume group, or none if the group does not exist.
pub(super) async fn tags_of(group: &str) -> Result<Option<Vec<String>>, NodeError> {
    let report: Report = ask(&["vgs", "vg_name,vg_tags"]).await?;
    Ok(report.vgs().map(Row::into_group).find(|seen| seen.name == group).map(|seen| seen.tags))
}

/// Runs a query: the program, the columns, and further arguments.
async fn ask(words: &[&str]) -> Result<Report, NodeError> {
    let (program, rest) = words.split_first().unwrap_or((&"lvs", &[]));
    let mut words: Vec<&str> = hidden::options();
    words.extend(QUIET.iter().chain(rest));
    query::json(&run(program, &words, None, LIMIT).await?.good()?)
}

#[derive(Deserialize)]
struct Report {
    report: Vec<Rows>,
}

#[derive(Deserialize)]
struct Rows {
    #[serde(default)]
    lv: Vec<Row>,
    #[serde(default)]
    pv: Vec<Row>,
    #[serde(default)]
    pvseg: Vec<Row>,
    #[serde(default)]
    vg: Vec<Row>,
}

impl Report {
    fn lvs(self) -> impl Iterator<Item = Row> {
        self.report.into_iter().flat_map(|rows| rows.lv)
    }
    fn pvs(self) -> impl Iterator<Item = Row> {
        self.report.into_iter().flat_map(|rows| rows.pv)
    }
    fn segments(self) -> impl Iterator<Item = Row> {
        self.report.into_iter().flat_map(|rows| rows.pvseg)
    }
    fn vgs(self) -> impl Iterator<Item = Row> {
        self.report.into_iter().flat_map(|rows| rows.vg)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Row {
    pv_name: String,
    pv_uuid: String,
    vg_name: String,
    vg_uuid: String,
    vg_tags: String,
    vg_free: String,
    lv_name: String,
    lv_uuid: String,
    lv_size: String,
    lv_tags: String,
    lv_layout: String,
    origin_uuid: String,
}

impl Row {
    fn into_group(self) -> Group {
        Group { name: self.vg_name, tags: ours(&self.vg_tags) }
    }

    fn into_member(self) -> Member {
        Member {
            physical: self.pv_uuid.clone(),
            group_uuid: self.vg_uuid.clone(),
            free_bytes: self.vg_free.parse().unwrap_or(0),
            group: self.into_group(),
        }
    }

    fn into_segment(self) -> Segment {
        Segment {
            device: self.pv_name.into(),
            physical: self.pv_uuid,
            group: Group { name: self.vg_name, tags: ours(&self.vg_tags) },
            group_uuid: self.vg_uuid,
            volume: Some(self.lv_uuid).filter(|uuid| !uuid.is_empty()),
        }
    }

    fn into_lv(self) -> Lv {
        let tag = |key: &str| {
            let mut tags =
                self.lv_tags.split(',').filter_map(|tag| tag.strip_prefix("ceph.")?.split_once('='));
            tags.find(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
        };
        let auxiliary = |name: &str| tag(&format!("{name}_uuid")).filter(|uuid| !uuid.is_empty());
        Lv {
            cluster: tag("cluster_fsid").and_then(|fsid| fsid.parse().ok()),
            ceph: CephTags {
                kind: tag("type"),
                osd_fsid: tag("osd_fsid").and_then(|fsid| fsid.parse().ok()),
                whoami: tag("osd_id").and_then(|id| id.parse().ok()),
                encrypted: tag("encrypted").as_deref() == Some("1"),
                auxiliary: AUXILIARY
                    .into_iter()
                    .filter_map(|(role, name)| Some((role, auxiliary(name)?)))
                    .collect(),
            },
            tags: ours(&self.lv_tags),
            size_bytes: self.lv_size.parse().unwrap_or(0),
            group: self.vg_name,
            group_uuid: self.vg_uuid,
            name: self.lv_name,
            uuid: self.lv_uuid,
            layout: self.lv_layout,
            origin: Some(self.origin_uuid).filter(|uuid| !uuid.is_empty()),
        }
    }
}

fn ours(tags: &str) -> Vec<String> {
    tags.split(',').filter(|tag| tag.starts_with("osd-migrate.")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples::{RELEASES, said};

    #[test]
    fn lvm_reports_are_parsed_alike_in_three_releases() {
        for release in RELEASES {
            let report = |name: &str| serde_json::from_str::<Report>(&said(release, name)).unwrap();
            let lvs: Vec<Lv> = report("lvs.json").lvs().map(Row::into_lv).collect();
            let [lv] = lvs.as_slice() else { panic!("{release}: {lvs:?}") };
            assert!(lv.group.starts_with("ceph-") && lv.name.starts_with("osd-block-"), "{release}: {lv:?}");
            assert!(lv.uuid.len() == 38 && lv.cluster.is_some(), "{release}: {lv:?}");
            assert_eq!(lv.tags, ["osd-migrate.osd=7"], "{release}");
            for groups in [
                report("pvs.json").pvs().map(Row::into_group).collect::<Vec<_>>(),
                report("vgs.json").vgs().map(Row::into_group).collect(),
            ] {
                let group = Group { name: lv.group.clone(), tags: lv.tags.clone() };
                assert_eq!(groups, [group], "{release}");
            }
        }
    }

    #[test]
    fn lv_tags_are_read_without_keys_or_those_of_others() {
        let text = r#"{"report": [{"lv": [{"vg_name": "ceph-x", "lv_name": "osd-db-F", "lv_uuid": "vdziVh", "lv_layout": "raid,raid1",
            "lv_tags": "ceph.cephx_lockbox_secret=AQDkaCBpGd3pNBAAk0kgVbmbgP4CcbZ7pDk0Xw==,ceph.cluster_fsid=5f382147-dc61-408c-ad68-8e6a2e37590b,osd-migrate.osd=3"}]}],
            "log": []}"#;
        let report: Report = serde_json::from_str(text).unwrap();
        let lv = report.lvs().map(Row::into_lv).next().unwrap();
        assert_eq!(
            (lv.named().as_str(), lv.tags.as_slice()),
            ("ceph-x/osd-db-F", ["osd-migrate.osd=3".to_owned()].as_slice())
        );
        assert_eq!(
            lv.cluster.map(|cluster| cluster.to_string()).as_deref(),
            Some("5f382147-dc61-408c-ad68-8e6a2e37590b")
        );
        assert!(lv.layout == "raid,raid1" && !format!("{lv:?}").contains("AQD"));
        let none: Report =
            serde_json::from_str(r#"{"report": [{"pv": [{"vg_name": "", "vg_tags": ""}]}]}"#).unwrap();
        assert_eq!(none.pvs().map(Row::into_group).find(|group| !group.name.is_empty()), None);
    }

    #[test]
    fn volume_with_a_snapshot_is_not_removed() {
        let text = r#"{"report": [{"lv": [
            {"vg_name": "vg", "lv_name": "block", "lv_uuid": "a", "origin_uuid": ""},
            {"vg_name": "vg", "lv_name": "before", "lv_uuid": "b", "origin_uuid": "a"}]}]}"#;
        let report: Report = serde_json::from_str(text).unwrap();
        let all: Vec<_> = report.lvs().map(Row::into_lv).collect();
        let why = all[0].snapshot(&all).unwrap();
        assert!(why.starts_with("vg/block has the snapshot vg/before"), "{why}");
        assert_eq!(all[1].snapshot(&all), None);
    }

    macro_rules! captured {
        ($name:literal) => {
            serde_json::from_str::<Report>(include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/suite/fixtures/legacy/lvm/",
                $name
            )))
            .unwrap()
        };
    }

    #[test]
    fn captured_lvs_are_parsed_with_their_db_volumes() {
        let all: Vec<Lv> = captured!("lvs.json").lvs().map(Row::into_lv).collect();
        let with_db = all.iter().find(|lv| lv.ceph.whoami == Some(OsdId(4)) && !lv.ceph.auxiliary.is_empty());
        let with_db = with_db.unwrap();
        assert_eq!((with_db.ceph.kind.as_deref(), with_db.ceph.encrypted), (Some("block"), false));
        let (role, uuid) = &with_db.ceph.auxiliary[0];
        let db = all.iter().find(|lv| lv.uuid == *uuid).unwrap();
        assert_eq!((*role, db.named().as_str(), db.size_bytes), (Role::Db, "metadata/db-4", 1 << 30));
        assert_eq!((db.ceph.kind.as_deref(), db.ceph.osd_fsid), (Some("db"), with_db.ceph.osd_fsid));
        assert!(db.ceph.whoami == Some(OsdId(4)) && db.cluster == with_db.cluster && db.tags.is_empty());
        let neighbour = all.iter().find(|lv| lv.name == "neighbour").unwrap();
        assert_eq!((neighbour.cluster, &neighbour.ceph), (None, &CephTags::default()));
    }

    #[test]
    fn captured_pv_segments_are_parsed_with_unallocated_space() {
        let all: Vec<Segment> = captured!("pvs-segments.json").segments().map(Row::into_segment).collect();
        let of = |group: &str| -> Vec<_> { all.iter().filter(|seen| seen.group.name == group).collect() };
        let metadata = of("metadata");
        assert_eq!(metadata.iter().filter(|seen| seen.volume.is_some()).count(), 2);
        assert!(metadata.iter().any(|seen| seen.volume.is_none()), "what is free has no volume");
        assert!(metadata.iter().all(|seen| seen.device == Path::new("/dev/ubdf")));
    }
}
