//! The kernel's stack on a disk, compared with what the OSD itself needs: nothing else is ever closed or
//! wiped.
//!
//! This is the second line of defence against a host's own layers (multipath, LUKS opened by crypttab or
//! clevis, md, bcache). Whatever the class of an OSD says, a disk with such a layer on it is refused, both
//! when it is inspected and again when its rebuild starts.

use crate::domain::inspection::Proof;
use crate::domain::osd::{OsdFsid, Role, pvc};
use crate::node::disk::devices::Disk;
use crate::node::host::Host;
use crate::node::volumes::luks;
use crate::node::volumes::mapped::Mapped;

/// Returns why the stack on a disk is not the OSD's own; none if it is.
///
/// `pvc`: the PVC that the OSD is on, if it is on one.
pub(crate) fn foreign_layer(host: &Host, disk: &Disk, proof: &Proof, pvc: Option<&str>) -> Option<String> {
    disk.holders
        .iter()
        .find_map(|kernel| foreign_holder(host, kernel, proof, pvc))
        .map(|layer| not_own(disk, &layer))
}

/// Returns why the stack on the device of a PVC for database or log is not the OSD's own; none if it is.
///
/// `header`: the LUKS header on the device, if it is encrypted. Then its mapping may be that of Rook, of
/// ceph-volume, or of an agent that was killed.
pub(crate) fn foreign_on_part(
    host: &Host,
    disk: &Disk,
    header: Option<&str>,
    osd_fsid: OsdFsid,
    (pvc, role): (&str, Role),
) -> Option<String> {
    let is_own = |mapped: &Mapped| {
        let has_own_name =
            is_own_mapping(mapped, osd_fsid, Some((pvc, role))) || mapped.name == luks::reading_name(pvc);
        has_own_name && header.is_some_and(|header| mapped.decrypts(header))
    };
    let foreign = |kernel: &String| match Mapped::read(host, kernel) {
        Some(mapped) => (!is_own(&mapped)).then(|| mapped.described()),
        None => Some(kernel.clone()),
    };
    disk.holders.iter().find_map(foreign).map(|layer| not_own(disk, &layer))
}

fn not_own(disk: &Disk, layer: &str) -> String {
    format!("{} is used by a layer that is not the OSD's own: {layer}", disk.described())
}

fn foreign_holder(host: &Host, kernel: &str, proof: &Proof, pvc: Option<&str>) -> Option<String> {
    let Some(mapped) = Mapped::read(host, kernel) else {
        return Some(kernel.to_owned());
    };
    let is_own = match proof {
        Proof::Volume { group, volume, luks, alone, .. } if mapped.is_volume(group, volume) => {
            let is_own_mapping =
                |above: &Mapped| luks.as_deref().is_some_and(|header| above.decrypts(header));
            return mapped.above(host).iter().find(|above| !is_own_mapping(above)).map(Mapped::described);
        }
        // Foreign volumes in the same group are not touched, whatever lies on them.
        Proof::Volume { alone, .. } => !alone && mapped.is_any_volume(),
        Proof::Luks { header, osd_fsid, .. } => {
            mapped.decrypts(header) && is_own_mapping(&mapped, *osd_fsid, pvc.map(|pvc| (pvc, Role::Block)))
        }
        Proof::BluestoreLabel { .. }
        | Proof::Partitions { .. }
        | Proof::Directory { .. }
        | Proof::Available { .. } => false,
    };
    (!is_own).then(|| mapped.described())
}

