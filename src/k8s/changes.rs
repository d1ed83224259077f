//! Changes since something was read, as watches of the API server report them.
//!
//! A watch is never asked what an object is: it may be behind, and nothing says by how much. It only says
//! that nothing has changed that it knows of, so that a run need not read the same again. See
//! `docs/development/adr/0050-watches.md` and `docs/development/adr/0053-list-of-what-changed.md`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::domain::osd::OsdId;

/// Objects that are watched together, in the namespace of the CephCluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// CephClusters.
    Clusters,
    /// Deployments, of OSDs and of Rook's operator.
    Deployments,
    /// Pods of OSDs, of the operator, and of agents.
    Pods,
    /// Jobs of agents.
    Jobs,
    /// ConfigMaps of osd-migrate and of Rook.
    Maps,
    /// PodDisruptionBudget of Rook for OSDs.
    RookPdb,
    /// PodDisruptionBudget of osd-migrate.
    OwnPdb,
}

impl Watched {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Clusters, Self::Deployments, Self::Pods, Self::Jobs, Self::Maps, Self::RookPdb, Self::OwnPdb];
}

/// Objects whose changes are counted together, because they are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// CephClusters.
    Clusters,
    /// Deployments of OSDs.
    OsdDeployments,
    /// Other Deployments, that of Rook's operator among them.
    OtherDeployments,
    /// Pods of OSDs.
    OsdPods,
    /// Pods of Rook's operator.
    OperatorPods,
    /// Pods of agents.
    AgentPods,
    /// Jobs of agents.
    Jobs,
    /// ConfigMap of the ledger.
    Ledger,
    /// Other ConfigMaps of osd-migrate, and those of Rook.
    OtherMaps,
    /// PodDisruptionBudget of Rook for OSDs.
    RookPdb,
    /// PodDisruptionBudget of osd-migrate.
    OwnPdb,
}

impl Group {
    /// All of them.
    const ALL: [Self; 11] = [
        Self::Clusters,
        Self::OsdDeployments,
        Self::OtherDeployments,
        Self::OsdPods,
        Self::OperatorPods,
        Self::AgentPods,
        Self::Jobs,
        Self::Ledger,
        Self::OtherMaps,
        Self::RookPdb,
        Self::OwnPdb,
    ];

    /// Returns the watch that reports changes of them.
    fn watched(self) -> Watched {
        match self {
            Self::Clusters => Watched::Clusters,
            Self::OsdDeployments | Self::OtherDeployments => Watched::Deployments,
            Self::OsdPods | Self::OperatorPods | Self::AgentPods => Watched::Pods,
            Self::Jobs => Watched::Jobs,
            Self::Ledger | Self::OtherMaps => Watched::Maps,
            Self::RookPdb => Watched::RookPdb,
            Self::OwnPdb => Watched::OwnPdb,
        }
    }
}

/// Kinds of objects of which OSDs consist.
const OF_OSDS: [Watched; 2] = [Watched::Deployments, Watched::Pods];

/// Numbers of changes that were known at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(Vec<u64>);

/// Number of changes of each group of objects.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    counts: [AtomicU64; Group::ALL.len()],
    /// Whether each change from now on is counted, for each watch.
    are_watched: [AtomicBool; Watched::ALL.len()],
    any: Notify,
    /// OSDs of which a Deployment or a pod changed since these were last taken; `None` if a change may be
    /// missing.
    osds: Mutex<Option<BTreeSet<OsdId>>>,
    /// Version of the ledger after the last change that a watch reported; `None` if another one may have
    /// been missed since.
    ledger: Mutex<Option<String>>,
}

impl Changes {
    /// Returns the present mark of these groups; `None` if one of them is not watched, so that a change may
    /// be missed.
    ///
    /// An object that is read after the mark was taken has not changed while the mark stays, as far as is
    /// known.
    pub(crate) fn mark(&self, groups: &[Group]) -> Option<Mark> {
        let of = |group: &Group| {
            self.is_watched(group.watched()).then(|| self.count(*group).load(Ordering::Acquire))
        };
        groups.iter().map(of).collect::<Option<_>>().map(Mark)
    }

    /// Notes that an object changed.
    pub(crate) fn note(&self, group: Group) {
        self.note_version(group, None);
    }

