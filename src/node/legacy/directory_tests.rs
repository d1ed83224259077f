use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use crate::domain::inspection::Directory;
use crate::domain::osd::DeviceIdentity;
use crate::node::samples::{host, request as any_request};

const HOST_PATH: &str = "/srv/a/osd1";

/// A host whose folder `/srv/a` contains `osd1`, as Rook 1.2 left a Filestore there, and a neighbour.
struct Scene {
    _root: tempfile::TempDir,
    host: Host,
    request: NodeRequest,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let host = host(root.path());
        let onto =
            DeviceIdentity { by_id: [].into(), by_path: [].into(), serial: None, wwn: None, size_bytes: 1 };
        let directory = Some(Directory { path: HOST_PATH.to_owned(), onto: Some(onto) });
        let request = NodeRequest { directory, ..any_request("n1") };
        let scene = Self { _root: root, host, request };
        fs::create_dir_all(scene.dir().join("current/0.1_head/DIR_1")).unwrap();
        fs::create_dir_all(scene.host.parent.join("osd2")).unwrap();
        fs::create_dir_all(scene.host.proc.join("self")).unwrap();
        fs::write(scene.host.parent.join("osd2/fsid"), "another\n").unwrap();
        scene.mounts(&[]);
        for (name, text) in [
            ("fsid", scene.request.old.to_string()),
            ("whoami", "1".to_owned()),
            ("ceph_fsid", scene.request.cluster.to_string()),
            ("type", "filestore".to_owned()),
            ("journal", "bytes".to_owned()),
            ("current/0.1_head/DIR_1/object", "bytes".to_owned()),
        ] {
            scene.put(name, &text);
        }
        scene
    }

    /// Returns the scene with a BlueStore in files; mkfs wrote the links by Rook's own
    /// configuration.
    fn bluestore() -> Self {
        let scene = Self::new();
        scene.put("type", "bluestore");
        fs::remove_file(scene.dir().join("journal")).unwrap();
        for (link, file) in [("block", "bluestore-block"), ("block.db", "bluestore-db")] {
            scene.put(file, &format!("bluestore block device\n{}", scene.request.old));
            symlink(format!("{HOST_PATH}/{file}"), scene.dir().join(link)).unwrap();
        }
        scene
    }

    fn dir(&self) -> PathBuf {
        self.host.parent.join("osd1")
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.dir().join(name), format!("{text}\n")).unwrap();
    }

    fn mounts(&self, at: &[PathBuf]) {
        let line = |at: &PathBuf| format!("40 22 8:16 / {} rw - ext4 /dev/sdb rw\n", at.display());
        let text: String = at.iter().map(line).collect();
        fs::write(self.host.proc.join("self/mountinfo"), text).unwrap();
    }

    async fn proof(&self) -> Result<Proof, NodeError> {
        prove(&self.request, &self.host).await
    }

    async fn not_proven(&self) -> String {
        self.proof().await.unwrap_err().to_string()
    }

    async fn cleared(&self) -> Result<(), NodeError> {
        clear(&self.request, &self.host).await
    }

    /// Checks that the removal is refused and nothing is removed.
    async fn spared(&self) -> String {
        let before = tree(&self.host.parent);
        let why = self.cleared().await.unwrap_err();
        assert!(matches!(why, NodeError::Refused(_)), "{why:?}");
        assert_eq!(tree(&self.host.parent), before);
        why.to_string()
    }
}

fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(tree(&path));
        }
        all.push(path);
    }
    all.sort();
    all
}

#[tokio::test]
async fn directory_osd_is_proven_by_its_files_and_only_it_is_removed() {
    for (scene, kind) in
        [(Scene::new(), Kind::FilestoreDirectory), (Scene::bluestore(), Kind::BluestoreDirectory)]
    {
        let proof = scene.proof().await.unwrap();
        assert_eq!(proof.kind(), Some(kind));
        assert!(matches!(&proof, Proof::Directory { path, .. } if path == HOST_PATH));
        let NodeRequest { old, osd, cluster, .. } = scene.request.clone();
        assert_eq!(proof.names(), Some((old, osd, cluster)));
        let far = scene.host.parent.join("osd2");
        symlink(&far, scene.dir().join("current/link")).unwrap();
        scene.cleared().await.unwrap();
        assert_eq!(tree(&scene.host.parent), [far.clone(), far.join("fsid")]);
        scene.cleared().await.unwrap(); // a missing directory counts as removed
    }
}

