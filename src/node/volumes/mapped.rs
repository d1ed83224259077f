//! Device-mapper devices as the kernel shows them: by number and uuid, never by a name that anyone can
//! choose.

use std::fs;
use std::path::PathBuf;

use crate::node::disk::devices;
use crate::node::host::Host;
use crate::node::volumes::lvm::Lv;

/// A device-mapper device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapped {
    /// name in the kernel: `dm-3`
    kernel: String,
    /// name for `cryptsetup` and `dmsetup`
    pub(super) name: String,
    /// uuid: `LVM-...`, `CRYPT-LUKS2-...`
    uuid: String,
    pub(super) node: PathBuf,
}

impl Mapped {
    pub(super) fn read(host: &Host, kernel: &str) -> Option<Self> {
        let described = |what: &str| {
            let text = fs::read_to_string(host.sys_block.join(kernel).join("dm").join(what)).ok()?;
            Some(text.trim().to_owned())
        };
        let node = host.dev.join(kernel);
        Some(Self { kernel: kernel.to_owned(), name: described("name")?, uuid: described("uuid")?, node })
    }

    /// Returns the device of an active logical volume.
    pub(super) fn of_volume(host: &Host, lv: &Lv) -> Option<Self> {
        let uuid = format!("{}{}", lv.group_uuid, lv.uuid).replace('-', "");
        Self::all(host).find(|mapped| mapped.uuid.strip_prefix("LVM-") == Some(uuid.as_str()))
    }

    /// Returns the mapping of this name that decrypts a device.
    pub(super) fn decrypting_as(host: &Host, name: &str) -> Option<Self> {
        Self::all(host).find(|mapped| mapped.name == name && mapped.is_crypt())
    }

    fn all(host: &Host) -> impl Iterator<Item = Self> {
        let entries = fs::read_dir(&host.sys_block).into_iter().flatten().filter_map(Result::ok);
        entries.filter_map(|entry| Self::read(host, entry.file_name().to_str()?))
    }

