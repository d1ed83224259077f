//! List of the Deployments and pods of all OSDs, which a run keeps while watches report what changes
//! (`docs/development/adr/0053-list-of-what-changed.md`).

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::{Ambiguity, Daemon, Kube};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::osd::OsdId;
use crate::domain::shared::Shared;

/// Longest time for which the list is kept: a change that no watch reports is seen late by so much.
///
/// A list of 10,000 OSDs takes 15 s, a fortieth of that time.
const LONGEST: TimeDelta = TimeDelta::minutes(10);

/// Deployments and pods of all OSDs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listed {
    daemons: Shared<BTreeMap<OsdId, Daemon>>,
    /// OSDs of which something is ambiguous.
    ambiguous: BTreeSet<OsdId>,
    /// Time at which all of them were listed.
    at: DateTime<Utc>,
}

impl Listed {
    /// Keeps the OSDs of an observation that has listed all of them at that time.
    ///
    /// Returns none if something is ambiguous, and it is not known of which OSDs: nothing says when that has
    /// ended.
    pub fn of(kube: &Kube, at: DateTime<Utc>) -> Option<Self> {
        let ambiguous = kube.ambiguities.iter().flat_map(|one| &one.osds).copied().collect();
        let are_known = kube.ambiguities.iter().all(|one| !one.osds.is_empty());
        are_known.then(|| Self { daemons: kube.daemons.clone(), ambiguous, at })
    }

    /// Returns whether the list may still be used; not if the clock was set back.
    pub fn is_young(&self, now: DateTime<Utc>) -> bool {
        passes(Guard::ListExpires, (TimeDelta::zero()..LONGEST).contains(&(now - self.at)))
    }

    /// Returns the time at which all of them were listed.
    pub const fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Returns the OSDs that are read each time beside those that a watch reports.
    pub fn read_each_time(&self, in_progress: &BTreeSet<OsdId>) -> BTreeSet<OsdId> {
        if is_out(Guard::InProgressIsRead) { BTreeSet::new() } else { in_progress | &self.ambiguous }
    }

    /// Returns an observation of some OSDs with the others of this list, and the list with what is new.
    ///
    /// `read`: OSDs that the observation has, or that have no Deployment. One of them and one of the list may
    /// name the same PVC.
    pub fn complete(self, kube: Kube, read: &BTreeSet<OsdId>) -> (Kube, Option<Self>) {
        let mut kube = kube.with_others((self.daemons, Vec::new()), read);
        for shared in on_one_pvc(&kube.daemons) {
            if !kube.ambiguities.contains(&shared) {
                kube.ambiguities.push(shared);
            }
        }
        let listed = Self::of(&kube, self.at);
        (kube, listed)
    }
}

/// Returns an ambiguity for each PVC that the Deployments of two OSDs name.
///
/// One device would be under two ids.
pub fn on_one_pvc(daemons: &BTreeMap<OsdId, Daemon>) -> Vec<Ambiguity> {
    let mut user: BTreeMap<&str, OsdId> = BTreeMap::new();
    let mut found = Vec::new();
    for (osd, on) in daemons.iter().filter_map(|(osd, daemon)| Some((*osd, daemon.on_pvcs.as_ref()?))) {
        for pvc in on.names() {
            if let Some(other) = user.insert(pvc, osd).filter(|other| *other != osd) {
                found.push(Ambiguity::of([other, osd], format!("{other} and {osd} have one PVC: {pvc}")));
            }
        }
    }
    found
}
