//! Queries of an agent to a node's tools: a fixed list of commands that read, each with its arguments and its
//! limit. No shell is used, and no text of a request becomes an argument: only paths of devices that the
//! kernel named.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::node::error::NodeError;
use crate::node::tools::command::{CommandOutput, QUICK, run};

/// Limit of one call of ceph-volume: Python starts slowly on a busy node, and ceph-volume asks lsblk, LVM and
/// udev about each disk. A LUKS header of another program may need seconds of computing to be opened.
const PATIENT: Duration = Duration::from_secs(120);
/// Limit of one call of ceph-volume on a node with hundreds of disks.
const ALL_DISKS: Duration = Duration::from_secs(300);

/// A command that reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Query<'a> {
    /// Disks, and the reasons why ceph-volume would reject them.
    Inventory,
    /// OSDs on these devices, as `raw activate` will find them.
    ///
    /// The devices are always named: without them, 20.2.0 and 20.2.1 may print nothing.
    RawList(&'a [PathBuf]),
    /// OSDs on logical volumes, by their tags.
    LvmList,
    /// Options that `raw prepare` knows.
    RawPrepareHelp,
    /// Release of the program that matters, without a start of Python: the same line as `ceph --version`.
    OsdVersion,
    /// Signatures on a device, read from it and from no cache.
    Signatures(&'a Path),
    /// Partition table that is written on a disk.
    Table(&'a Path),
    /// BlueStore's label. The answer may contain a key, so it does not go into a report.
    Label(&'a Path),
    /// Whether a key opens a LUKS device; no mapping is created. `key` is the path of a file, never the key.
    KeyOpens { device: &'a Path, key: &'a Path },
    /// Whether the kernel has a target of device-mapper; it loads the module of the target if it has one.
    DmTarget(&'a str),
    /// Version of the kernel's device-mapper.
    DmVersion,
    /// Next unused loop device.
    FreeLoop,
    /// Loop devices that lead to a file.
    Loops(&'a Path),
    /// Inode and file system of the backing file of a loop device.
    LoopBacking(&'a Path),
}

impl Query<'_> {
    /// Returns the program and its arguments.
    fn words(&self) -> (&'static str, Vec<&OsStr>) {
        let (program, fixed): (&str, &[&str]) = match self {
            Self::Inventory => ("ceph-volume", &["inventory", "--format", "json"]),
            Self::RawList(_) => ("ceph-volume", &["raw", "list", "--format", "json"]),
            Self::LvmList => ("ceph-volume", &["lvm", "list", "--format", "json"]),
            Self::RawPrepareHelp => ("ceph-volume", &["raw", "prepare", "--help"]),
            Self::OsdVersion => ("ceph-osd", &["--version"]),
            Self::Signatures(_) => ("blkid", &["-p", "-o", "export"]),
            Self::Table(_) => ("partx", &["-g", "-r", "-o", "NR,START,SECTORS,TYPE,UUID,NAME"]),
            Self::Label(_) => ("ceph-bluestore-tool", &["show-label", "--dev"]),
            Self::KeyOpens { .. } => ("cryptsetup", &["open", "--test-passphrase", "--key-file"]),
            Self::DmTarget(_) => ("dmsetup", &["target-version"]),
            Self::DmVersion => ("dmsetup", &["version"]),
            Self::FreeLoop => ("losetup", &["--find"]),
            Self::LoopBacking(_) => {
                // With --raw, losetup would escape the blanks that pad the numbers (util-linux 2.38).
                ("losetup", &["--list", "--noheadings", "--output", "BACK-INO,BACK-MAJ:MIN"])
            }
            Self::Loops(_) => ("losetup", &["--list", "--noheadings", "--output", "NAME", "--associated"]),
        };
        let mut words: Vec<&OsStr> = fixed.iter().map(OsStr::new).collect();
        match self {
            Self::RawList(devices) => words.extend(devices.iter().map(|device| device.as_os_str())),
            Self::Signatures(path)
            | Self::Table(path)
            | Self::Label(path)
            | Self::Loops(path)
            | Self::LoopBacking(path) => {
                words.push(path.as_os_str());
            }
            Self::KeyOpens { device, key } => words.extend([key.as_os_str(), device.as_os_str()]),
            Self::DmTarget(target) => words.push(OsStr::new(target)),
            Self::Inventory
            | Self::LvmList
            | Self::RawPrepareHelp
            | Self::OsdVersion
            | Self::DmVersion
            | Self::FreeLoop => {}
        }
        (program, words)
    }

    fn limit(&self) -> Duration {
        match self {
            Self::Inventory | Self::RawList(_) | Self::LvmList => ALL_DISKS,
            Self::RawPrepareHelp | Self::KeyOpens { .. } => PATIENT,
            Self::OsdVersion
            | Self::Signatures(_)
            | Self::Table(_)
            | Self::Label(_)
            | Self::DmTarget(_)
            | Self::DmVersion
            | Self::FreeLoop
            | Self::Loops(_)
            | Self::LoopBacking(_) => QUICK,
        }
    }

    /// Runs the query and returns the answer, whatever the command's exit status is.
    pub(crate) async fn ask(&self) -> Result<CommandOutput, NodeError> {
        let (program, words) = self.words();
        run(program, &words, None, self.limit()).await
    }

    /// Runs the query and returns the answer, or an error if the command failed.
    pub(crate) async fn ask_well(&self) -> Result<CommandOutput, NodeError> {
        self.ask().await?.good()
    }
}

/// Returns the first JSON value in the output of a command: some releases print lines before it, none after.
///
/// The text itself never gets into an error: it may contain a key.
pub(crate) fn json<T: serde::de::DeserializeOwned>(answer: &CommandOutput) -> Result<T, NodeError> {
    let text = answer.stdout.as_str();
    let starts = text.match_indices(['{', '[']).map(|(at, _)| at);
    // The value begins a line; LVM indents it.
    let begins = |before: &str| {
        before.trim_end_matches(' ').is_empty() || before.trim_end_matches(' ').ends_with('\n')
    };
    let mut value = starts.filter(|at| text.get(..*at).is_some_and(begins));
    value.find_map(|at| serde_json::from_str(text.get(at..)?).ok()).ok_or_else(|| NodeError::Unreadable {
        subject: answer.command.clone(),
        why: "not the JSON that was expected".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tools::command::words;

    #[test]
    fn node_query_command_lines_are_exact() {
        let devices = [PathBuf::from("/dev/sdb"), PathBuf::from("/dev/sdc1")];
        let disk = Path::new("/dev/sdb");
        let said = |query: &Query<'_>| {
            let (program, args) = query.words();
            words(program, &args)
        };
        for (query, line) in [
            (Query::Inventory, "ceph-volume inventory --format json"),
            (Query::RawList(&devices), "ceph-volume raw list --format json /dev/sdb /dev/sdc1"),
            (Query::LvmList, "ceph-volume lvm list --format json"),
            (Query::RawPrepareHelp, "ceph-volume raw prepare --help"),
            (Query::OsdVersion, "ceph-osd --version"),
            (Query::Signatures(disk), "blkid -p -o export /dev/sdb"),
            (Query::Table(disk), "partx -g -r -o NR,START,SECTORS,TYPE,UUID,NAME /dev/sdb"),
            (Query::Label(disk), "ceph-bluestore-tool show-label --dev /dev/sdb"),
            (
                Query::KeyOpens { device: disk, key: Path::new("/mnt/key") },
                "cryptsetup open --test-passphrase --key-file /mnt/key /dev/sdb",
            ),
            (Query::DmTarget("crypt"), "dmsetup target-version crypt"),
            (Query::DmVersion, "dmsetup version"),
            (Query::FreeLoop, "losetup --find"),
            (Query::LoopBacking(disk), "losetup --list --noheadings --output BACK-INO,BACK-MAJ:MIN /dev/sdb"),
            (Query::Loops(disk), "losetup --list --noheadings --output NAME --associated /dev/sdb"),
        ] {
            assert_eq!(said(&query), line);
        }
    }

    #[tokio::test]
    async fn json_answer_is_found_behind_log_lines_and_never_quoted() {
        let answer = async |text: &str| run("printf", &[text], None, QUICK).await.unwrap();
        let found: Vec<u32> = json(&answer("load failed [x]\n  [1, 2]\n").await).unwrap();
        assert_eq!(found, [1, 2]);
        let error = json::<Vec<u32>>(&answer("{\"key\": \"AQsecret\"}").await).unwrap_err();
        assert!(error.to_string().contains("not the JSON"), "{error}");
    }
}