#[tokio::test]
async fn directory_of_another_or_an_unknown_osd_is_never_removed() {
    let other = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b";
    for (name, text) in [("fsid", other), ("whoami", "2"), ("ceph_fsid", other)] {
        let scene = Scene::new();
        scene.put(name, text);
        let why = scene.spared().await;
        assert!(why.contains(&format!("its {name}: expected")), "{why}");
    }
    for name in ["fsid", "whoami", "ceph_fsid"] {
        let scene = Scene::new();
        fs::remove_file(scene.dir().join(name)).unwrap();
        assert!(scene.spared().await.contains("not all of its files name OSD"));
        assert!(scene.not_proven().await.contains(&format!("no file `{name}`")));
    }
}

#[tokio::test]
async fn interrupted_directory_removal_is_finished() {
    for gone in 0..=NAMES.len() {
        let scene = Scene::new();
        fs::remove_dir_all(scene.dir().join("current")).unwrap();
        fs::remove_file(scene.dir().join("journal")).unwrap();
        for name in &NAMES[..gone] {
            fs::remove_file(scene.dir().join(name)).unwrap();
        }
        scene.cleared().await.unwrap();
        assert!(!scene.dir().exists(), "{gone}");
    }
    let scene = Scene::new();
    fs::remove_dir_all(scene.dir().join("current")).unwrap();
    scene.cleared().await.unwrap(); // an interrupted removal: the directory still identifies its OSD
    let scene = Scene::new();
    for name in &NAMES {
        fs::remove_file(scene.dir().join(name)).unwrap();
    }
    scene.spared().await; // full, and without an owner
}

#[tokio::test]
async fn link_or_mount_point_is_never_the_directory_of_an_osd() {
    let scene = Scene::new();
    for below in ["", "/current", "/current/0.1_head"] {
        let at = PathBuf::from(format!("{}{below}", scene.dir().display()));
        scene.mounts(&[scene.host.parent.clone(), at]);
        assert!(scene.spared().await.contains("is a mount point"));
        assert!(scene.not_proven().await.contains("is a mount point"));
    }
    let auxiliary = format!("{}0", scene.dir().display());
    scene.mounts(&[scene.host.parent.clone(), scene.host.parent.join("osd2"), auxiliary.into()]);
    scene.proof().await.unwrap();
    let mut scene = Scene::new();
    symlink(scene.dir(), scene.host.parent.join("osd3")).unwrap();
    fs::write(scene.host.parent.join("osd4"), "").unwrap();
    for (path, why) in [
        ("/srv/a/osd3", "a link, or no directory"),
        ("/srv/a/osd4", "a link, or no directory"),
        ("/srv/a/../a/osd1", "not the plain path"),
        ("/srv/a/", "not the plain path"),
        ("srv/a/osd1", "not the plain path"),
        ("/osd1", "not the plain path"),
    ] {
        let onto = scene.request.directory.as_ref().unwrap().onto.clone();
        scene.request.directory = Some(Directory { path: path.to_owned(), onto });
        for said in [scene.not_proven().await, scene.spared().await] {
            assert!(said.contains(why), "{path}: {said}");
        }
    }
}

#[tokio::test]
async fn directory_osd_with_a_part_elsewhere_is_not_proven() {
    let scene = Scene::new();
    fs::remove_file(scene.dir().join("journal")).unwrap();
    assert!(scene.not_proven().await.contains("its journal is no file in it"));
    symlink("/dev/sdb1", scene.dir().join("journal")).unwrap();
    assert!(scene.not_proven().await.contains("its journal is no file in it"));

    let scene = Scene::bluestore();
    scene.put("bluestore-db", "bluestore block device\n500fff8e-39ff-4d5f-a72f-3cd43f874c6b");
    let why = scene.not_proven().await;
    assert!(why.contains("block.db in bluestore-db names OSD 500fff8e"), "{why}");
    fs::remove_file(scene.dir().join("block")).unwrap();
    symlink("/srv/a/osd2/fsid", scene.dir().join("block")).unwrap();
    assert!(scene.not_proven().await.contains("its block is no file in it"));
    scene.put("type", "memstore");
    assert!(scene.not_proven().await.contains("memstore"));
}

#[tokio::test]
async fn directory_of_a_running_osd_is_never_removed() {
    let scene = Scene::new();
    // Locks as ceph-osd does, in another process: a lock of this process would not conflict.
    let script = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print('x', flush=True); sys.stdin.read()";
    #[expect(clippy::disallowed_methods, reason = "another process must hold the lock")]
    let mut holder = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(scene.dir().join("fsid"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut byte).unwrap();
    assert!(scene.spared().await.contains("in use"));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    scene.cleared().await.unwrap();
}
