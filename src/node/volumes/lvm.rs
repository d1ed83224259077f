//! LVM's commands, and cryptsetup's one: a fixed list, no shell. What is asked never locks; what changes names its object in
//! full. Tags of volumes hold keys (`ceph.cephx_lockbox_secret`), so only those named here are kept of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::super::command::run;
use super::super::error::NodeError;
use super::super::query;
use crate::domain::osd::ClusterFsid;

/// LVM waits for each disk of the node in turn.
const LIMIT: Duration = Duration::from_secs(120);
/// `--nohints`: what LVM remembers of a node's disks is not told of what another pod made.
const QUIET: [&str; 8] =
    ["--readonly", "--nohints", "--reportformat", "json", "--units", "b", "--nosuffix", "--options"];

/// A logical volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lv {
    pub(super) group: String,
    pub(super) name: String,
    /// Also the name of its dm-crypt mapping, as ceph-volume calls it.
    pub(super) uuid: String,
    /// Tags of ours.
    pub(super) tags: Vec<String>,
    /// Whose OSD it belongs to, by ceph-volume's tag.
    pub(super) cluster: Option<ClusterFsid>,
}

impl Lv {
    /// `VG/LV`
    pub(super) fn named(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// Its node.
    pub(super) fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.group).join(&self.name)
    }

    /// The node of its dm-crypt mapping, while that is open.
    pub(super) fn mapping(&self) -> PathBuf {
        Path::new("/dev/mapper").join(&self.uuid)
    }
}

/// A volume group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) tags: Vec<String>,
}

/// All logical volumes of the node.
pub(super) async fn volumes() -> Result<Vec<Lv>, NodeError> {
    let report: Report = ask("lvs", "vg_name,lv_name,lv_uuid,lv_tags", None).await?;
    Ok(report.lvs().map(Row::into_lv).collect())
}

/// The volume group on a device; none where it is a physical volume of none.
pub(super) async fn group_on(device: &Path) -> Result<Option<Group>, NodeError> {
    let report: Report = ask("pvs", "vg_name,vg_tags", Some(device)).await?;
    Ok(report.pvs().map(Row::into_group).find(|group| !group.name.is_empty()))
}

/// Tags of a volume group; none where it is not there.
pub(super) async fn tags_of(group: &str) -> Result<Option<Vec<String>>, NodeError> {
    let report: Report = ask("vgs", "vg_name,vg_tags", None).await?;
    Ok(report.vgs().map(Row::into_group).find(|seen| seen.name == group).map(|seen| seen.tags))
}

async fn ask(program: &str, options: &str, device: Option<&Path>) -> Result<Report, NodeError> {
    let mut words: Vec<&std::ffi::OsStr> = QUIET.iter().map(std::ffi::OsStr::new).collect();
    words.push(options.as_ref());
    words.extend(device.map(Path::as_os_str));
    query::json(&run(program, &words, None, LIMIT).await?.good()?)
}

