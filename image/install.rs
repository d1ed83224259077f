//! The first program of the image: it copies osd-migrate into a folder that a container of a Ceph image mounts.
//!
//! osd-migrate needs a C library, and librados to talk to Ceph. The image has neither, so osd-migrate runs in the
//! cluster's Ceph image. This program is static and starts without both.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Path of osd-migrate in the image.
const PROGRAM: &str = "/osd-migrate";

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(folder), None) = (words.next(), words.next()) else {
        return failed(
            "usage: /install FOLDER: copies osd-migrate into FOLDER, in which a Ceph image can run it",
            2,
        );
    };
    match copy(Path::new(PROGRAM), Path::new(&folder)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => failed(&why, 1),
    }
}

fn failed(why: &str, code: u8) -> ExitCode {
    // If nobody reads the sentence, the exit code remains.
    drop(writeln!(io::stderr(), "{why}"));
    ExitCode::from(code)
}

/// Copies the program into the folder, executable for every user.
///
/// The copy is complete or does not exist.
fn copy(program: &Path, folder: &Path) -> Result<PathBuf, String> {
    let target = folder.join("osd-migrate");
    let young = folder.join(".osd-migrate.new");
    let at = |what: &'static str, path: &Path| {
        let path = path.display().to_string();
        move |why: io::Error| format!("cannot {what} {path}: {why}")
    };
    let mut from = File::open(program).map_err(at("open", program))?;
    let mut to = File::create(&young).map_err(at("create", &young))?;
    io::copy(&mut from, &mut to).map_err(at("write", &young))?;
    to.set_permissions(Permissions::from_mode(0o755)).map_err(at("chmod", &young))?;
    to.sync_all().map_err(at("fsync", &young))?;
    drop(to); // a file that is open for writing cannot be run
    fs::rename(&young, &target).map_err(at("rename", &young))?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_installed_idempotently_and_executable() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "first").unwrap();
        let into = tempfile::tempdir().unwrap();
        for content in ["first", "second"] {
            fs::write(&program, content).unwrap();
            let target = copy(&program, into.path()).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), content);
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);
        }
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1);
    }

    #[test]
    fn install_error_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let why = copy(&folder.path().join("missing"), folder.path()).unwrap_err();
        assert!(why.contains("cannot open") && why.contains("missing"), "{why}");
    }
}
