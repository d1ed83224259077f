//! Releases of Ceph that can reuse an id.

use crate::domain::release;

/// Returns whether `ceph-volume raw prepare` of a release creates the OSD of `--osd-id`.
///
/// The option came with 16.2.15, 17.2.7 and 18.2.1 (ceph/ceph PR 52422 and its backports). 19.2.0 ignores it
/// (PR 59604, in 19.2.1).
pub(super) fn keeps_ids(ceph_version: &str) -> bool {
    let Some(version) = release::numbers(ceph_version) else { return false };
    match version.0 {
        16 => version >= (16, 2, 15),
        17 => version >= (17, 2, 7),
        18 => version >= (18, 2, 1),
        major => major > 18 && !ignores_osd_id(ceph_version),
    }
}

/// Returns whether `ceph-volume raw prepare` of a release ignores its option `--osd-id`: 19.2.0.
pub fn ignores_osd_id(ceph_version: &str) -> bool {
    release::numbers(ceph_version).is_some_and(|version| version.0 == 19 && version < (19, 2, 1))
}

/// Returns whether `ceph-volume raw list` of a release fails for a link that leads to a device: 16.2.15,
/// 17.2.7 (ceph/ceph PR 54430).
pub fn lists_no_links(ceph_version: &str) -> bool {
    release::numbers(ceph_version).is_some_and(|version| version.0 <= 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_prepare_osd_id_needs_16_2_15_17_2_7_18_2_1_or_19_2_1() {
        for (version, keeps) in [
            ("ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)", true),
            ("ceph version 16.2.14 (238ba602515df21ea7ffc75c88db29f9e5ef12c9) pacific (stable)", false),
            ("ceph version 17.2.7-0 quincy", true),
            ("ceph version 18.2.0 reef", false),
            ("ceph version 19.2.0 squid", false),
            ("ceph version 19.2.1 squid", true),
            ("ceph version 20.2.4 tentacle", true),
            ("", false),
        ] {
            assert_eq!(keeps_ids(version), keeps, "{version}");
        }
    }
}
