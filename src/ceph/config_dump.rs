//! `ceph config dump`: what the config database of the mons has of the options about recovery.

use std::borrow::Cow;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::ceph::command::Command;
use crate::domain::recovery::{OpQueue, RecoveryConfig, RecoveryOption};

/// Option that names the queue of an OSD. An OSD reads it at its start.
const OP_QUEUE: &str = "osd_op_queue";

/// Sections of all OSDs: that of all daemons, and that of OSDs, which wins. `osd.4` is the section of one.
const GLOBAL: &str = "global";
const OSD: &str = "osd";
const ONE_OSD: &str = "osd.";

/// Entries, read one by one and not kept: a large cluster has one of `osd_mclock_max_capacity_iops_hdd` for
/// each OSD.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of options")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        let mut found = Found::default();
        while let Some(entry) = list.next_element::<Entry<'de>>()? {
            found.add(&entry);
        }
        Ok(found)
    }
}

/// Value of an option in a section (`MaskedOption::dump`).
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    section: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
    /// `class:hdd`, `host:h1`; empty if there is none.
    #[serde(borrow, default)]
    mask: Cow<'a, str>,
}

#[derive(Default)]
struct Found {
    config: RecoveryConfig,
    queue_of_all: Option<OpQueue>,
    queue_of_osds: Option<OpQueue>,
    queue_of_some: Option<OpQueue>,
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Entries)
    }
}

impl Found {
    fn add(&mut self, entry: &Entry<'_>) {
        let is_of_osds = [GLOBAL, OSD].contains(&&*entry.section) || entry.section.starts_with(ONE_OSD);
        if !is_of_osds {
            return;
        }
        let section = if entry.mask.is_empty() { &*entry.section } else { ONE_OSD };
        if entry.name == OP_QUEUE {
            match section {
                GLOBAL => self.queue_of_all = Some(OpQueue::named(&entry.value)),
                OSD => self.queue_of_osds = Some(OpQueue::named(&entry.value)),
                _ => self.queue_of_some = Some(OpQueue::Other),
            }
        }
        let Some(option) = RecoveryOption::ALL.into_iter().find(|option| option.name() == entry.name) else {
            return;
        };
        if section == OSD {
            self.config.values.0.insert(option, entry.value.clone().into_owned());
        } else {
            self.config.elsewhere.insert(option);
        }
    }
}

pub(super) fn command() -> Command {
    Command::mon("config dump")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<RecoveryConfig> {
    let Found { config, queue_of_all, queue_of_osds, queue_of_some } = serde_json::from_slice(answer)?;
    Ok(RecoveryConfig { queue: queue_of_some.or(queue_of_osds).or(queue_of_all), ..config })
}

#[cfg(test)]
mod tests {
    use super::*;
    use RecoveryOption::{OsdMaxBackfills, OsdMclockProfile, OsdRecoverySleepHdd};

    /// Returns the entry of an option as `MaskedOption::dump` prints it (16.2.15).
    fn entry(section: &str, name: &str, value: &str, mask: &str) -> String {
        let of_mask = match mask.split_once(':') {
            Some(("class", class)) => format!(r#","device_class":"{class}""#),
            Some((kind, bucket)) => format!(r#","location_type":"{kind}","location_value":"{bucket}""#),
            None => String::new(),
        };
        format!(
            r#"{{"section":"{section}","name":"{name}","value":"{value}","level":"advanced","can_update_at_runtime":true,"mask":"{mask}"{of_mask}}}"#
        )
    }

    fn parsed(entries: &[String]) -> RecoveryConfig {
        parse(format!("[{}]", entries.join(",")).as_bytes()).unwrap()
    }

    #[test]
    fn config_dump_without_these_options_is_empty() {
        let others =
            [entry("mon", "osd_max_backfills", "2", ""), entry("client.x", "osd_op_queue", "wpq", "")];
        assert_eq!(parsed(&[]), RecoveryConfig::default());
        assert_eq!(parsed(&others), RecoveryConfig::default());
        assert!(parse(br#"{"a":1}"#).is_err());
    }

    #[test]
    fn config_dump_values_are_for_all_osds_or_elsewhere() {
        let seen = parsed(&[
            entry("global", "osd_max_backfills", "2", ""),
            entry("osd", "osd_recovery_sleep_hdd", "0.000000", ""),
            entry("osd", "osd_mclock_profile", "balanced", "class:hdd"),
            entry("osd.4", "osd_recovery_sleep_hdd", "0.100000", ""),
        ]);
        assert_eq!(seen.elsewhere, [OsdMaxBackfills, OsdMclockProfile, OsdRecoverySleepHdd].into());
        assert_eq!(seen.values.0, [(OsdRecoverySleepHdd, "0.000000".to_owned())].into());
        assert!(seen.has_value(OsdRecoverySleepHdd, "0") && seen.has(OsdMclockProfile));
        let masked = parsed(&[entry("global", "osd_max_backfills", "2", "host:h1")]);
        assert!(masked.has(OsdMaxBackfills) && masked.values.is_empty());
    }

    #[test]
    fn config_dump_queue_is_known_only_if_it_is_that_of_all_osds() {
        let queue = |section: &str, value: &str, mask: &str| entry(section, "osd_op_queue", value, mask);
        let read = |entries: &[String]| parsed(entries).queue;
        assert_eq!(read(&[queue("global", "wpq", "")]), Some(OpQueue::Wpq));
        let both = [queue("global", "wpq", ""), queue("osd", "mclock_scheduler", "")];
        assert_eq!(read(&both), Some(OpQueue::Mclock), "the section of OSDs wins");
        assert_eq!(read(&[queue("osd", "debug_random", "")]), Some(OpQueue::Other));
        for some in [queue("osd.3", "wpq", ""), queue("osd", "wpq", "class:ssd")] {
            assert_eq!(read(&[queue("osd", "wpq", ""), some]), Some(OpQueue::Other));
        }
    }

    #[test]
    fn config_dump_of_ten_thousand_osds_leaves_nothing_behind() {
        let one =
            |osd: u32| entry(&format!("osd.{osd}"), "osd_mclock_max_capacity_iops_hdd", "315.000000", "");
        let mut entries: Vec<String> = (0..10_000).map(one).collect();
        entries.push(entry("osd", "osd_max_backfills", "3", ""));
        let seen = parsed(&entries);
        assert_eq!(seen.values.to_string(), "osd_max_backfills=3");
        assert!(seen.elsewhere.is_empty());
    }
}