/// A command that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// A physical volume with a uuid of ours. Without `--yes`: a signature on the device makes it fail.
    PvCreate { device: &'a Path, uuid: &'a str },
    /// A volume group. The same.
    VgCreate { name: &'a str, tags: &'a [String], device: &'a Path },
    /// A volume, its tags in the same step; none: all that is free.
    LvCreate { group: &'a str, name: &'a str, tags: &'a [String], size_mib: Option<u64> },
    /// A tag more.
    VgTag { name: &'a str, tag: &'a str },
    /// The volume gets its node.
    Activate { lv: &'a str },
    /// All volumes of a group lose their nodes; fails where one is in use.
    Deactivate { group: &'a str },
    /// The volume is gone.
    LvRemove { lv: &'a str },
    /// A dm-crypt mapping is closed; fails where it is in use.
    CryptClose { mapping: &'a str },
}

impl Change<'_> {
    fn words(&self) -> (&'static str, Vec<String>) {
        let tagged =
            |tags: &[String]| tags.iter().flat_map(|tag| ["--addtag".to_owned(), tag.clone()]).collect();
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (program, words): (&str, Vec<Vec<String>>) = match self {
            Self::PvCreate { device, uuid } => (
                "pvcreate",
                vec![owned(&["--norestorefile", "--uuid", uuid]), vec![device.display().to_string()]],
            ),
            Self::VgCreate { name, tags, device } => {
                ("vgcreate", vec![tagged(tags), vec![(*name).to_owned(), device.display().to_string()]])
            }
            Self::LvCreate { group, name, tags, size_mib } => {
                let size = size_mib.map_or_else(
                    || owned(&["-l", "100%FREE"]),
                    |mib| vec!["-L".to_owned(), format!("{mib}m")],
                );
                ("lvcreate", vec![owned(&["--yes", "-Wy"]), size, tagged(tags), owned(&["-n", name, group])])
            }
            Self::VgTag { name, tag } => ("vgchange", vec![owned(&["--addtag", tag, name])]),
            Self::Activate { lv } => ("lvchange", vec![owned(&["--activate", "y", lv])]),
            Self::Deactivate { group } => ("vgchange", vec![owned(&["--activate", "n", group])]),
            Self::LvRemove { lv } => ("lvremove", vec![owned(&["--yes", lv])]),
            Self::CryptClose { mapping } => ("cryptsetup", vec![owned(&["close", mapping])]),
        };
        (program, words.concat())
    }

    /// Does it.
    pub(super) async fn done(&self) -> Result<(), NodeError> {
        let (program, words) = self.words();
        run(program, &words, None, LIMIT).await?.good().map(drop)
    }
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
    vg: Vec<Row>,
}

impl Report {
    fn lvs(self) -> impl Iterator<Item = Row> {
        self.report.into_iter().flat_map(|rows| rows.lv)
    }
    fn pvs(self) -> impl Iterator<Item = Row> {
        self.report.into_iter().flat_map(|rows| rows.pv)
    }
    fn vgs(self) -> impl Iterator<Item = Row> {
        self.report.into_iter().flat_map(|rows| rows.vg)
    }
}

#[derive(Deserialize)]
struct Row {
    vg_name: String,
    #[serde(default)]
    vg_tags: String,
    #[serde(default)]
    lv_name: String,
    #[serde(default)]
    lv_uuid: String,
    #[serde(default)]
    lv_tags: String,
}

impl Row {
    fn into_group(self) -> Group {
        Group { name: self.vg_name, tags: ours(&self.vg_tags) }
    }

    fn into_lv(self) -> Lv {
        let mut tags = self.lv_tags.split(',');
        let cluster = tags.find_map(|tag| tag.strip_prefix("ceph.cluster_fsid=")?.parse().ok());
        let tags = ours(&self.lv_tags);
        Lv { group: self.vg_name, name: self.lv_name, uuid: self.lv_uuid, tags, cluster }
    }
}

fn ours(tags: &str) -> Vec<String> {
    tags.split(',').filter(|tag| tag.starts_with("osd-migrate.")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::command::words;
    use super::super::super::samples::{RELEASES, said};
    use super::*;

    #[test]
    fn three_releases_report_volumes_and_groups_in_the_same_form() {
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
    fn the_commands_word_for_word() {
        let disk = Path::new("/dev/sdb");
        let tags = ["osd-migrate.osd=3".to_owned(), "osd-migrate.fsid=F".to_owned()];
        for (change, line) in [
            (
                Change::PvCreate { device: disk, uuid: "500fff-8e39" },
                "pvcreate --norestorefile --uuid 500fff-8e39 /dev/sdb",
            ),
            (
                Change::VgCreate { name: "ceph-F", tags: &tags, device: disk },
                "vgcreate --addtag osd-migrate.osd=3 --addtag osd-migrate.fsid=F ceph-F /dev/sdb",
            ),
            (
                Change::LvCreate { group: "ceph-F", name: "osd-block-F", tags: &tags[..1], size_mib: None },
                "lvcreate --yes -Wy -l 100%FREE --addtag osd-migrate.osd=3 -n osd-block-F ceph-F",
            ),
            (
                Change::LvCreate { group: "ceph-g", name: "osd-db-F", tags: &[], size_mib: Some(1024) },
                "lvcreate --yes -Wy -L 1024m -n osd-db-F ceph-g",
            ),
            (Change::VgTag { name: "ceph-F", tag: "x" }, "vgchange --addtag x ceph-F"),
            (Change::Activate { lv: "ceph-F/osd-block-F" }, "lvchange --activate y ceph-F/osd-block-F"),
            (Change::Deactivate { group: "ceph-F" }, "vgchange --activate n ceph-F"),
            (Change::LvRemove { lv: "ceph-g/osd-db-F" }, "lvremove --yes ceph-g/osd-db-F"),
            (Change::CryptClose { mapping: "vdziVh-FoBu" }, "cryptsetup close vdziVh-FoBu"),
        ] {
            let (program, args) = change.words();
            assert_eq!(words(program, &args), line);
        }
    }

    #[test]
    fn of_tags_only_ours_and_the_cluster_are_kept() {
        let text = r#"{"report": [{"lv": [{"vg_name": "ceph-x", "lv_name": "osd-db-F", "lv_uuid": "vdziVh",
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
        assert!(!format!("{lv:?}").contains("AQD"));
        let none: Report =
            serde_json::from_str(r#"{"report": [{"pv": [{"vg_name": "", "vg_tags": ""}]}]}"#).unwrap();
        assert_eq!(none.pvs().map(Row::into_group).find(|group| !group.name.is_empty()), None);
    }
}
