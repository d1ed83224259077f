//! `ceph config-key ls`: the OSDs for which the mons keep a dm-crypt key. It returns names only; the keys are
//! never read.

use std::collections::BTreeSet;

use crate::ceph::command::Command;
use crate::domain::osd::OsdFsid;

pub(super) fn command() -> Command {
    Command::mon("config-key ls")
}

/// Returns the fsids of OSDs that have a dm-crypt key.
///
/// `ceph-volume lvm --dmcrypt` stores it at `dm-crypt/osd/<fsid>/luks` (`osd new` with a `dmcrypt_key`,
/// 16.2.15); `osd destroy` deletes it.
pub(super) fn parse(answer: &[u8]) -> serde_json::Result<BTreeSet<OsdFsid>> {
    let names: Vec<String> = serde_json::from_slice(answer)?;
    let fsid = |name: &String| name.strip_prefix("dm-crypt/osd/")?.strip_suffix("/luks")?.parse().ok();
    Ok(names.iter().filter_map(fsid).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer};

    #[test]
    fn unencrypted_cluster_has_no_dmcrypt_keys() {
        for release in RELEASES {
            let names: Vec<String> = serde_json::from_slice(&answer(release, "config-key-ls")).unwrap();
            assert!(
                !names.is_empty() && parse(&answer(release, "config-key-ls")).unwrap().is_empty(),
                "{release}"
            );
        }
    }

    #[test]
    fn dmcrypt_keys_are_parsed_only_for_valid_osd_fsids() {
        let answer = br#"["config-history/1/", "dm-crypt/osd/500fff8e-39ff-4d5f-a72f-3cd43f874c6b/luks", "dm-crypt/osd/x/luks",
            "mgr/devicehealth/last_scrape"]"#;
        let fsids: Vec<String> = parse(answer).unwrap().iter().map(OsdFsid::to_string).collect();
        assert_eq!(fsids, ["500fff8e-39ff-4d5f-a72f-3cd43f874c6b"]);
        assert!(parse(b"[]").unwrap().is_empty());
    }
}
