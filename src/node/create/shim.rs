//! The shim: this binary under the names of tools. ceph-volume finds it in PATH before the real `ceph`, and
//! before the commands that remove and wipe volumes.
//!
//! ceph-volume generates the new OSD's fsid itself, and on failure it purges the id and zaps volumes. So the
//! shim checks every call before the real command runs:
//!
//! - It saves every fsid as issued before `osd new` reaches the mons.
//! - It refuses an `osd new` for any other id (a release that ignores `--osd-id` asks for a new one).
//! - It refuses to purge: a purge loses the id's CRUSH place.
//! - It refuses the commands that remove or wipe volumes, or format a disk.
//!
//! The refusal of a purge ends ceph-volume's rollback. The rollback's next step would zap every
//! volume of the node whose tag has that id, of whatever cluster (16.2.15).

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::domain::osd::{OsdFsid, OsdId};
use crate::node::error::NodeError;
use crate::node::state::issued;

/// Variable with the only OSD id that may be requested.
pub(crate) const OSD_ENV: &str = "OSD_MIGRATE_SHIM_OSD";
/// Variable with the path of the file of issued fsids.
pub(crate) const ISSUED_ENV: &str = "OSD_MIGRATE_SHIM_ISSUED";
/// Variable with the PATH without the shim's folder.
pub(crate) const REAL_PATH_ENV: &str = "OSD_MIGRATE_REAL_PATH";
const CEPH: &str = "ceph";
/// Commands with which ceph-volume destroys what is on volumes and disks.
///
/// The rollback wipes a volume before it removes the volume. From 20.2.2 on, `raw prepare` formats an NVMe
/// namespace (`nvme format --force`, ceph/ceph PR 67341), and goes on without that if the command fails. On a
/// controller with bit 0 of FNA, nvme-cli formats all namespaces then, also those of other OSDs and of the
/// host.
const REMOVERS: [&str; 7] = ["lvremove", "vgremove", "pvremove", "wipefs", "dd", "nvme", "blkdiscard"];
/// Words after `osd` that only read.
const READS: [&str; 8] = ["tree", "dump", "find", "metadata", "ls", "stat", "df", "info"];
/// Options of `ceph` whose value is the next word.
const VALUED: [&str; 22] = [
    "-c",
    "--conf",
    "-i",
    "--in-file",
    "-o",
    "--out-file",
    "-k",
    "--keyring",
    "-n",
    "--name",
    "--id",
    "--user",
    "--cluster",
    "-m",
    "--mon-host",
    "-f",
    "--format",
    "--connect-timeout",
    "--setuser",
    "--setgroup",
    "-W",
    "--watch-channel",
];

/// Returns whether the binary was called by the name of a tool that the shim replaces.
pub fn is_called_as(name: &OsStr) -> bool {
    called_as(name).is_some_and(|name| name == CEPH || REMOVERS.contains(&name.as_str()))
}

/// Acts as the tool that it was called as.
///
/// `args` begin with that name. Returns only if nothing was passed on.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let name = args.next().and_then(|name| called_as(&name)).unwrap_or_default();
    let args: Vec<OsString> = args.collect();
    let error = match pass(&name, &args) {
        Ok(mut real) => NodeError::Start { command: name, source: real.exec() },
        Err(error) => error,
    };
    // Writing fails only if nothing reads standard error.
    writeln!(std::io::stderr(), "osd-migrate: {error}").ok();
    ExitCode::FAILURE
}

/// Creates a folder with the shim's names, which all lead to this binary.
pub(crate) fn make_folder(folder: &Path, binary: &Path) -> Result<(), NodeError> {
    std::fs::create_dir_all(folder).map_err(NodeError::io("create folder", folder))?;
    for name in REMOVERS.into_iter().chain([CEPH]) {
        let link = folder.join(name);
        symlink(binary, &link).map_err(NodeError::io("link", &link))?;
    }
    Ok(())
}

/// Returns the real command to run, after its fsid was saved as issued.
#[expect(
    clippy::disallowed_methods,
    reason = "a program of its own: it reads its environment and exits itself"
)]
fn pass(name: &str, args: &[OsString]) -> Result<Command, NodeError> {
    let setting = |key: &str| {
        std::env::var(key).map_err(|_| NodeError::Refused(format!("{name}: called without {key}")))
    };
    if name != CEPH {
        return Err(NodeError::Refused(format!("{name}: refused, ceph-volume has nothing to remove here")));
    }
    let osd: OsdId =
        setting(OSD_ENV)?.parse().map_err(|error| NodeError::Refused(format!("{OSD_ENV}: {error}")))?;
    match judge(args, osd) {
        Verdict::Pass => {}
        Verdict::Issue(fsid) => issued::add(Path::new(&setting(ISSUED_ENV)?), fsid)?,
        Verdict::Refuse(why) => return Err(NodeError::Refused(why)),
    }
    let path = setting(REAL_PATH_ENV)?;
    let mut real = Command::new(find(CEPH, &path)?);
    real.args(args).env("PATH", path);
    for key in [OSD_ENV, ISSUED_ENV, REAL_PATH_ENV] {
        real.env_remove(key);
    }
    Ok(real)
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Issue(OsdFsid),
    Refuse(String),
}

