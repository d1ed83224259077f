//! The osdmap, read as a whole, or as far as it has changed since the observation before.

use chrono::{DateTime, Utc};
use rustix::io::Errno;

use crate::ceph::down_since::{self, DownSince};
use crate::ceph::error::CephError;
use crate::ceph::maps::{Maps, Source, changed};
use crate::ceph::numbers::parsed;
use crate::ceph::osd_crush_dump::{self, Crush};
use crate::ceph::osd_dump::{self, OsdMap};
use crate::ceph::osd_stat;
use crate::ceph::session::{Ceph, lock};
use crate::domain::observation::Slot;
use crate::domain::osd::{Epoch, OsdId};
use crate::domain::shared::Shared;

impl Ceph {
    /// Reads the current osdmap.
    pub(super) async fn osd_map(&self) -> Result<OsdMap, CephError> {
        self.read(osd_dump::command(), osd_dump::parse).await
    }

    /// Reads the current slot; none if the id is absent.
    ///
    /// Every act checks the slot right before it is sent.
    pub(super) async fn slot(&self, osd: OsdId) -> Result<Option<Slot>, CephError> {
        Ok(self.osd_map().await?.slots.remove(&osd))
    }

    /// Reads the osdmap and CRUSH of one epoch, as far as they have changed since the observation before.
    pub(super) async fn osd_map_with_crush(&self) -> Result<Maps, CephError> {
        let kept = lock(&self.kept_map).take();
        let mut maps = changed(kept, self).await?;
        self.set_down_since(&mut maps.map).await?;
        *lock(&self.kept_map) = Some(maps.clone());
        Ok(maps)
    }

    /// Sets since when the OSDs that are down and out have been down.
    async fn set_down_since(&self, map: &mut Shared<OsdMap>) -> Result<(), CephError> {
        let before = std::mem::take(&mut *lock(&self.down_since));
        let mut known: DownSince =
            down_since::dead(map).filter_map(|down| Some((down, *before.get(&down)?))).collect();
        for (down, epoch) in down_since::missing(map, &known) {
            known.insert(down, self.beginning(epoch).await?);
        }
        down_since::set(map, &known);
        *lock(&self.down_since) = known;
        Ok(())
    }

    /// Returns when an epoch began; `None` if the mons do not have its map.
    async fn beginning(&self, epoch: Epoch) -> Result<Option<DateTime<Utc>>, CephError> {
        let command = osd_dump::command().with("epoch", epoch.0);
        match self.answer(&command).await {
            Ok(answer) => parsed(&answer, osd_dump::beginning)
                .map_err(|source| CephError::UnreadableAnswer { command: command.name, source }),
            Err(CephError::Read { errno: Errno::NOENT, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Source for Ceph {
    async fn epoch(&self) -> Result<Epoch, CephError> {
        self.read(osd_stat::command(), osd_stat::parse).await
    }

    async fn map(&self) -> Result<OsdMap, CephError> {
        self.osd_map().await
    }

    async fn crush(&self) -> Result<Crush, CephError> {
        self.read(osd_crush_dump::command(), osd_crush_dump::parse).await
    }
}
