//! `ceph osd pg-upmap-items`: restores upmaps that a purge removed. Upmaps of other PGs, and upmaps that a PG
//! got since, stay.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::osd_dump;
use crate::ceph::session::Ceph;
use crate::domain::expect;
use crate::domain::osd::{OsdFsid, OsdId, Upmap};

const NAME: &str = "osd pg-upmap-items";

fn command(upmap: &Upmap) -> Command {
    let ids: Vec<u32> = upmap.mappings.iter().flat_map(|(from, to)| [from.0, to.0]).collect();
    Command::mon(NAME).with("pgid", upmap.pg.to_string()).with("id", ids)
}

impl Ceph {
    /// Restores the upmaps of PGs that have none by now, if the OSD is up with `fsid`.
    ///
    /// A repeated call after a crash continues.
    pub async fn restore_upmaps(&self, osd: OsdId, fsid: OsdFsid, upmaps: &[Upmap]) -> Result<(), CephError> {
        let map = self.osd_map().await?;
        let slot = map.slots.get(&osd);
        if !expect::to_restore_upmaps(slot, fsid) {
            let (expected, found) = (format!("up, fsid {fsid}"), osd_dump::describe(slot));
            return Err(CephError::Unexpected { command: NAME, osd, expected, found });
        }
        for upmap in expect::upmaps_to_restore(upmaps, &map.upmaps, &map.slots) {
            self.act(osd, command(&upmap)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upmap(pg: &str, mappings: &[(u32, u32)]) -> Upmap {
        let mappings = mappings.iter().map(|(from, to)| (OsdId(*from), OsdId(*to))).collect();
        Upmap { pg: pg.parse().unwrap(), mappings }
    }

    #[test]
    fn upmap_pairs_are_sent_in_their_original_sequence() {
        let sent = command(&upmap("2.1a", &[(2, 5), (0, 3)])).to_c_string().into_string().unwrap();
        assert_eq!(sent, r#"{"format":"json","id":[2,5,0,3],"pgid":"2.1a","prefix":"osd pg-upmap-items"}"#);
    }

    #[test]
    fn upmap_is_restored_only_if_missing_and_valid_for_the_mons() {
        let mut map = osd_dump::tests::fine();
        let (ours, theirs) = (upmap("2.8", &[(0, 3)]), upmap("2.8", &[(0, 2)]));
        let other = upmap("2.c", &[(0, 3)]);
        let missing = |map: &osd_dump::OsdMap| {
            expect::upmaps_to_restore(&[ours.clone(), other.clone()], &map.upmaps, &map.slots)
        };
        assert_eq!(missing(&map), [ours.clone(), other.clone()]);
        map.upmaps = vec![theirs, other.clone()];
        assert!(missing(&map).is_empty(), "one is the balancer's by now, the other there");
        map.upmaps.clear();
        map.slots.get_mut(&OsdId(3)).unwrap().is_in = false;
        assert!(missing(&map).is_empty(), "nothing is mapped onto an OSD that is out");
        map.slots.remove(&OsdId(0));
        assert!(missing(&map).is_empty());
    }

    #[test]
    fn upmaps_are_restored_only_for_the_expected_osd_that_is_up() {
        let mut slot = osd_dump::tests::fine().slots[&OsdId(1)].clone();
        let (fsid, other) = (slot.fsid.unwrap(), "11111111-2222-4333-8444-555555555555".parse().unwrap());
        assert!(expect::to_restore_upmaps(Some(&slot), fsid));
        assert!(!expect::to_restore_upmaps(Some(&slot), other) && !expect::to_restore_upmaps(None, fsid));
        slot.up = false;
        assert!(!expect::to_restore_upmaps(Some(&slot), fsid));
    }
}
