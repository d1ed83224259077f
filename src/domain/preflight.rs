//! Check before an upgrade of Rook or Ceph: OSDs that newer releases do not start.

use super::classify::{self, Refusal};
use super::ledger::Ledger;
use super::observation::Observation;
use super::osd::{Kind, OsdId};

/// Result of the check before an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preflight {
    /// OSDs in a format that is no longer supported, with their host in CRUSH.
    pub legacy: Vec<(OsdId, String, Kind)>,
    /// OSDs of unknown format, with the reason.
    pub unknown: Vec<(OsdId, Refusal)>,
    /// OSDs that are being migrated.
    pub in_flight: Vec<OsdId>,
    /// OSDs that were quarantined in the middle of a migration.
    pub quarantined: Vec<OsdId>,
}

impl Preflight {
    /// Returns whether the upgrade may continue.
    ///
    /// OSDs of unknown format do not block it: the upgrade's own checks see that such an OSD is down.
    pub fn passes(&self) -> bool {
        self.legacy.is_empty() && self.in_flight.is_empty() && self.quarantined.is_empty()
    }
}

/// Checks every OSD, including those that this version does not migrate.
pub fn preflight(ledger: &Ledger, seen: &Observation) -> Preflight {
    let mut found = Preflight {
        in_flight: ledger.in_flight().map(|record| record.osd).collect(),
        quarantined: ledger.quarantined().map(|record| record.osd).collect(),
        ..Preflight::default()
    };
    for (osd, slot) in seen.ceph.slots.iter().filter(|(osd, _)| !ledger.records.contains_key(osd)) {
        match classify::kind_of(*osd, slot, seen) {
            Ok(Some(kind)) if kind.is_legacy() => {
                let host = super::plan::host_of(*osd, seen).unwrap_or_else(|| "-".to_owned());
                found.legacy.push((*osd, host, kind));
            }
            Ok(Some(_) | None) => {}
            Err(why) => found.unknown.push((*osd, why)),
        }
    }
    found
}
