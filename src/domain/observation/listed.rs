//! List of the Deployments and pods of all OSDs, which a run keeps while watches report what changes
//! (`docs/development/adr/0053-list-of-what-changed.md`).

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::{Daemon, Kube};
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
    /// Time at which all of them were listed.
    at: DateTime<Utc>,
}

impl Listed {
    /// Keeps the OSDs of an observation that has listed all of them at that time.
    ///
    /// Returns none if some are ambiguous: nothing says when an ambiguity of other OSDs has ended.
    pub fn of(kube: &Kube, at: DateTime<Utc>) -> Option<Self> {
        kube.ambiguities.is_empty().then(|| Self { daemons: kube.daemons.clone(), at })
    }

    /// Returns whether the list may still be used; not if the clock was set back.
    pub fn is_young(&self, now: DateTime<Utc>) -> bool {
        passes(Guard::ListExpires, (TimeDelta::zero()..LONGEST).contains(&(now - self.at)))
    }

    /// Returns the time at which all of them were listed.
    pub const fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Returns an observation of some OSDs with the others of this list.
    ///
    /// `read`: OSDs that the observation has, or that have no Deployment.
    #[must_use]
    pub fn complete(self, kube: Kube, read: &BTreeSet<OsdId>) -> Kube {
        kube.with_others((self.daemons, Vec::new()), read)
    }
}

/// Returns the OSDs whose Deployments and pods are read in each observation that a run may act on.
///
/// `changed`: OSDs of which a watch reported a change since they were read.
pub fn read_each_time(in_progress: &BTreeSet<OsdId>, changed: &BTreeSet<OsdId>) -> BTreeSet<OsdId> {
    if is_out(Guard::InProgressIsRead) { changed.clone() } else { in_progress | changed }
}