/// Decides what to do with a call of `ceph`.
///
/// Refuses unknown commands on OSDs: the bootstrap key can do little else.
fn judge(args: &[OsString], osd: OsdId) -> Verdict {
    let Some(words) = words(args) else {
        return Verdict::Refuse("ceph: refused, an argument is not UTF-8 text".to_owned());
    };
    let Some(at) = words.iter().position(|word| *word == "osd") else {
        return Verdict::Pass;
    };
    let after: Vec<&str> = words.into_iter().skip(at + 1).collect();
    match after.as_slice() {
        ["new", fsid, id] if id.parse() == Ok(osd) => match fsid.parse() {
            Ok(fsid) => Verdict::Issue(fsid),
            Err(error) => Verdict::Refuse(format!("ceph osd new: refused: {error}")),
        },
        ["new", _] => Verdict::Refuse(format!(
            "ceph osd new: refused without an id: --osd-id was ignored, expected {osd}"
        )),
        ["new", ..] => Verdict::Refuse(format!("ceph osd {}: refused, expected {osd}", after.join(" "))),
        [verb, ..] if READS.contains(verb) => Verdict::Pass,
        ["purge-new" | "purge", ..] => Verdict::Refuse(format!(
            "ceph osd {}: refused, it would delete the OSD's CRUSH location",
            after.join(" ")
        )),
        _ => Verdict::Refuse(format!("ceph osd {}: refused, not needed to prepare an OSD", after.join(" "))),
    }
}

/// Returns the words without options and their values, or none if one is no text.
fn words(args: &[OsString]) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let arg = arg.to_str()?;
        if VALUED.contains(&arg) {
            args.next();
        } else if !arg.starts_with('-') {
            words.push(arg);
        }
    }
    Some(words)
}

fn find(program: &str, path: &str) -> Result<PathBuf, NodeError> {
    path.split(':')
        .map(|folder| Path::new(folder).join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| NodeError::Refused(format!("no `{program}` in {path}")))
}

fn called_as(name: &OsStr) -> Option<String> {
    Path::new(name).file_name()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "--cluster ceph --name client.bootstrap-osd --keyring /k -i - osd new 500fff8e-39ff-4d5f-a72f-3cd43f874c6b";

    fn judged(line: &str) -> Verdict {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        judge(&args, OsdId(3))
    }

    #[test]
    fn osd_new_issues_an_fsid_for_our_id_and_for_no_other() {
        let fsid = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b".parse().unwrap();
        assert_eq!(judged(&format!("{NEW} 3")), Verdict::Issue(fsid));
        assert_eq!(judged(&format!("osd new {fsid} osd.3 -i -")), Verdict::Issue(fsid));
        let Verdict::Refuse(why) = judged(NEW) else { panic!() };
        assert!(why.contains("--osd-id was ignored"), "{why}");
        for line in [format!("{NEW} 4"), format!("{NEW} 3 4"), "osd new x 3".to_owned(), "osd new".to_owned()]
        {
            assert!(matches!(judged(&line), Verdict::Refuse(_)), "{line}");
        }
    }

    #[test]
    fn shim_refuses_purge_and_destroy_wherever_the_options_are() {
        for line in [
            "osd purge-new osd.3 --yes-i-really-mean-it",
            "osd purge 3",
            "osd destroy 3",
            "osd rm 3",
            "osd create",
            "--unknown value osd purge-new 3",
            "osd --yes-i-really-mean-it purge-new 3",
            "-f json osd --format json purge-new 3",
            "osd crush rm osd.3",
            "osd",
        ] {
            assert!(matches!(judged(line), Verdict::Refuse(_)), "{line}");
        }
    }

    #[test]
    fn shim_passes_the_other_commands_of_prepare() {
        for line in [
            "--cluster ceph --name client.bootstrap-osd --keyring /k osd tree -f json",
            "--name client.bootstrap-osd mon getmap -o /var/lib/ceph/osd/ceph-3/activate.monmap",
            "--version",
            "--keyring osd mon getmap",
        ] {
            assert_eq!(judged(line), Verdict::Pass, "{line}");
        }
    }

    #[test]
    fn shim_refuses_to_format_a_namespace() {
        let args = ["format", "/dev/nvme0n1", "--force"].map(OsString::from);
        assert!(matches!(pass("nvme", &args), Err(NodeError::Refused(_))));
    }

    #[test]
    fn shim_recognises_the_names_it_is_called_as() {
        assert!(is_called_as("/tmp/x/ceph".as_ref()) && is_called_as("vgremove".as_ref()));
        assert!(is_called_as("dd".as_ref()) && is_called_as("wipefs".as_ref()));
        assert!(is_called_as("/tmp/x/nvme".as_ref()) && is_called_as("blkdiscard".as_ref()));
        assert!(!is_called_as("/osd-migrate/osd-migrate".as_ref()) && !is_called_as("".as_ref()));
    }
}
