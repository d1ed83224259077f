//! The script with which a raw OSD finds its disk when its pod starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const SCRIPT: &str = include_str!("../../src/k8s/osd/activate_osd.sh");
const FSID: &str = "1da2aa7b-be64-46f3-ae86-fac0f4e02abb";

/// Runs the script on a node on which osd.4 is on this disk, and its block path leads nowhere.
#[expect(clippy::disallowed_methods, reason = "the script is run as in its pod")]
fn run(disk: &str) -> Output {
    let tools = tempfile::tempdir().unwrap();
    let ceph_volume = format!(
        "case \"$*\" in 'raw list {disk} '*) echo '{{\"x\": {{\"osd_uuid\": \"{FSID}\", \"osd_id\": 4}}}}';; \
         'raw list '*) echo '{{}}';; *) echo \"ceph-volume $*\";; esac"
    );
    tool(tools.path(), "ceph-volume", &ceph_volume);
    tool(
        tools.path(),
        "lsblk",
        "printf '/dev/sda disk\\n/dev/mapper/x crypt\\n/dev/sdb disk\\n/dev/sdc disk\\n'",
    );
    let path = format!("{}:/usr/bin:/bin", tools.path().display());
    let env = [("PATH", path.as_str()), ("ROOK_BLOCK_PATH", "/nowhere"), ("ROOK_OSD_ID", "4")];
    Command::new("bash").args(["-c", SCRIPT]).envs(env).env("ROOK_OSD_UUID", FSID).output().unwrap()
}

fn tool(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn raw_osd_whose_disk_has_another_name_finds_it() {
    for disk in ["/dev/sda", "/dev/sdb", "/dev/sdc"] {
        let output = run(disk);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            text.ends_with(&format!("ceph-volume raw activate --device {disk} --no-systemd --no-tmpfs\n")),
            "{text}"
        );
    }
}

#[test]
fn raw_osd_without_a_disk_fails_with_its_name() {
    let output = run("/dev/mapper/x");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(&format!("no disk of this node carries osd.4 ({FSID})")), "{text}");
}

/// Checks that no script needs /dev/fd or /dev/stderr: the folder /dev of these pods is that of the node.
#[test]
fn scripts_of_osd_pods_need_no_links_in_dev() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/k8s/osd");
    let scripts = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<_> = scripts.filter(|path| path.extension().is_some_and(|end| end == "sh")).collect();
    assert!(scripts.len() > 3);
    for path in scripts {
        let script = fs::read_to_string(&path).unwrap();
        for needs in ["<(", ">(", "/dev/fd", "/dev/std"] {
            let code = script.lines().filter(|line| !line.trim_start().starts_with('#'));
            assert!(!code.into_iter().any(|line| line.contains(needs)), "{needs} in {}", path.display());
        }
    }
}
