//! `ceph config set` and `config rm` of the options about recovery, for all OSDs.

use crate::ceph::command::Command;
use crate::ceph::config_dump;
use crate::ceph::error::CephError;
use crate::ceph::session::Ceph;
use crate::domain::expect;
use crate::domain::recovery::{RecoveryConfig, RecoveryOption, RecoveryOptions};

/// Section of all OSDs.
const OSDS: &str = "osd";

fn set(option: RecoveryOption, value: &str) -> Command {
    Command::mon("config set").with("who", OSDS).with("name", option.name()).with("value", value)
}

fn remove(option: RecoveryOption) -> Command {
    Command::mon("config rm").with("who", OSDS).with("name", option.name())
}

/// Returns the commands for those options that are as expected.
fn commands(options: &RecoveryOptions, is_set: bool, config: &RecoveryConfig) -> Vec<Command> {
    let to_set = options.that(|option, _| is_set && expect::to_set_option(config, option));
    let to_remove = options.that(|option, value| !is_set && expect::to_remove_option(config, option, value));
    let sets = to_set.0.iter().map(|(option, value)| set(*option, value));
    sets.chain(to_remove.0.keys().copied().map(remove)).collect()
}

impl Ceph {
    /// Returns what the config database has of the options about recovery.
    pub async fn recovery_config(&self) -> Result<RecoveryConfig, CephError> {
        self.read(config_dump::command(), config_dump::parse).await
    }

    /// Sets the options that have no value, or removes those that still have theirs, with one command for
    /// each.
    ///
    /// The config database is read again before. Options that are not as expected are left.
    pub async fn set_recovery(&self, options: &RecoveryOptions, is_set: bool) -> Result<(), CephError> {
        let config = self.recovery_config().await?;
        for command in commands(options, is_set, &config) {
            self.act(None, command).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::caps::tests::allow;
    use crate::domain::recovery::OpQueue;

    fn sent(options: &RecoveryOptions, is_set: bool, config: &RecoveryConfig) -> Vec<String> {
        let commands = commands(options, is_set, config).into_iter();
        commands
            .inspect(|command| assert!(allow(command), "{command:?}"))
            .map(|command| command.to_c_string().into_string().unwrap())
            .collect()
    }

    fn values(pairs: &[(RecoveryOption, &str)]) -> RecoveryOptions {
        RecoveryOptions(pairs.iter().map(|(option, value)| (*option, (*value).to_owned())).collect())
    }

    #[test]
    fn recovery_options_without_a_value_are_set_one_by_one() {
        let (wpq, mclock) = (RecoveryOptions::fast(OpQueue::Wpq), RecoveryOptions::fast(OpQueue::Mclock));
        let nothing = RecoveryConfig::default();
        assert_eq!(
            sent(&mclock, true, &nothing),
            [
                r#"{"format":"json","name":"osd_mclock_profile","prefix":"config set","value":"high_recovery_ops","who":"osd"}"#
            ]
        );
        assert_eq!(sent(&wpq, true, &nothing).len(), 3);
        let elsewhere = [RecoveryOption::OsdMaxBackfills].into();
        let owners = values(&[(RecoveryOption::OsdRecoverySleepHdd, "0.500000")]);
        let config = RecoveryConfig { queue: None, values: owners, elsewhere };
        assert_eq!(
            sent(&wpq, true, &config),
            [
                r#"{"format":"json","name":"osd_recovery_sleep_hybrid","prefix":"config set","value":"0","who":"osd"}"#
            ]
        );
    }

    #[test]
    fn recovery_options_are_removed_only_with_the_value_that_was_set() {
        use RecoveryOption::{OsdMaxBackfills, OsdRecoverySleepHdd};
        let found = values(&[(OsdMaxBackfills, "5"), (OsdRecoverySleepHdd, "0.000000")]);
        let config = RecoveryConfig { values: found, ..RecoveryConfig::default() };
        assert_eq!(
            sent(&RecoveryOptions::fast(OpQueue::Wpq), false, &config),
            [r#"{"format":"json","name":"osd_recovery_sleep_hdd","prefix":"config rm","who":"osd"}"#]
        );
    }

    #[test]
    fn recovery_options_are_the_only_options_that_may_be_set() {
        let command =
            |name, option: &str, who: &str| Command::mon(name).with("name", option).with("who", who);
        for name in ["config set", "config rm"] {
            let with_value = |option, who, value: &str| command(name, option, who).with("value", value);
            assert!(allow(&with_value("osd_max_backfills", "osd", "3")));
            for (option, who) in [
                ("debug_ms", "osd"),
                ("osd_op_queue", "osd"),
                ("osd_recovery_sleep", "osd"),
                ("osd_max_backfills|debug_ms", "osd"),
                ("osd_max_backfills", "osd.4"),
                ("osd_max_backfills", "global"),
                ("osd_max_backfills", "osd/class:hdd"),
            ] {
                assert!(!allow(&with_value(option, who, "3")), "{name} {who} {option}");
            }
        }
        let to_set = |value: &str| command("config set", "osd_max_backfills", "osd").with("value", value);
        assert!(!allow(&to_set("100")) && !allow(&command("config set", "osd_max_backfills", "osd")));
    }
}
