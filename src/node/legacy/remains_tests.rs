use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::node::samples::{host, request};

/// A host with the folders of the old OSD, and of a neighbour.
struct Scene {
    _root: tempfile::TempDir,
    host: Host,
    request: NodeRequest,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let scene = Self { host: host(root.path()), request: request("n1"), _root: root };
        fs::create_dir_all(scene.host.proc.join("self")).unwrap();
        scene.mounted(&[]);
        for folder in [scene.activation(), scene.oldest()] {
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in [
                ("fsid", scene.request.old.to_string()),
                ("whoami", "1".to_owned()),
                ("ceph_fsid", scene.request.cluster.to_string()),
                ("keyring", "[osd.1]\n\tkey = AQ==\n".to_owned()),
                ("type", "bluestore".to_owned()),
            ] {
                fs::write(folder.join(name), format!("{text}\n")).unwrap();
            }
            symlink("/dev/sdb", folder.join("block")).unwrap();
        }
        fs::create_dir_all(scene.host.rook.join("osd2")).unwrap();
        fs::write(scene.host.rook.join("osd2/fsid"), "another\n").unwrap();
        scene
    }

    fn activation(&self) -> PathBuf {
        let name = format!("{}_{}", self.request.cluster, self.request.old);
        self.host.rook.join(&self.host.namespace).join(name)
    }

    fn oldest(&self) -> PathBuf {
        self.host.rook.join("osd1")
    }

    fn mounted(&self, at: &[&Path]) {
        let line = |at: &&Path| format!("36 35 98:0 / {} rw - ext4 /dev/sda rw\n", at.display());
        fs::write(self.host.proc.join("self/mountinfo"), at.iter().map(line).collect::<String>()).unwrap();
    }

    async fn removed(&self) -> Vec<String> {
        let left = remove(&self.request, &self.host).await;
        assert!(self.host.rook.join("osd2/fsid").exists(), "the neighbour's");
        left
    }

    /// Checks that both folders stay as they are, and returns the reasons.
    async fn spared(&self) -> [String; 2] {
        let all = |folder: PathBuf| fs::read_dir(folder).unwrap().count();
        let before = [all(self.activation()), all(self.oldest())];
        let left = self.removed().await;
        assert_eq!([all(self.activation()), all(self.oldest())], before, "{left:?}");
        left.try_into().unwrap()
    }

    /// Makes the same change in each folder.
    fn each(&self, change: impl Fn(&Path)) {
        change(&self.activation());
        change(&self.oldest());
    }
}

#[tokio::test]
async fn rook_folders_of_the_old_osd_are_removed_idempotently() {
    let scene = Scene::new();
    assert_eq!(scene.removed().await, Vec::<String>::new());
    assert!(!scene.activation().exists() && !scene.oldest().exists());
    assert!(scene.activation().parent().unwrap().exists(), "what others have there stays");
    assert_eq!(scene.removed().await, Vec::<String>::new());
    fs::remove_dir_all(&scene.host.rook).unwrap();
    assert_eq!(remove(&scene.request, &scene.host).await, Vec::<String>::new());
}

#[tokio::test]
async fn rook_folder_removal_is_finished_after_an_interruption() {
    for left in [&["fsid", "keyring"][..], &["fsid"], &[]] {
        let scene = Scene::new();
        scene.each(|folder| {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if !left.contains(&entry.file_name().to_str().unwrap()) {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
        });
        assert_eq!(scene.removed().await, Vec::<String>::new(), "{left:?}");
        assert!(!scene.activation().exists() && !scene.oldest().exists(), "{left:?}");
    }
}

#[tokio::test]
async fn rook_folder_with_foreign_content_is_never_removed() {
    type Change = fn(&Path);
    let changes: [(Change, &str); 6] = [
        (
            |folder| fs::write(folder.join("notes.txt"), "mine").unwrap(),
            "notes.txt in it does not belong to Rook",
        ),
        (|folder| fs::create_dir(folder.join("current")).unwrap(), "current in it does not belong to Rook"),
        (
            |folder| {
                fs::remove_file(folder.join("block")).unwrap();
                fs::write(folder.join("block"), "data").unwrap();
            },
            "block in it does not belong to Rook",
        ),
        (
            |folder| {
                fs::remove_file(folder.join("keyring")).unwrap();
                symlink("/etc/passwd", folder.join("keyring")).unwrap();
            },
            "keyring in it does not belong to Rook",
        ),
        (|folder| fs::write(folder.join("magic"), vec![0; (1 << 20) + 1]).unwrap(), "its magic is large"),
        (|folder| fs::write(folder.join("whoami"), "2\n").unwrap(), "its whoami: expected 1, found 2"),
    ];
    for (change, why) in changes {
        let scene = Scene::new();
        scene.each(change);
        for left in scene.spared().await {
            assert!(left.contains(why), "{left}");
        }
    }
}

#[tokio::test]
async fn rook_folder_named_by_id_alone_is_checked_by_its_fsid() {
    let scene = Scene::new();
    let other = "11111111-2222-4333-8444-555555555555";
    fs::write(scene.oldest().join("fsid"), other).unwrap();
    let left = scene.removed().await;
    assert!(matches!(&left[..], [one] if one.starts_with("osd1 stays on the host: ") && one.contains(other)));
    fs::remove_file(scene.oldest().join("fsid")).unwrap();
    let left = scene.removed().await;
    assert!(matches!(&left[..], [one] if one.contains("no file fsid in it")), "{left:?}");
    assert!(!scene.activation().exists(), "its name says whose it is");
}

#[tokio::test]
async fn rook_folder_that_is_a_link_or_mount_point_is_not_removed() {
    let scene = Scene::new();
    scene.mounted(&[&scene.activation(), &scene.oldest().join("deep")]);
    for left in scene.spared().await {
        assert!(left.ends_with("something is mounted there"), "{left}");
    }
    scene.mounted(&[&scene.host.rook]);
    let elsewhere = scene.host.rook.join("elsewhere");
    fs::rename(scene.activation(), &elsewhere).unwrap();
    symlink(&elsewhere, scene.activation()).unwrap();
    let left = scene.removed().await;
    assert!(matches!(&left[..], [one] if one.ends_with("a link, or no directory")), "{left:?}");
    assert!(elsewhere.join("keyring").exists());
}
