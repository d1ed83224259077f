//! Capabilities of `client.osd-migrate`. This is the one place that names them.
//!
//! The capabilities follow from the commands that this folder sends. The test of this module fails if a
//! command has no capability, or a capability no command. The reasons are in ADR 0019.
//!
//! How mons and mgr read them (`MonCap.cc`, `MgrCap.cc`; same from 16 to 20): a command is allowed by name,
//! and its arguments by `with`. A missing argument does not fulfil a `with`. `allow r` permits neither `auth`
//! (needs `x`) nor `config-key` (only `allow *`, a profile or a capability by name permits it).

use std::fmt;

use crate::ceph::librados::Daemon;

/// User of the runner.
pub const USER: &str = "client.osd-migrate";

/// Constraint on an argument of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    /// Exactly this value.
    Be(&'static str),
    /// Value that begins with this text.
    BeginWith(&'static str),
    /// One of these values, matched completely: `a|b`.
    BeOneOf(&'static str),
}

/// Command that is allowed by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grant {
    /// Daemon that answers it.
    pub(super) daemon: Daemon,
    /// Name of the command.
    pub(super) command: &'static str,
    /// Constraints on its arguments; other arguments may have any value.
    pub(super) with: &'static [(&'static str, Must)],
}

const fn mon(command: &'static str, with: &'static [(&'static str, Must)]) -> Grant {
    Grant { daemon: Daemon::Mon, command, with }
}

const fn mgr(command: &'static str) -> Grant {
    Grant { daemon: Daemon::Mgr, command, with: &[] }
}

/// Queries to the mons that `allow r` permits (`MonCommands.h`: permission `r`, module not `auth`, not
/// `config-key`).
///
/// Every client needs `allow r` for the maps anyhow.
#[cfg(test)]
pub(super) const READABLE: [&str; 10] = [
    "fsid",
    "health",
    "versions",
    "config dump",
    "config get",
    "osd crush dump",
    "osd dump",
    "osd getmap",
    "osd metadata",
    "osd stat",
];

const FLAGS: &[(&str, Must)] = &[("flags", Must::BeOneOf("noout|noin|noout,noin"))];
const SCRUB_FLAGS: &[(&str, Must)] = &[("key", Must::BeOneOf("noscrub|nodeep-scrub"))];
const FOR_OSDS: (&str, Must) = ("who", Must::Be("osd"));
const RECOVERY_OPTIONS: (&str, Must) = (
    "name",
    Must::BeOneOf("osd_mclock_profile|osd_max_backfills|osd_recovery_sleep_hdd|osd_recovery_sleep_hybrid"),
);
const RECOVERY_VALUES: (&str, Must) = ("value", Must::BeOneOf("high_recovery_ops|3|0"));
const BOOTSTRAP: (&str, Must) = ("entity", Must::Be("client.bootstrap-osd"));

/// Capabilities by command name, which every run has.
pub(super) const GRANTS: [Grant; 25] = [
    mon("config-key ls", &[]),
    mon("auth get", &[("entity", Must::BeginWith("osd."))]),
    mon("auth get", &[BOOTSTRAP]),
    mon("auth get-or-create", &[BOOTSTRAP, ("caps_mon", Must::Be("allow profile bootstrap-osd"))]),
    mon("auth rm", &[BOOTSTRAP]),
    mon("osd set-group", FLAGS),
    mon("osd unset-group", FLAGS),
    mon("osd destroy-actual", &[]),
    mon("osd new", &[]),
    mon("osd purge-new", &[]),
    mon("osd out", &[]),
    mon("osd reweight", &[]),
    mon("osd primary-affinity", &[]),
    mon("osd crush add", &[]),
    mon("osd crush reweight", &[]),
    mon("osd crush set-device-class", &[]),
    mon("osd pg-upmap-items", &[]),
    mgr("pg dump"),
    mgr("pg ls"),
    mgr("pg ls-by-osd"),
    mgr("pg stat"),
    mgr("osd df"),
    mgr("osd perf"),
    mgr("osd ok-to-stop"),
    mgr("osd safe-to-destroy"),
];

/// Capabilities of a run that removes an OSD: the user has them only from the first purge of such a run to
/// the first act of a later run.
pub(super) const PURGE: [Grant; 2] = [mon("osd purge-actual", &[]), mon("osd crush rm", &[])];

/// Capabilities of a run with `--no-scrub`, which the user has from the first such act of that run.
pub(super) const SCRUB: [Grant; 2] = [mon("osd set", SCRUB_FLAGS), mon("osd unset", SCRUB_FLAGS)];

/// Capabilities of a run with `--recovery fast`, which the user has from the first such act of that run.
pub(super) const RECOVERY: [Grant; 2] = [
    mon("config set", &[FOR_OSDS, RECOVERY_OPTIONS, RECOVERY_VALUES]),
    mon("config rm", &[FOR_OSDS, RECOVERY_OPTIONS]),
];

/// Capabilities of the user, by what it has to do in addition to the usual acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The purge of removed OSDs and of their CRUSH hosts.
    purge: bool,
    /// The flags `noscrub` and `nodeep-scrub`.
    scrub: bool,
    /// The options about recovery.
    recovery: bool,
}

impl Needs {
    /// Nothing in addition.
    pub const USUAL: Self = Self { purge: false, scrub: false, recovery: false };
    /// The purge of removed OSDs.
    pub const PURGE: Self = Self { purge: true, ..Self::USUAL };
    /// The flags `noscrub` and `nodeep-scrub`.
    pub const SCRUB: Self = Self { scrub: true, ..Self::USUAL };
    /// The options about recovery.
    pub const RECOVERY: Self = Self { recovery: true, ..Self::USUAL };

    /// Returns both.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            purge: self.purge || more.purge,
            scrub: self.scrub || more.scrub,
            recovery: self.recovery || more.recovery,
        }
    }

    /// Returns what a command needs.
    pub(super) fn of(command: &str) -> Self {
        let is_among = |grants: &[Grant]| grants.iter().any(|grant| grant.command == command);
        Self { purge: is_among(&PURGE), scrub: is_among(&SCRUB), recovery: is_among(&RECOVERY) }
    }

    /// Returns the capabilities.
    fn grants(self) -> impl Iterator<Item = &'static Grant> {
        let more: [(&'static [Grant], bool); 3] =
            [(&PURGE, self.purge), (&SCRUB, self.scrub), (&RECOVERY, self.recovery)];
        let needed = more.into_iter().filter(|(_, is_needed)| *is_needed);
        GRANTS.iter().chain(needed.flat_map(|(grants, _)| grants))
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allow command \"{}\"", self.command)?;
        for (position, (argument, must)) in self.with.iter().enumerate() {
            f.write_str(if position == 0 { " with " } else { " " })?;
            match must {
                Must::Be(text) => write!(f, "{argument}=\"{text}\"")?,
                Must::BeginWith(text) => write!(f, "{argument} prefix \"{text}\"")?,
                Must::BeOneOf(text) => write!(f, "{argument} regex \"{text}\"")?,
            }
        }
        Ok(())
    }
}

fn of(daemon: Daemon, needs: Needs) -> impl Iterator<Item = String> {
    needs.grants().filter(move |grant| grant.daemon == daemon).map(Grant::to_string)
}

/// Returns the capabilities on the mons, as `ceph auth` takes them.
pub(super) fn on_mons(needs: Needs) -> String {
    std::iter::once("allow r".to_owned()).chain(of(Daemon::Mon, needs)).collect::<Vec<_>>().join(", ")
}

/// Returns the capabilities on the mgr.
pub(super) fn on_mgr() -> String {
    of(Daemon::Mgr, Needs::USUAL).collect::<Vec<_>>().join(", ")
}

/// Returns the command that creates the user (`get-or-create`), or sets its capabilities (`caps`).
pub fn by_hand(verb: &str, needs: Needs) -> String {
    format!("ceph auth {verb} {USER} mon '{}' mgr '{}'", on_mons(needs), on_mgr())
}

#[cfg(test)]
#[path = "caps_tests.rs"]
pub(super) mod tests;