    /// Returns the devices that it lies on and that still exist, by their names in the kernel.
    ///
    /// The link of a device that is gone leads nowhere, also that of a partition. The kernel keeps the name
    /// of such a device while something has it open, so no other device has it.
    pub(super) fn below(&self, host: &Host) -> Vec<String> {
        let slaves = fs::read_dir(host.sys_block.join(&self.kernel).join("slaves"));
        let entries = slaves.into_iter().flatten().filter_map(Result::ok);
        let existing = entries.filter(|entry| entry.path().exists());
        existing.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Returns the devices that lie directly on a device with these holders.
    pub(super) fn over(host: &Host, holders: &[String]) -> Vec<Self> {
        holders.iter().filter_map(|kernel| Self::read(host, kernel)).collect()
    }

    /// Returns the devices that lie directly on this one.
    pub(super) fn above(&self, host: &Host) -> Vec<Self> {
        Self::over(host, &devices::holders(&host.sys_block.join(&self.kernel)))
    }

    /// Returns whether the device is the logical volume with that uuid, of that group.
    pub(super) fn is_volume(&self, group: &str, volume: &str) -> bool {
        self.uuid.strip_prefix("LVM-") == Some(format!("{group}{volume}").replace('-', "").as_str())
    }

    /// Returns whether the device is a logical volume.
    pub(super) fn is_any_volume(&self) -> bool {
        self.uuid.starts_with("LVM-")
    }

    /// Returns whether the device decrypts the device with that LUKS header.
    ///
    /// The uuid is `CRYPT-LUKS2-UUID-NAME`, with UUID without its dashes (cryptsetup, lib/libdevmapper.c,
    /// `dm_prepare_uuid`).
    pub(super) fn decrypts(&self, header: &str) -> bool {
        let rest = self.uuid.strip_prefix("CRYPT-LUKS").and_then(|rest| rest.split_once('-'));
        rest.is_some_and(|(_, rest)| rest.starts_with(&format!("{}-", header.replace('-', ""))))
    }

    /// Returns a text for people: the kind (`multipath`, `encryption`, `a logical volume`, ...) and the
    /// names.
    pub(super) fn described(&self) -> String {
        let kind = match self.uuid.split('-').next().unwrap_or_default() {
            "CRYPT" => "encryption",
            "LVM" => "a logical volume",
            "mpath" => "multipath",
            _ => "a device-mapper device",
        };
        format!("{kind} ({}, {})", self.name, self.kernel)
    }

    /// Returns whether the device decrypts the device that it lies on.
    pub(super) fn is_crypt(&self) -> bool {
        self.uuid.starts_with("CRYPT-")
    }
}

/// Returns the open mapping of an encrypted volume or disk, from the devices that the kernel shows on it.
pub(super) fn opened(holders: Vec<Mapped>) -> Option<Mapped> {
    holders.into_iter().find(Mapped::is_crypt)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::node::samples::host;
    use crate::node::volumes::lvm::CephTags;

    /// Compares with a node whose kernel shows a volume, its mapping, and another disk's volume.
    #[test]
    fn lv_and_the_luks_mapping_on_it_are_found_by_uuid() {
        let root = tempfile::tempdir().unwrap();
        let host = host(root.path());
        let put = |path: &str, text: &str| {
            let path = host.sys_block.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let volume = "LVM-8KvpLlkKBvkXvWbq51uQbzVAvM8sT5nI80dfGezbcxtU972fNTVOiIux6xg74vRE";
        put("dm-0/dm/name", "metadata-neighbour\n");
        put("dm-0/dm/uuid", "LVM-rM6vktZQm723zGZ1FqVSu7rykuMihFsZQUkayRCxO220EXyiFip0yX3wvtkMBxzq\n");
        put("dm-3/dm/name", "ceph--76db9c55-osd--block\n");
        put("dm-3/dm/uuid", &format!("{volume}\n"));
        put("dm-3/holders/dm-7", "");
        put("dm-7/dm/name", "80dfGe-zbcx-tU97-2fNT-VOiI-ux6x-g74vRE\n");
        put("dm-7/dm/uuid", "CRYPT-LUKS2-95889c2682f146a3b2a7609a34676da4-80dfGe\n");
        fs::create_dir_all(host.sys_block.join("dm-7/slaves")).unwrap();
        symlink("../../dm-3", host.sys_block.join("dm-7/slaves/dm-3")).unwrap();
        put("sda/size", "1");
        let lv = Lv {
            origin: None,
            layout: String::new(),
            group: "ceph-76db9c55".into(),
            group_uuid: "8KvpLl-kKBv-kXvW-bq51-uQbz-VAvM-8sT5nI".into(),
            name: "osd-block".into(),
            uuid: "80dfGe-zbcx-tU97-2fNT-VOiI-ux6x-g74vRE".into(),
            size_bytes: 1,
            tags: Vec::new(),
            cluster: None,
            ceph: CephTags::default(),
        };
        let found = Mapped::of_volume(&host, &lv).unwrap();
        assert_eq!((found.kernel.as_str(), found.is_crypt()), ("dm-3", false));
        assert_eq!(found.node, host.dev.join("dm-3"));
        let open = opened(found.above(&host)).unwrap();
        assert_eq!(open.name, lv.uuid);
        assert_eq!(opened(open.above(&host)), None);
        assert_eq!(open.below(&host), ["dm-3"]);
        let by_name = |name: &str| Mapped::decrypting_as(&host, name);
        assert_eq!((by_name(&lv.uuid), by_name("metadata-neighbour")), (Some(open.clone()), None));
        assert_eq!(Mapped::of_volume(&host, &Lv { uuid: "80dfGe".into(), ..lv }), None);
        fs::remove_dir_all(host.sys_block.join("dm-3")).unwrap();
        assert!(open.below(&host).is_empty(), "the device is gone");
    }
}
