//! Options of Ceph with which recovery is faster, and what the config database has of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// First release whose OSDs use mClock by default: Quincy (release notes of 17.2.0, RADOS). Up to 16 it is
/// `wpq`. A Filestore OSD always uses `wpq`.
const FIRST_WITH_MCLOCK: u32 = 17;

/// Options under `mclock_scheduler`: the profile that Ceph has for this. An OSD reserves 70 % of its
/// operations for recovery (`balanced`: 50 %), and does not limit backfills (90 %). The options of `WPQ` must
/// not be set there: OSDs of newer releases remove `osd_max_backfills` from the config database
/// (`OSD::maybe_override_options_for_qos`), and the pauses are off (`mclock-config-ref`).
const MCLOCK: [(RecoveryOption, &str); 1] = [(RecoveryOption::OsdMclockProfile, "high_recovery_ops")];

/// Options under `wpq`.
///
/// Three backfills of an OSD in each direction instead of one: as many as the recovery operations that a
/// disk does at a time (`osd_recovery_max_active_hdd` is 3). Without the pause of 0.1 s after each operation
/// on a disk, and of 0.025 s on a disk whose database is on an SSD: with them, an OSD recovers at most 10, or
/// 40, objects in a second. An SSD has no pause.
const WPQ: [(RecoveryOption, &str); 3] = [
    (RecoveryOption::OsdMaxBackfills, "3"),
    (RecoveryOption::OsdRecoverySleepHdd, "0"),
    (RecoveryOption::OsdRecoverySleepHybrid, "0"),
];

/// Option of Ceph about the speed of recovery.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RecoveryOption {
    /// `osd_mclock_profile`
    OsdMclockProfile,
    /// `osd_max_backfills`
    OsdMaxBackfills,
    /// `osd_recovery_sleep_hdd`
    OsdRecoverySleepHdd,
    /// `osd_recovery_sleep_hybrid`
    OsdRecoverySleepHybrid,
}

impl RecoveryOption {
    /// All options.
    pub const ALL: [Self; 4] = [
        Self::OsdMclockProfile,
        Self::OsdMaxBackfills,
        Self::OsdRecoverySleepHdd,
        Self::OsdRecoverySleepHybrid,
    ];

    /// Returns the option's name in Ceph.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Options with their values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecoveryOptions(pub BTreeMap<RecoveryOption, String>);

impl RecoveryOptions {
    /// Returns the options with which recovery is faster in a queue.
    pub fn fast(queue: OpQueue) -> Self {
        let options: &[_] = match queue {
            OpQueue::Wpq => &WPQ,
            OpQueue::Mclock => &MCLOCK,
            OpQueue::Other => &[],
        };
        Self(options.iter().map(|(option, value)| (*option, (*value).to_owned())).collect())
    }

    /// Returns the options that fulfil a condition.
    #[must_use]
    pub fn that(&self, fits: impl Fn(RecoveryOption, &str) -> bool) -> Self {
        let fitting = self.0.iter().filter(|(option, value)| fits(**option, value));
        Self(fitting.map(|(option, value)| (*option, value.clone())).collect())
    }

    /// Returns whether all options fulfil a condition.
    pub fn all(&self, fits: impl Fn(RecoveryOption, &str) -> bool) -> bool {
        self.0.iter().all(|(option, value)| fits(*option, value))
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the options.
    pub fn names(&self) -> String {
        self.0.keys().map(|option| option.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for RecoveryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.0.iter().map(|(option, value)| format!("{}={value}", option.name()));
        f.write_str(&pairs.collect::<Vec<_>>().join(", "))
    }
}

/// Queue in which OSDs schedule their operations (`osd_op_queue`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpQueue {
    /// `wpq`
    Wpq,
    /// `mclock_scheduler`
    Mclock,
    /// Another queue, or not one queue for all OSDs.
    Other,
}

impl OpQueue {
    /// Returns the queue of a value of `osd_op_queue`.
    pub fn named(value: &str) -> Self {
        match value {
            "wpq" => Self::Wpq,
            "mclock_scheduler" => Self::Mclock,
            _ => Self::Other,
        }
    }

    /// Returns the default of a release.
    pub fn of_release(major: u32) -> Self {
        if major < FIRST_WITH_MCLOCK { Self::Wpq } else { Self::Mclock }
    }
}

/// Values of these options in the config database, as far as they concern OSDs (`ceph config dump`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RecoveryConfig {
    /// The queue of the OSDs; none if it is that of their release.
    pub queue: Option<OpQueue>,
    /// Values for all OSDs: in the section `osd`, without a mask.
    pub values: RecoveryOptions,
    /// Options with a value in another section, or with a mask.
    pub elsewhere: BTreeSet<RecoveryOption>,
}

impl RecoveryConfig {
    /// Returns whether an option has any value.
    pub fn has(&self, option: RecoveryOption) -> bool {
        self.values.0.contains_key(&option) || self.elsewhere.contains(&option)
    }

    /// Returns whether an option has this value for all OSDs.
    ///
    /// The mons print a float in another way than it was typed: `0.000000` for `0`.
    pub fn has_value(&self, option: RecoveryOption, value: &str) -> bool {
        let number = |text: &str| text.parse::<f64>().ok();
        self.values.0.get(&option).is_some_and(|found| {
            let is_equal = |(found, value): (f64, f64)| found.total_cmp(&value).is_eq();
            found == value || number(found).zip(number(value)).is_some_and(is_equal)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_options_have_their_names_in_ceph() {
        let names = RecoveryOption::ALL.map(RecoveryOption::name);
        let expected = [
            "osd_mclock_profile",
            "osd_max_backfills",
            "osd_recovery_sleep_hdd",
            "osd_recovery_sleep_hybrid",
        ];
        assert_eq!(names, expected);
        for option in RecoveryOption::ALL {
            assert_eq!(serde_json::to_value(option).unwrap(), option.name());
        }
    }

    #[test]
    fn recovery_options_of_one_queue_are_never_those_of_the_other() {
        let (wpq, mclock) = (RecoveryOptions::fast(OpQueue::Wpq), RecoveryOptions::fast(OpQueue::Mclock));
        let text = "osd_max_backfills=3, osd_recovery_sleep_hdd=0, osd_recovery_sleep_hybrid=0";
        assert_eq!(wpq.to_string(), text);
        assert_eq!(mclock.to_string(), "osd_mclock_profile=high_recovery_ops");
        assert!(RecoveryOptions::fast(OpQueue::Other).is_empty());
        let queues = [14, 16, 17, 20].map(OpQueue::of_release);
        assert_eq!(queues, [OpQueue::Wpq, OpQueue::Wpq, OpQueue::Mclock, OpQueue::Mclock]);
        assert_eq!(OpQueue::named("debug_random"), OpQueue::Other);
    }

    #[test]
    fn recovery_value_is_the_same_however_the_mons_print_it() {
        let option = RecoveryOption::OsdRecoverySleepHdd;
        let has = |found: &str, value: &str| {
            let values = RecoveryOptions([(option, found.to_owned())].into());
            RecoveryConfig { values, ..RecoveryConfig::default() }.has_value(option, value)
        };
        assert!(has("0", "0") && has("0.000000", "0") && has("0.0", "0") && has("balanced", "balanced"));
        assert!(!has("0.1", "0") && !has("", "0") && !has("balanced", "high_recovery_ops"));
        assert!(!RecoveryConfig::default().has_value(option, "0"));
    }
}
