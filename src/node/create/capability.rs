//! Capabilities of the node's image, asked before anything is stopped and once more before anything is wiped.

use std::collections::BTreeSet;
use std::path::Path;

use crate::domain::classify;
use crate::domain::inspection::{Capability, NodeRequest};
use crate::domain::osd::{Mode, ObjectStore};
use crate::domain::proof::Layers;
use crate::node::create::mons::{self, Slots};
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::tools::query::Query;
use crate::node::tools::redact::last_lines;

/// Tools that a rebuild calls, directly or through ceph-volume.
const TOOLS: [&str; 9] = [
    "ceph",
    "ceph-volume",
    "ceph-osd",
    "ceph-authtool",
    "ceph-bluestore-tool",
    "blkid",
    "lsblk",
    "partx",
    "mount",
];

/// Additional tools for an OSD on logical volumes.
const LVM_TOOLS: [&str; 10] = [
    "pvs",
    "vgs",
    "lvs",
    "pvcreate",
    "vgcreate",
    "lvcreate",
    "lvchange",
    "vgchange",
    "lvremove",
    "cryptsetup",
];

/// Message of libdm on a kernel without device-mapper.
const NO_MAPPER: &str = "/dev/mapper/control: open failed: No such device";

/// Capabilities of the image, and the current slots.
#[derive(Debug)]
pub(crate) struct CapabilityAnswer {
    pub(crate) capability: Capability,
    /// The slots, or why the mons did not return them.
    pub(crate) slots: Result<Slots, NodeError>,
}

/// Asks image and mons in parallel.
pub(crate) async fn ask(host: &Host) -> CapabilityAnswer {
    let (mut capability, slots) = tokio::join!(of_image(host), mons::slots(host));
    capability.key_accepted = slots.is_ok();
    capability.key_trouble = slots.as_ref().err().map(|error| last_lines(&error.to_string()));
    CapabilityAnswer { capability, slots }
}

/// Asks the image alone.
///
/// That needs no key, so `key_accepted` is false.
pub(crate) async fn of_image(host: &Host) -> Capability {
    let (version, help) = tokio::join!(Query::OsdVersion.ask_well(), Query::RawPrepareHelp.ask_well());
    let ceph_version =
        version.map_or_else(|error| last_lines(&error.to_string()), |answer| last_lines(&answer.stdout));
    of_answers(ceph_version, help.map(|answer| answer.stdout), missing(&host.path, &TOOLS))
}

/// Returns the capabilities by the answers of the image's tools.
fn of_answers(
    ceph_version: String,
    help: Result<String, NodeError>,
    missing_tools: BTreeSet<String>,
) -> Capability {
    let is_missing = missing_tools.contains("ceph-volume");
    let trouble = help.as_ref().err().filter(|_| !is_missing);
    let tool_trouble = trouble.map(|error| last_lines(&error.to_string()));
    let help = help.unwrap_or_default();
    Capability {
        raw_osd_id: knows_osd_id(&help) && !classify::ignores_osd_id(&ceph_version),
        ceph_version,
        stores: stores(&help),
        missing_tools,
        key_accepted: false,
        key_trouble: None,
        tool_trouble,
    }
}

impl CapabilityAnswer {
    /// Checks that a rebuild can be done here; fails with the reason if not.
    ///
    /// `layers`: layers of device-mapper that the old OSD is on.
    pub(crate) fn can_rebuild(
        &self,
        host: &Host,
        request: &NodeRequest,
        layers: Layers,
    ) -> Result<(), NodeError> {
        self.has_tools(host, request, layers)?;
        if let (Mode::Raw, Some(why)) = (request.target.mode, &self.capability.tool_trouble) {
            return Err(NodeError::NotDone(why.clone()));
        }
        if request.target.mode == Mode::Raw && !self.capability.raw_osd_id {
            return Err(NodeError::Refused(format!(
                "ceph-volume raw prepare does not support --osd-id in {}",
                self.capability.ceph_version
            )));
        }
        Ok(())
    }

    /// Checks that the image has all tools; fails with the reason if not.
    ///
    /// `layers`: layers of device-mapper that the old OSD is on.
    pub(crate) fn has_tools(
        &self,
        host: &Host,
        request: &NodeRequest,
        layers: Layers,
    ) -> Result<(), NodeError> {
        let mut missing = self.capability.missing_tools.clone();
        missing.extend(missing_for_layers(host, request, layers));
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = missing.into_iter().collect();
        Err(NodeError::Refused(format!("the image or the node's kernel is missing {}", missing.join(", "))))
    }
}