    /// Notes that an object changed, and its version since then, which matters only for the ledger.
    pub(super) fn note_version(&self, group: Group, version: Option<&str>) {
        if group == Group::Ledger {
            // The version is set before the change is counted: who sees the number sees no older version.
            *self.ledger.lock().unwrap_or_else(PoisonError::into_inner) = version.map(str::to_owned);
        }
        self.count(group).fetch_add(1, Ordering::AcqRel);
        self.any.notify_one();
    }

    /// Returns whether the last known change of the ledger led to this version.
    ///
    /// The watch also reports the changes of this run. Nothing is known to have changed after such a one.
    pub(crate) fn last_led_to(&self, version: &str) -> bool {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.as_deref() == Some(version)
    }

    /// Notes that a Deployment or a pod of an OSD changed; of no OSD that is known if it has no valid label.
    pub(crate) fn note_osd(&self, osd: Option<OsdId>) {
        let mut osds = self.osds.lock().unwrap_or_else(PoisonError::into_inner);
        match (osd, osds.as_mut()) {
            (Some(osd), Some(known)) => drop(known.insert(osd)),
            (Some(_) | None, _) => *osds = None,
        }
    }

    /// Returns the OSDs of which a Deployment or a pod changed since the last call; `None` if a change may be
    /// missing.
    pub(crate) fn take_osds(&self) -> Option<BTreeSet<OsdId>> {
        let mut osds = self.osds.lock().unwrap_or_else(PoisonError::into_inner);
        let now = OF_OSDS.iter().all(|kind| self.is_watched(*kind)).then(BTreeSet::new);
        std::mem::replace(&mut *osds, now.clone()).filter(|_| now.is_some())
    }

    /// Returns when a change is noted, or at once if one was noted since the last call.
    pub(crate) async fn next(&self) {
        self.any.notified().await;
    }

    /// Notes that changes are counted from now on; earlier ones may have been missed.
    pub(super) fn begin(&self, kind: Watched) {
        Group::ALL.into_iter().filter(|group| group.watched() == kind).for_each(|group| self.note(group));
        self.miss_osds(kind);
        self.set_watched(kind, true);
    }

    /// Notes that changes may be missed from now on.
    pub(super) fn end(&self, kind: Watched) {
        self.set_watched(kind, false);
        self.miss_osds(kind);
    }

    fn miss_osds(&self, kind: Watched) {
        if OF_OSDS.contains(&kind) {
            self.note_osd(None);
        }
    }

    #[expect(clippy::indexing_slicing, reason = "the array has an element for each variant")]
    fn count(&self, group: Group) -> &AtomicU64 {
        &self.counts[group as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "the array has an element for each variant")]
    fn is_watched(&self, kind: Watched) -> bool {
        self.are_watched[kind as usize].load(Ordering::Acquire)
    }

    #[expect(clippy::indexing_slicing, reason = "the array has an element for each variant")]
    fn set_watched(&self, kind: Watched, is_watched: bool) {
        self.are_watched[kind as usize].store(is_watched, Ordering::Release);
    }
}

