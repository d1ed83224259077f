//! Osdmap and CRUSH of one epoch, read as far as they have changed since the observation before.

use crate::ceph::error::CephError;
use crate::ceph::osd_crush_dump::Crush;
use crate::ceph::osd_dump::OsdMap;
use crate::domain::osd::Epoch;
use crate::domain::shared::Shared;

/// Number of tries to read map and CRUSH in one epoch.
///
/// Reading both takes milliseconds, and the map changes at most once a second: needing more tries means that
/// something is wrong.
const TRIES: u32 = 5;

/// Osdmap and CRUSH of one epoch.
///
/// Observations share them as long as they do not change.
#[derive(Debug, Clone)]
pub(super) struct Maps {
    pub(super) map: Shared<OsdMap>,
    pub(super) crush: Shared<Crush>,
}

/// Source of osdmap and CRUSH: a session.
pub(super) trait Source {
    /// Reads the epoch of the current osdmap.
    async fn epoch(&self) -> Result<Epoch, CephError>;
    /// Reads the current osdmap.
    async fn map(&self) -> Result<OsdMap, CephError>;
    /// Reads CRUSH of the current osdmap.
    async fn crush(&self) -> Result<Crush, CephError>;
}

/// Reads the osdmap if its epoch has changed, and CRUSH if its version in the map has.
///
/// The CRUSH dump contains neither, so the map must be the same before and after it.
pub(super) async fn changed(kept: Option<Maps>, now: &impl Source) -> Result<Maps, CephError> {
    let kept = match kept {
        Some(maps) if now.epoch().await? == maps.map.epoch => return Ok(maps),
        kept => kept,
    };
    for _ in 0..TRIES {
        let map = now.map().await?;
        match &kept {
            Some(before) if before.map.crush_version == map.crush_version => {
                return Ok(Maps { map: map.into(), crush: before.crush.clone() });
            }
            Some(_) | None => {}
        }
        let crush = now.crush().await?;
        if now.epoch().await? == map.epoch {
            return Ok(Maps { map: map.into(), crush: crush.into() });
        }
    }
    Err(CephError::Unsettled { tries: TRIES })
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::ceph::{osd_crush_dump, osd_dump};

    /// Cluster whose map changes at most once after each command.
    #[derive(Default)]
    struct Fake {
        /// Epoch and version of CRUSH.
        now: Cell<(u64, u64)>,
        /// Both after each of the next commands; after the last of them, they stay.
        later: RefCell<Vec<(u64, u64)>>,
        /// Commands so far.
        sent: RefCell<Vec<&'static str>>,
    }

    impl Fake {
        fn new(now: (u64, u64), later: &[(u64, u64)]) -> Self {
            let later = later.iter().rev().copied().collect();
            Self { now: Cell::new(now), later: RefCell::new(later), sent: RefCell::default() }
        }

        /// Notes a command, and returns epoch and version of CRUSH at its time.
        fn send(&self, command: &'static str) -> (u64, u64) {
            self.sent.borrow_mut().push(command);
            let now = self.now.get();
            if let Some(next) = self.later.borrow_mut().pop() {
                self.now.set(next);
            }
            now
        }

        /// Returns the epoch of the map, and the mark of CRUSH, that `changed` returns; and the commands.
        async fn read(&self, kept: Option<&Maps>) -> (Result<(u64, String), CephError>, Vec<&'static str>) {
            let read = changed(kept.cloned(), self).await;
            let seen = read.map(|maps| (maps.map.epoch.0, maps.crush.hosts.iter().cloned().collect()));
            (seen, self.sent.take())
        }
    }

    impl Source for Fake {
        async fn epoch(&self) -> Result<Epoch, CephError> {
            Ok(Epoch(self.send("osd stat").0))
        }

        async fn map(&self) -> Result<OsdMap, CephError> {
            let (epoch, crush_version) = self.send("osd dump");
            Ok(OsdMap { epoch: Epoch(epoch), crush_version, ..osd_dump::tests::fine() })
        }

        async fn crush(&self) -> Result<Crush, CephError> {
            Ok(crush(self.send("osd crush dump").1))
        }
    }

    /// Returns CRUSH of a version, marked by the name of its only host.
    fn crush(version: u64) -> Crush {
        Crush { hosts: [format!("version-{version}")].into(), ..osd_crush_dump::tests::fine() }
    }

    fn maps(epoch: u64, crush_version: u64) -> Maps {
        let map = OsdMap { epoch: Epoch(epoch), crush_version, ..osd_dump::tests::fine() };
        Maps { map: map.into(), crush: crush(crush_version).into() }
    }

    fn is(epoch: u64, crush: u64) -> (u64, String) {
        (epoch, format!("version-{crush}"))
    }

    #[tokio::test]
    async fn unchanged_osdmap_is_neither_read_nor_copied() {
        let (fake, kept) = (Fake::new((7, 3), &[]), maps(7, 3));
        let read = changed(Some(kept.clone()), &fake).await.unwrap();
        assert_eq!(fake.sent.take(), ["osd stat"]);
        assert!(std::ptr::eq(&raw const *read.map, &raw const *kept.map));
        assert!(std::ptr::eq(&raw const *read.crush, &raw const *kept.crush));
    }

    #[tokio::test]
    async fn moved_epoch_reads_the_map_and_crush_only_of_a_new_version() {
        let (read, sent) = Fake::new((8, 3), &[]).read(Some(&maps(7, 3))).await;
        assert_eq!((read.unwrap(), sent), (is(8, 3), vec!["osd stat", "osd dump"]));
        // A lower epoch is another cluster, or a restored one.
        let (read, sent) = Fake::new((6, 3), &[]).read(Some(&maps(7, 3))).await;
        assert_eq!((read.unwrap(), sent), (is(6, 3), vec!["osd stat", "osd dump"]));
        let (read, sent) = Fake::new((8, 4), &[]).read(Some(&maps(7, 3))).await;
        assert_eq!(read.unwrap(), is(8, 4));
        assert_eq!(sent, ["osd stat", "osd dump", "osd crush dump", "osd stat"]);
        let (read, sent) = Fake::new((8, 4), &[]).read(None).await;
        assert_eq!((read.unwrap(), sent), (is(8, 4), vec!["osd dump", "osd crush dump", "osd stat"]));
    }

    #[tokio::test]
    async fn epoch_that_moves_between_map_and_crush_reads_both_again() {
        // CRUSH was read in epoch 9, after the map of epoch 8.
        let (read, sent) = Fake::new((8, 4), &[(9, 5)]).read(None).await;
        assert_eq!(read.unwrap(), is(9, 5));
        let once = ["osd dump", "osd crush dump", "osd stat"];
        assert_eq!(sent, [once, once].concat());
        // In the second try, CRUSH has the version that is kept again.
        let (read, sent) = Fake::new((8, 4), &[(8, 4), (9, 3)]).read(Some(&maps(7, 3))).await;
        assert_eq!(read.unwrap(), is(9, 3));
        assert_eq!(sent, ["osd stat", "osd dump", "osd crush dump", "osd stat", "osd dump"]);
    }

    #[tokio::test]
    async fn osdmap_that_never_settles_is_an_error_after_the_tries() {
        let moving: Vec<_> = (9..40).map(|epoch| (epoch, epoch)).collect();
        let (read, sent) = Fake::new((8, 8), &moving).read(None).await;
        assert!(matches!(read, Err(CephError::Unsettled { tries: TRIES })), "{read:?}");
        assert_eq!(sent.len(), 3 * TRIES as usize);
    }
}
