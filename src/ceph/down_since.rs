//! Since when an OSD has been down, from the osdmap of the epoch in which it went down.
//!
//! `osd dump` has the time of the last change of any OSD only (`last_up_change`), which never gets old in a
//! cluster in which OSDs restart every hour.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::ceph::osd_dump::OsdMap;
use crate::domain::observation::{Slot, SlotState};
use crate::domain::osd::{Epoch, OsdId};
use crate::domain::shared::Shared;

/// Maps to read in one observation at most: a map of 10,000 OSDs has about 5 MB, and few OSDs are dead.
const MAPS: usize = 8;

/// Number of latest epochs whose maps the mons certainly have: `mon_min_osdmap_epochs` is 500 (16 to 20).
///
/// An older map may be trimmed. An OSD that went down before this one was down in it, too.
const KEPT_EPOCHS: u64 = 400;

/// An OSD, and the epoch in which it went down.
pub(super) type Down = (OsdId, Epoch);

/// Since when OSDs have been down, at least.
///
/// The map of an epoch never changes. `None`: the mons do not have the map, or it has no readable time.
pub(super) type DownSince = BTreeMap<Down, Option<DateTime<Utc>>>;

/// Returns the OSDs that are down and out: only about these the time decides.
pub(super) fn dead(map: &OsdMap) -> impl Iterator<Item = Down> {
    let is_dead = |slot: &Slot| slot.state == SlotState::Exists && slot.is_down_and_out();
    // Epoch 0: it never went down.
    let went_down = |slot: &Slot| slot.down_at > Epoch(0);
    let found = map.slots.iter().filter(move |(_, slot)| is_dead(slot) && went_down(slot));
    found.map(|(osd, slot)| (*osd, slot.down_at))
}

/// Returns the dead OSDs whose time is not known yet, each with the epoch of the map to read.
pub(super) fn missing(map: &OsdMap, known: &DownSince) -> Vec<(Down, Epoch)> {
    let oldest = Epoch(map.epoch.0.saturating_sub(KEPT_EPOCHS));
    let unknown = dead(map).filter(|down| !known.contains_key(down));
    unknown.map(|down| (down, down.1.max(oldest))).take(MAPS).collect()
}

/// Sets the known times.
///
/// For other OSDs the careful time of `osd dump` stays. A map that has the times already is not changed, and
/// so not copied.
pub(super) fn set(map: &mut Shared<OsdMap>, known: &DownSince) {
    for ((osd, _), time) in known.iter().filter(|(_, time)| time.is_some()) {
        let has_another = map.slots.get(osd).is_some_and(|slot| slot.down_since != *time);
        if has_another && let Some(slot) = map.slots.get_mut(osd) {
            slot.down_since = *time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::osd_dump;

    const NOON: &str = "2026-11-26T12:00:00Z";

    /// Returns a map of epoch 1000 in which osd.0 is up, and osd.1 and osd.2 are dead since these epochs.
    fn map(went_down: [u64; 2]) -> Shared<OsdMap> {
        let mut map = osd_dump::tests::fine();
        map.epoch = Epoch(1000);
        for (osd, epoch) in [OsdId(1), OsdId(2)].into_iter().zip(went_down) {
            let slot = map.slots.get_mut(&osd).unwrap();
            (slot.up, slot.is_in, slot.down_at, slot.down_since) = (false, false, Epoch(epoch), None);
        }
        map.into()
    }

    #[test]
    fn time_of_a_dead_osd_is_read_once_from_the_map_of_its_epoch() {
        let mut map = map([900, 950]);
        let noon: DateTime<Utc> = NOON.parse().unwrap();
        let (first, second) = ((OsdId(1), Epoch(900)), (OsdId(2), Epoch(950)));
        assert_eq!(missing(&map, &DownSince::new()), [(first, Epoch(900)), (second, Epoch(950))]);
        let known = DownSince::from([(first, Some(noon)), (second, None)]);
        assert_eq!(missing(&map, &known), []);
        set(&mut map, &known);
        let since = |osd| map.slots[&OsdId(osd)].down_since;
        assert_eq!((since(0), since(1), since(2)), (None, Some(noon), None));
        let mut same = map.clone();
        set(&mut same, &known);
        assert!(std::ptr::eq(&raw const *same, &raw const *map), "nothing changed: no copy");
        // It came up and went down again.
        map.slots.get_mut(&OsdId(1)).unwrap().down_at = Epoch(1000);
        assert_eq!(missing(&map, &known), [((OsdId(1), Epoch(1000)), Epoch(1000))]);
    }

    #[test]
    fn dead_osd_of_a_trimmed_map_is_down_since_an_epoch_that_is_kept() {
        let map = map([3, 0]);
        assert_eq!(missing(&map, &DownSince::new()), [((OsdId(1), Epoch(3)), Epoch(600))]);
    }

    #[test]
    fn only_osds_that_are_down_and_out_are_asked_about() {
        let mut map = map([900, 950]);
        map.slots.get_mut(&OsdId(1)).unwrap().is_in = true;
        map.slots.get_mut(&OsdId(2)).unwrap().state = SlotState::Destroyed;
        assert_eq!(missing(&map, &DownSince::new()), []);
    }

    #[test]
    fn map_says_when_its_epoch_began() {
        let began = |text: &str| osd_dump::beginning(text.as_bytes()).unwrap();
        let noon = began(r#"{"epoch":900,"modified":"2026-11-26T13:00:00.000000+0100","osds":[]}"#);
        assert_eq!(noon, Some(NOON.parse().unwrap()));
        assert_eq!(began(r#"{"epoch":900,"modified":"0.000000","osds":[]}"#), None);
    }
}
