//! What `client.osd-migrate` may do: the one place that names its capabilities. They follow from the commands that this folder
//! sends, and its test fails where either has what the other lacks. Why so: ADR 0019.
//!
//! How mons and mgr read them (`MonCap.cc`, `MgrCap.cc`; same from 16 to 20): a command is allowed by name, its arguments by
//! `with`, which an argument that is not there does not fulfil. `allow r` opens neither `auth` (needs `x`) nor `config-key`
//! (no capability but `allow *`, a profile or one by name does).

use std::fmt;

use super::librados::Daemon;

/// The runner's own user.
pub const USER: &str = "client.osd-migrate";

/// What an argument of a command must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    /// This.
    Be(&'static str),
    /// This, and anything behind it.
    BeginWith(&'static str),
    /// One of these, all of it: `a|b`.
    BeOneOf(&'static str),
}

/// One command that is allowed by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grant {
    /// Who answers it.
    pub(super) daemon: Daemon,
    /// Its words.
    pub(super) command: &'static str,
    /// What its arguments must be; the others may be anything.
    pub(super) with: &'static [(&'static str, Must)],
}

const fn mon(command: &'static str, with: &'static [(&'static str, Must)]) -> Grant {
    Grant { daemon: Daemon::Mon, command, with }
}

const fn mgr(command: &'static str) -> Grant {
    Grant { daemon: Daemon::Mgr, command, with: &[] }
}

/// Questions to the mons that `allow r` answers (`MonCommands.h`: permission `r`, module not `auth`, not `config-key`). Each
/// client needs it for the maps anyhow.
#[cfg(test)]
pub(super) const READABLE: [&str; 7] =
    ["fsid", "health", "versions", "osd crush dump", "osd dump", "osd metadata", "osd stat"];

const FLAGS: &[(&str, Must)] = &[("flags", Must::BeOneOf("noout|noin|noout,noin"))];
const BOOTSTRAP: (&str, Must) = ("entity", Must::Be("client.bootstrap-osd"));

/// Everything else.
pub(super) const GRANTS: [Grant; 19] = [
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
    mon("osd reweight", &[]),
    mon("osd primary-affinity", &[]),
    mon("osd crush add", &[]),
    mon("osd crush reweight", &[]),
    mon("osd crush set-device-class", &[]),
    mon("osd pg-upmap-items", &[]),
    mgr("pg dump"),
    mgr("osd df"),
    mgr("osd ok-to-stop"),
];

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

fn of(daemon: Daemon) -> impl Iterator<Item = String> {
    GRANTS.iter().filter(move |grant| grant.daemon == daemon).map(Grant::to_string)
}

/// Its capabilities on the mons, as `ceph auth` takes them.
pub(super) fn on_mons() -> String {
    std::iter::once("allow r".to_owned()).chain(of(Daemon::Mon)).collect::<Vec<_>>().join(", ")
}

/// Its capabilities on the mgr.
pub(super) fn on_mgr() -> String {
    of(Daemon::Mgr).collect::<Vec<_>>().join(", ")
}

/// What a person types to make the user (`get-or-create`), or to give it what it should have (`caps`).
pub fn by_hand(verb: &str) -> String {
    format!("ceph auth {verb} {USER} mon '{}' mgr '{}'", on_mons(), on_mgr())
}

#[cfg(test)]
#[path = "caps_tests.rs"]
pub(super) mod tests;
