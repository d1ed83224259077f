//! `ceph osd set` and `osd unset` of `noscrub` and `nodeep-scrub`.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::session::Ceph;
use crate::domain::scrub::ScrubFlags;

fn commands(flags: ScrubFlags, is_set: bool) -> impl Iterator<Item = Command> {
    let name = if is_set { "osd set" } else { "osd unset" };
    flags.names().map(move |flag| Command::mon(name).with("key", flag))
}

impl Ceph {
    /// Sets the flags of the whole cluster, or unsets them, with one command for each.
    ///
    /// A flag that is as wanted already is no error.
    pub async fn set_scrub_flags(&self, flags: ScrubFlags, is_set: bool) -> Result<(), CephError> {
        for command in commands(flags, is_set) {
            self.act(None, command).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrub_flags_are_set_and_unset_one_by_one() {
        let sent = |flags, is_set| -> Vec<String> {
            let commands = commands(flags, is_set);
            commands
                .inspect(|command| assert!(crate::ceph::caps::tests::allow(command), "{command:?}"))
                .map(|command| command.to_c_string().into_string().unwrap())
                .collect()
        };
        assert_eq!(
            sent(ScrubFlags::BOTH, true),
            [
                r#"{"format":"json","key":"noscrub","prefix":"osd set"}"#,
                r#"{"format":"json","key":"nodeep-scrub","prefix":"osd set"}"#
            ]
        );
        let deep = ScrubFlags { noscrub: false, nodeep_scrub: true };
        assert_eq!(sent(deep, false), [r#"{"format":"json","key":"nodeep-scrub","prefix":"osd unset"}"#]);
        assert!(sent(ScrubFlags::default(), true).is_empty());
    }

    #[test]
    fn scrub_flags_are_the_only_flags_that_may_be_set() {
        for flag in ["pause", "noout", "noin", "norecover", "noup", "noscrub|noout"] {
            for name in ["osd set", "osd unset"] {
                let command = Command::mon(name).with("key", flag);
                assert!(!crate::ceph::caps::tests::allow(&command), "{command:?}");
            }
        }
    }
}