/// Returns the tools for volumes and encryption that a rebuild needs and that are missing in the image.
///
/// `layers`: layers of device-mapper that the old OSD is on.
pub(crate) fn missing_for_layers(host: &Host, request: &NodeRequest, layers: Layers) -> BTreeSet<String> {
    let on_host = request.pvcs.is_none();
    match layers {
        Layers::Volumes => missing_for_volumes(host),
        Layers::Encryption if on_host => missing_for_volumes(host),
        Layers::None if on_host && request.target.mode == Mode::Lvm => missing_for_volumes(host),
        Layers::Encryption => missing(&host.path, &["cryptsetup"]),
        Layers::None if request.pvc_with_key().is_some() => missing(&host.path, &["cryptsetup"]),
        Layers::None => BTreeSet::new(),
    }
}

/// Returns the tools for logical volumes and encryption that are missing in the image.
pub(crate) fn missing_for_volumes(host: &Host) -> BTreeSet<String> {
    missing(&host.path, &LVM_TOOLS)
}

/// Returns the targets of device-mapper that the new OSD needs and that the node's kernel does not have.
///
/// LUKS headers are formatted without them, and logical volumes are not: after the wipe it would be too late.
pub(crate) async fn missing_targets(request: &NodeRequest) -> BTreeSet<String> {
    let on_lvm = request.pvcs.is_none() && request.target.mode == Mode::Lvm;
    let is_crypt = (on_lvm && request.target.encrypted) || request.pvc_with_key().is_some();
    let mut missing = BTreeSet::new();
    for target in [on_lvm.then_some("linear"), is_crypt.then_some("crypt")].into_iter().flatten() {
        if lacks_target(target).await {
            missing.insert(format!("device-mapper target {target} in the node's kernel"));
        }
    }
    missing
}

/// Returns whether the kernel says that it does not have a target.
///
/// Without the tool, or without an answer of a known form, nothing is known.
async fn lacks_target(target: &str) -> bool {
    let Ok(answer) = Query::DmTarget(target).ask().await else { return false };
    if answer.status.success() {
        return false;
    }
    if answer.stderr.contains(NO_MAPPER) {
        return true;
    }
    let version = Query::DmVersion.ask_well().await;
    is_refused(&answer.stderr) && version.is_ok_and(|answer| knows_targets(&answer.stdout))
}

/// Returns whether the kernel refused to name the version of a target: it has none, or does not know the
/// question.
fn is_refused(stderr: &str) -> bool {
    stderr.lines().any(|line| line.contains("ioctl on") && line.contains("failed: Invalid argument"))
}

/// Returns whether the kernel's device-mapper knows the question for the version of a target: from 4.41 on
/// (Linux 5.4).
fn knows_targets(version: &str) -> bool {
    let driver = version.lines().find_map(|line| line.strip_prefix("Driver version:"));
    let mut parts = driver.into_iter().flat_map(|text| text.trim().split('.')).map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return false };
    (major, minor) >= (4_u32, 41_u32)
}

fn knows_osd_id(help: &str) -> bool {
    help.split(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | ',')).any(|word| word == "--osd-id")
}

/// Returns the stores by their flags (`--bluestore`, up to 18.2), or by the choices of `--objectstore`
/// (20.2).
fn stores(help: &str) -> BTreeSet<ObjectStore> {
    let is_split = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | ',' | '|' | '{' | '}');
    let words: Vec<&str> = help.split(is_split).filter(|word| !word.is_empty()).collect();
    let flags = words.iter().filter_map(|word| word.strip_prefix("--")).filter(|flag| flag.contains("store"));
    let after = words.iter().skip_while(|word| **word != "--objectstore").skip(1);
    let choices = after.copied().take_while(|word| word.ends_with("store"));
    flags
        .chain(choices)
        .filter(|name| *name != "objectstore")
        .map(|name| ObjectStore(name.to_owned()))
        .collect()
}

