//! Commands of LVM and cryptsetup that change something. Each names its object in full.

use std::path::Path;

use crate::node::error::NodeError;
use crate::node::tools::command::run;
use crate::node::volumes::hidden;
use crate::node::volumes::lvm::LIMIT;

/// A command that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// Creation of a physical volume with this uuid, without `--yes`: fails on a device with a signature.
    PvCreate { device: &'a Path, uuid: &'a str },
    /// Creation of a volume group. Without `--yes`, as for `PvCreate`.
    VgCreate { name: &'a str, tags: &'a [String], device: &'a Path },
    /// Creation of a volume, with its tags in the same step.
    /// Without a size the volume takes all available space. `on` restricts the volume to that device of the
    /// group.
    LvCreate {
        group: &'a str,
        name: &'a str,
        tags: &'a [String],
        size_bytes: Option<u64>,
        on: Option<&'a Path>,
    },
    /// Addition of a tag to a volume group.
    VgTag { name: &'a str, tag: &'a str },
    /// Removal of a tag from a volume group.
    VgUntag { name: &'a str, tag: &'a str },
    /// Addition of a tag to a volume.
    LvTag { lv: &'a str, tag: &'a str },
    /// Activation of a volume: the volume gets its node.
    Activate { lv: &'a str },
    /// Deactivation of a group: all its volumes lose their nodes. The command fails if one of them is in use.
    Deactivate { group: &'a str },
    /// Removal of a volume.
    LvRemove { lv: &'a str },
    /// Creation of a LUKS header with this uuid, in a file of its own.
    /// The key has 1,024 random bits, so it needs no slow derivation.
    LuksFormat { file: &'a Path, uuid: &'a str, label: &'a str, subsystem: &'a str, key: &'a Path },
    /// Opening of a LUKS device. `key` is the path of a file, never the key.
    LuksOpen { device: &'a Path, mapping: &'a str, key: &'a Path, read_only: bool },
    /// Closing of a dm-crypt mapping. The command fails if the mapping is in use.
    CryptClose { mapping: &'a str },
}

/// Fixed arguments of `cryptsetup luksFormat`.
///
/// The header is made in a file, so what cryptsetup would read from the device is given: the data begin after
/// 16 MiB (32,768 units of 512 bytes), and sectors of 512 bytes fit every device.
const FORMAT: [&str; 14] = [
    "luksFormat",
    "--batch-mode",
    "--type",
    "luks2",
    "--key-size",
    "512",
    "--sector-size",
    "512",
    "--offset",
    "32768",
    "--pbkdf",
    "pbkdf2",
    "--pbkdf-force-iterations",
    "1000",
];

fn key_in(file: &Path) -> Vec<String> {
    vec!["--key-file".to_owned(), file.display().to_string()]
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
            Self::LvCreate { group, name, tags, size_bytes, on } => {
                let size = size_bytes.map_or_else(
                    || owned(&["-l", "100%FREE"]),
                    |bytes| vec!["-L".to_owned(), format!("{bytes}b")],
                );
                let on = on.iter().map(|device| device.display().to_string()).collect();
                let words = [owned(&["--yes", "-Wy"]), size, tagged(tags), owned(&["-n", name, group]), on];
                ("lvcreate", words.into())
            }
            Self::VgTag { name, tag } => ("vgchange", vec![owned(&["--addtag", tag, name])]),
            Self::VgUntag { name, tag } => ("vgchange", vec![owned(&["--deltag", tag, name])]),
            Self::LvTag { lv, tag } => ("lvchange", vec![owned(&["--addtag", tag, lv])]),
            Self::Activate { lv } => ("lvchange", vec![owned(&["--activate", "y", lv])]),
            Self::Deactivate { group } => ("vgchange", vec![owned(&["--activate", "n", group])]),
            Self::LvRemove { lv } => ("lvremove", vec![owned(&["--yes", lv])]),
            Self::LuksFormat { file, uuid, label, subsystem, key } => {
                let names = owned(&["--uuid", uuid, "--label", label, "--subsystem", subsystem]);
                ("cryptsetup", vec![owned(&FORMAT), names, key_in(key), vec![file.display().to_string()]])
            }
            Self::LuksOpen { device, mapping, key, read_only } => {
                let how = if *read_only { "--readonly" } else { "--allow-discards" };
                let what = vec![device.display().to_string(), (*mapping).to_owned()];
                ("cryptsetup", vec![owned(&["open", how, "--disable-keyring"]), key_in(key), what])
            }
            Self::CryptClose { mapping } => ("cryptsetup", vec![owned(&["close", mapping])]),
        };
        (program, words.concat())
    }

    /// Runs the command.
    pub(super) async fn done(&self) -> Result<(), NodeError> {
        let (program, mut words) = self.words();
        if program != "cryptsetup" {
            words.splice(..0, hidden::options().into_iter().map(str::to_owned));
        }
        run(program, &words, None, LIMIT).await?.good().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tools::command::words;

    #[test]
    fn lvm_command_lines_are_exact() {
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
                Change::LvCreate {
                    group: "ceph-F",
                    name: "osd-block-F",
                    tags: &tags[..1],
                    size_bytes: None,
                    on: None,
                },
                "lvcreate --yes -Wy -l 100%FREE --addtag osd-migrate.osd=3 -n osd-block-F ceph-F",
            ),
            (
                Change::LvCreate {
                    group: "ceph-g",
                    name: "osd-db-F",
                    tags: &[],
                    size_bytes: Some(1 << 30),
                    on: Some(disk),
                },
                "lvcreate --yes -Wy -L 1073741824b -n osd-db-F ceph-g /dev/sdb",
            ),
            (Change::VgTag { name: "ceph-F", tag: "x" }, "vgchange --addtag x ceph-F"),
            (Change::VgUntag { name: "ceph-F", tag: "x" }, "vgchange --deltag x ceph-F"),
            (Change::LvTag { lv: "ceph-F/osd-db-F", tag: "x" }, "lvchange --addtag x ceph-F/osd-db-F"),
            (Change::Activate { lv: "ceph-F/osd-block-F" }, "lvchange --activate y ceph-F/osd-block-F"),
            (Change::Deactivate { group: "ceph-F" }, "vgchange --activate n ceph-F"),
            (Change::LvRemove { lv: "ceph-g/osd-db-F" }, "lvremove --yes ceph-g/osd-db-F"),
        ] {
            let (program, args) = change.words();
            assert_eq!(words(program, &args), line);
        }
    }

    #[test]
    fn cryptsetup_command_lines_are_exact() {
        let (disk, key) = (Path::new("/dev/sdb"), Path::new("/mnt/key"));
        for (change, line) in [
            (
                Change::LuksFormat {
                    file: Path::new("/tmp/h"),
                    uuid: "U",
                    label: "pvc_name=X",
                    subsystem: "ceph_fsid=F",
                    key,
                },
                "cryptsetup luksFormat --batch-mode --type luks2 --key-size 512 --sector-size 512 --offset 32768 \
                 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --uuid U --label pvc_name=X \
                 --subsystem ceph_fsid=F --key-file /mnt/key /tmp/h",
            ),
            (
                Change::LuksOpen { device: disk, mapping: "x-block-dmcrypt", key, read_only: false },
                "cryptsetup open --allow-discards --disable-keyring --key-file /mnt/key /dev/sdb x-block-dmcrypt",
            ),
            (
                Change::LuksOpen { device: disk, mapping: "x-osd-migrate", key, read_only: true },
                "cryptsetup open --readonly --disable-keyring --key-file /mnt/key /dev/sdb x-osd-migrate",
            ),
            (Change::CryptClose { mapping: "vdziVh-FoBu" }, "cryptsetup close vdziVh-FoBu"),
        ] {
            let (program, args) = change.words();
            assert_eq!(words(program, &args), line);
        }
    }
}