/// Returns whether `ceph-volume raw prepare --dmcrypt` created a mapping for that OSD, or Rook opened it for
/// what the OSD has on that PVC.
///
/// The name of ceph-volume's mapping is `ceph-{fsid}-{kname}-{device_type}-dmcrypt` (devices/raw/prepare.py,
/// `prepare_dmcrypt`). A mapping that the host opens has any other name.
pub(super) fn is_own_mapping(mapped: &Mapped, osd_fsid: OsdFsid, pvc: Option<(&str, Role)>) -> bool {
    let rest = mapped.name.strip_prefix(&format!("ceph-{osd_fsid}-"));
    rest.is_some_and(|rest| rest.ends_with("-dmcrypt"))
        || pvc.is_some_and(|(pvc, role)| mapped.name == pvc::mapping_name(pvc, role))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::domain::osd::Kind;
    use crate::node::samples::bare_disk;
    use crate::node::samples::{host, request};

    const HEADER: &str = "95889c26-82f1-46a3-b2a7-609a34676da4";
    const CRYPT: &str = "CRYPT-LUKS2-95889c2682f146a3b2a7609a34676da4-x";
    const GROUP: &str = "8KvpLl-kKBv-kXvW-bq51-uQbz-VAvM-8sT5nI";
    const VOLUME: &str = "80dfGe-zbcx-tU97-2fNT-VOiI-ux6x-g74vRE";

    fn disk(holders: &[&str]) -> Disk {
        Disk { holders: holders.iter().map(|holder| (*holder).to_owned()).collect(), ..bare_disk(&[], 1) }
    }

    fn put(host: &Host, kernel: &str, name: &str, uuid: &str, holders: &[&str]) {
        let folder = host.sys_block.join(kernel);
        for (file, text) in [("name", name), ("uuid", uuid)] {
            fs::create_dir_all(folder.join("dm")).unwrap();
            fs::write(folder.join("dm").join(file), format!("{text}\n")).unwrap();
        }
        for holder in holders {
            fs::create_dir_all(folder.join("holders")).unwrap();
            fs::write(folder.join("holders").join(holder), "").unwrap();
        }
    }

    fn luks() -> Proof {
        let request = request("n1");
        let (osd_fsid, whoami, cluster) = (request.old, request.osd, request.cluster);
        Proof::Luks { header: HEADER.into(), osd_fsid, whoami, cluster }
    }

    fn volume(alone: bool, luks: Option<&str>) -> Proof {
        let request = request("n1");
        Proof::Volume {
            format: Kind::Lvm,
            group: GROUP.into(),
            volume: VOLUME.into(),
            name: "g/v".into(),
            alone,
            luks: luks.map(str::to_owned),
            osd_fsid: request.old,
            whoami: request.osd,
            cluster: request.cluster,
        }
    }

    #[test]
    fn host_luks_and_multipath_are_never_the_osds_own() {
        let root = tempfile::tempdir().unwrap();
        let host = host(root.path());
        let request = request("n1");
        let own = format!("ceph-{}-sdb-block-dmcrypt", request.old);
        put(&host, "dm-0", "mpatha", "mpath-3600508b400105e210000900000490000", &[]);
        put(&host, "dm-1", "luks-data", CRYPT, &[]);
        put(&host, "dm-2", &own, CRYPT, &[]);
        put(&host, "dm-3", &own, "CRYPT-LUKS2-00000000000000000000000000000000-x", &[]);
        let (osd_fsid, whoami, cluster) = (request.old, request.osd, request.cluster);
        let label = Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: true };
        put(&host, "dm-4", "set1-data-0x-block-dmcrypt", CRYPT, &[]);
        let on_pvc = |pvc| foreign_layer(&host, &disk(&["dm-4"]), &luks(), pvc);
        assert_eq!(on_pvc(Some("set1-data-0x")), None, "Rook's name");
        assert!(on_pvc(Some("set1-data-0y")).is_some() && on_pvc(None).is_some());
        for (proof, holder, said) in [
            (&label, "dm-0", Some("multipath (mpatha, dm-0)")),
            (&label, "dm-1", Some("encryption (luks-data, dm-1)")),
            (&label, "md127", Some("md127")),
            (&luks(), "dm-0", Some("multipath")),
            (&luks(), "dm-1", Some("luks-data")),
            (&luks(), "dm-3", Some("encryption")),
            (&luks(), "dm-2", None),
        ] {
            let found = foreign_layer(&host, &disk(&[holder]), proof, None);
            assert_eq!(found.is_some(), said.is_some(), "{holder}: {found:?}");
            assert!(said.is_none_or(|said| found.unwrap().contains(said)), "{holder}");
        }
        assert_eq!(foreign_layer(&host, &disk(&[]), &label, None), None);
    }

    #[test]
    fn osds_own_layers_are_only_its_lv_and_its_luks() {
        let root = tempfile::tempdir().unwrap();
        let host = host(root.path());
        let uuid =
            format!("LVM-{GROUP}{VOLUME}").replace("LVM-", "LVM_").replace('-', "").replace("LVM_", "LVM-");
        put(&host, "dm-0", "mpatha", "mpath-36005", &["dm-4"]);
        put(&host, "dm-4", "g-v", &uuid, &["dm-5"]);
        put(&host, "dm-5", VOLUME, CRYPT, &[]);
        put(
            &host,
            "dm-6",
            "g-other",
            "LVM-rM6vktZQm723zGZ1FqVSu7rykuMihFsZQUkayRCxO220EXyiFip0yX3wvtkMBxzq",
            &["dm-1"],
        );
        put(&host, "dm-1", "vm", "CRYPT-LUKS2-1-vm", &[]);
        let ask = |holder: &str, proof: &Proof| foreign_layer(&host, &disk(&[holder]), proof, None);
        assert_eq!(ask("dm-4", &volume(true, Some(HEADER))), None);
        assert!(
            ask("dm-4", &volume(true, None)).unwrap().contains("encryption"),
            "what lies on it is the host's"
        );
        assert!(ask("dm-4", &volume(true, Some("0"))).is_some());
        assert!(ask("dm-0", &volume(true, Some(HEADER))).unwrap().contains("multipath"));
        assert!(ask("dm-6", &volume(true, None)).unwrap().contains("a logical volume"));
        assert_eq!(ask("dm-6", &volume(false, None)), None, "a neighbour of a shared group");
    }
}