fn missing(path: &str, tools: &[&str]) -> BTreeSet<String> {
    let is_there = |tool: &str| path.split(':').any(|folder| Path::new(folder).join(tool).is_file());
    tools.iter().filter(|tool| !is_there(tool)).map(|tool| (*tool).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::osd::pvc::PerPvc;
    use crate::node::samples::{RELEASES, host, request, said};

    #[test]
    fn bluestore_option_is_found_in_the_help_of_each_release() {
        for release in RELEASES {
            let stores = stores(&said(release, "raw-prepare-help.txt"));
            assert!(stores.contains(&ObjectStore::bluestore()), "{release}: {stores:?}");
        }
    }

    /// Shows why nothing more is asked: each release that knows `--osd-id` also takes database and log.
    #[test]
    fn raw_prepare_takes_database_and_log_in_each_release() {
        for release in RELEASES {
            let help = said(release, "raw-prepare-help.txt");
            for option in ["[--block.db BLOCK_DB]", "[--block.wal BLOCK_WAL]"] {
                assert!(help.contains(option), "{release}: {option}");
            }
        }
    }

    #[test]
    fn osd_id_option_is_recognised_as_a_whole_word() {
        for release in RELEASES {
            assert!(knows_osd_id(&said(release, "raw-prepare-help.txt")), "{release}");
        }
        assert!(knows_osd_id("usage: x [--dmcrypt]\n                [--osd-id OSD_ID]\n"));
        assert!(!knows_osd_id("usage: x [--osd-id-file F] [--osd-ids IDS]"));
    }

    #[test]
    fn failed_question_to_ceph_volume_is_reported_as_such() {
        let of = |help| of_answers("ceph version 18.2.7".to_owned(), help, BTreeSet::new());
        let failed = of(Err(NodeError::NotDone("`ceph-volume` did not respond within 60 s".to_owned())));
        assert!(
            failed.tool_trouble.as_ref().is_some_and(|why| why.contains("did not respond")),
            "{failed:?}"
        );
        assert!(!failed.raw_osd_id && failed.stores.is_empty());
        let missing = Err(NodeError::NotDone("start `ceph-volume`: not found".to_owned()));
        let missing = of_answers(String::new(), missing, BTreeSet::from(["ceph-volume".to_owned()]));
        assert_eq!(missing.tool_trouble, None, "it is reported as a missing tool");
        let old = of(Ok("usage: ceph-volume raw prepare [--bluestore]".to_owned()));
        assert_eq!((old.tool_trouble, old.raw_osd_id), (None, false));
        let able = of(Ok(said("18.2.7", "raw-prepare-help.txt")));
        assert_eq!((able.tool_trouble, able.raw_osd_id), (None, true));
    }

    #[test]
    fn kernel_without_a_target_of_device_mapper_is_recognised() {
        // dmsetup 1.02.185 on a kernel without device-mapper.
        let no_mapper = "/dev/mapper/control: open failed: No such device\nFailure to communicate with kernel \
                         device-mapper driver.\nCheck that device-mapper is available in the kernel.\n";
        assert!(no_mapper.contains(NO_MAPPER));
        assert!(!no_mapper.replace("No such device", "Permission denied").contains(NO_MAPPER));
        // In the form of libdm's message about an ioctl.
        assert!(is_refused("device-mapper: target-version ioctl on crypt  failed: Invalid argument\n"));
        assert!(!is_refused("Unknown command.\n"));
        let version =
            |driver: &str| format!("Library version:   1.02.185 (2022-05-18)\nDriver version:    {driver}\n");
        assert!(knows_targets(&version("4.47.0")) && knows_targets(&version("4.41.0")));
        assert!(!knows_targets(&version("4.39.0")) && !knows_targets("Driver version: (unknown version)"));
    }

    #[test]
    fn cryptsetup_is_needed_for_an_encrypted_osd_on_a_pvc() {
        let root = tempfile::tempdir().unwrap();
        let (host, mut request) = (host(root.path()), request("n1"));
        let all = BTreeSet::from(LVM_TOOLS.map(str::to_owned));
        let cryptsetup = BTreeSet::from(["cryptsetup".to_owned()]);
        assert_eq!(missing_for_layers(&host, &request, Layers::None), BTreeSet::new());
        assert_eq!(missing_for_layers(&host, &request, Layers::Encryption), all);
        request.pvcs = Some(PerPvc::of_data("x".into()));
        assert_eq!(missing_for_layers(&host, &request, Layers::None), BTreeSet::new());
        assert_eq!(
            missing_for_layers(&host, &request, Layers::Encryption),
            cryptsetup,
            "the old OSD is encrypted"
        );
        assert_eq!(missing_for_layers(&host, &request, Layers::Volumes), all, "the old OSD is on LVM");
        request.target.encrypted = true;
        assert_eq!(missing_for_layers(&host, &request, Layers::None), cryptsetup);
    }

    #[test]
    fn tools_are_searched_in_each_directory_of_the_path() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (n, tool) in TOOLS.iter().enumerate().skip(1) {
            std::fs::write(if n % 2 == 0 { &a } else { &b }.path().join(tool), "").unwrap();
        }
        let path = format!("{}:{}", a.path().display(), b.path().display());
        assert_eq!(missing(&path, &TOOLS), BTreeSet::from(["ceph".to_owned()]));
    }
}