/// Value that was read last, and the changes that were known before it was read.
#[derive(Debug)]
pub(crate) struct Last<T>(Option<(Mark, T)>);

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Clone> Last<T> {
    /// Returns the value, whatever may have changed since it was read.
    pub(crate) fn value(&self) -> Option<&T> {
        self.0.as_ref().map(|(_, value)| value)
    }

    /// Keeps a value as if it had been read after this mark.
    pub(crate) fn keep(&mut self, mark: Option<Mark>, value: T) {
        self.0 = mark.map(|mark| (mark, value));
    }

    /// Notes that the value is the present one although changes were counted up to this mark.
    pub(crate) fn renew(&mut self, mark: Option<&Mark>) {
        if let (Some((kept, _)), Some(mark)) = (&mut self.0, mark) {
            kept.clone_from(mark);
        }
    }

    /// Drops the value, and returns whether there was one.
    pub(crate) fn forget(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Returns the value, which is read only if something may have changed since it was read last.
    ///
    /// `now`: the mark before the call.
    pub(crate) async fn get<E>(
        &mut self,
        now: Option<Mark>,
        read: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if let (Some(now), Some((then, value))) = (&now, &self.0)
            && now == then
        {
            return Ok(value.clone());
        }
        self.0 = None;
        let value = read.await?;
        self.keep(now, value.clone());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &[Group] = &[Group::OsdPods, Group::OtherMaps];

    fn watched() -> Changes {
        let changes = Changes::default();
        for kind in Watched::ALL {
            changes.begin(kind);
        }
        changes
    }

    /// Reads a number, which counts the reads.
    async fn read(last: &mut Last<u32>, changes: &Changes, count: &mut u32) -> Result<u32, u32> {
        let read = async {
            *count += 1;
            Ok(*count)
        };
        last.get(changes.mark(GROUPS), read).await
    }

    #[tokio::test]
    async fn value_is_read_again_only_after_a_change() {
        let (changes, mut last, mut count) = (watched(), Last::default(), 0);
        assert_eq!(read(&mut last, &changes, &mut count).await, Ok(1));
        assert_eq!(read(&mut last, &changes, &mut count).await, Ok(1));
        for other in [Group::Jobs, Group::AgentPods, Group::Ledger] {
            changes.note(other);
            assert_eq!(read(&mut last, &changes, &mut count).await, Ok(1), "{other:?} is not among them");
        }
        for group in GROUPS {
            let before = count;
            changes.note(*group);
            assert_eq!(read(&mut last, &changes, &mut count).await, Ok(before + 1));
        }
    }

    #[tokio::test]
    async fn value_is_read_each_time_while_a_watch_is_missing() {
        let (changes, mut last, mut count) = (watched(), Last::default(), 0);
        assert_eq!(read(&mut last, &changes, &mut count).await, Ok(1));
        changes.end(Watched::Maps);
        assert_eq!(read(&mut last, &changes, &mut count).await, Ok(2));
        assert_eq!(read(&mut last, &changes, &mut count).await, Ok(3));
        // Changes while there was no watch are not known.
        changes.begin(Watched::Maps);
        assert_eq!(read(&mut last, &changes, &mut count).await, Ok(4));
        assert_eq!(read(&mut last, &changes, &mut count).await, Ok(4));
    }

    #[test]
    fn changed_osds_are_taken_once() {
        let changes = watched();
        assert_eq!(changes.take_osds(), None, "earlier changes are not known");
        assert_eq!(changes.take_osds(), Some(BTreeSet::new()));
        changes.note_osd(Some(OsdId(3)));
        changes.note_osd(Some(OsdId(1)));
        assert_eq!(changes.take_osds(), Some([OsdId(1), OsdId(3)].into()));
        assert_eq!(changes.take_osds(), Some(BTreeSet::new()));
    }

    #[test]
    fn changed_osds_are_unknown_after_a_gap_in_a_watch() {
        let changes = watched();
        changes.take_osds();
        changes.end(Watched::Jobs);
        assert_eq!(changes.take_osds(), Some(BTreeSet::new()), "no object of an OSD");
        for kind in OF_OSDS {
            changes.note_osd(Some(OsdId(1)));
            changes.end(kind);
            assert_eq!(changes.take_osds(), None);
            assert_eq!(changes.take_osds(), None, "still not watched");
            changes.begin(kind);
            changes.note_osd(Some(OsdId(1)));
            assert_eq!(changes.take_osds(), None);
            assert_eq!(changes.take_osds(), Some(BTreeSet::new()));
        }
        changes.note_osd(None);
        changes.note_osd(Some(OsdId(1)));
        assert_eq!(changes.take_osds(), None, "a change of an OSD that is not known");
    }

    #[tokio::test]
    async fn change_during_the_read_makes_the_next_look_read_again() {
        let (changes, mut last, mut count) = (watched(), Last::default(), 0);
        let late = async {
            changes.note(Group::OsdPods);
            Ok::<u32, u32>(7)
        };
        assert_eq!(last.get(changes.mark(GROUPS), late).await, Ok(7));
        assert_eq!(read(&mut last, &changes, &mut count).await, Ok(1));
    }

    #[tokio::test]
    async fn value_that_could_not_be_read_is_not_kept() {
        let (changes, mut last) = (watched(), Last::<u32>::default());
        let fails = async { Err::<u32, &str>("denied") };
        assert_eq!(last.get(changes.mark(GROUPS), fails).await, Err("denied"));
        let reads = async { Ok::<u32, &str>(2) };
        assert_eq!(last.get(changes.mark(GROUPS), reads).await, Ok(2));
    }
}
