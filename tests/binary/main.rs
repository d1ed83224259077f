//! The program of the test build, which the suite and the lab run.
//!
//! This target needs neither the suite nor the unit tests: `build/binary --test` builds it alone, so that the
//! lab begins while these are built.

use std::fs;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_osd-migrate");

#[test]
fn test_binary_has_failpoints() {
    let program = fs::read(PROGRAM).unwrap();
    let switch = b"OSD_MIGRATE_FAILPOINT";
    assert!(program.windows(switch.len()).any(|bytes| bytes == switch), "{PROGRAM}");
}

#[test]
fn test_binary_starts_and_names_its_version() {
    #[expect(clippy::disallowed_methods, reason = "the test is about the program itself")]
    let output = Command::new(PROGRAM).arg("--version").output().unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    assert!(version.starts_with(concat!("osd-migrate ", env!("CARGO_PKG_VERSION"))), "{version}");
}
