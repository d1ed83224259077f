//! Errors of Ceph: which command, about which OSD, and what a person can do. Classified by errno, never by
//! text.

use std::time::Duration;

use rustix::io::Errno;

use crate::ceph::caps::{self, Needs};
use crate::domain::osd::{ClusterFsid, OsdId};

/// Reason why Ceph could not be queried, or did not do an act.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "ceph-")]
pub enum CephError {
    /// `librados.so.2` is missing, or too old.
    #[error(
        "librados.so.2 cannot be used ({reason}). Run osd-migrate in the Ceph image of the cluster, which \
         contains it. See: kubectl -n {namespace} get cephcluster -o \
         jsonpath='{{.items[*].spec.cephVersion.image}}'"
    )]
    NoLibrados {
        /// Message of the dynamic linker.
        reason: String,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// The value given as a key is not a key. It never reached librados, which would print it.
    #[error(
        "the value given as the key of {user} is not a cephx key. See its Secret: \
         kubectl -n {namespace} describe secret {secret}"
    )]
    NotAKey {
        /// User that the key is for.
        user: String,
        /// Secret that contains the key.
        secret: String,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// The mons answered, and refuse the key.
    #[error(
        "the mons refuse the key of {user} ({errno}): the key was changed, or belongs to another cluster. \
         See its Secret: kubectl -n {namespace} describe secret {secret}"
    )]
    KeyRefused {
        /// User that the key is for.
        user: String,
        /// Secret that contains the key.
        secret: String,
        /// `EACCES` or `EPERM`
        errno: Errno,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// No mon answered, or they have no quorum.
    #[error(
        "no mon of {mon_host} accepted the connection within {} s: the mons are down, without quorum, or \
         unreachable. See: kubectl -n {namespace} get pods -l app=rook-ceph-mon -o wide", waited.as_secs()
    )]
    NoMon {
        /// Addresses that were tried.
        mon_host: String,
        /// Time waited.
        waited: Duration,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// Connecting failed in another way. With `EINVAL` or `ENOENT` the mon addresses cannot be used.
    #[error(
        "cannot connect to the mons `{mon_host}`: {reason}. See the source of the addresses: \
         kubectl -n {namespace} get configmap rook-ceph-mon-endpoints -o yaml"
    )]
    Connect {
        /// Addresses that were tried.
        mon_host: String,
        /// Message of librados.
        reason: String,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// The mons belong to another cluster than the one declared.
    #[error("the mons of {mon_host} belong to cluster {found}, not to {expected}: nothing was done")]
    OtherCluster {
        /// Addresses that were used.
        mon_host: String,
        /// Expected fsid.
        expected: ClusterFsid,
        /// Fsid that the mons report.
        found: ClusterFsid,
    },
    /// A query was answered with an error.
    #[error("`ceph {command}` failed: {errno}{}", sentence(said))]
    Read {
        /// Command.
        command: &'static str,
        /// Errno.
        errno: Errno,
        /// Message of Ceph.
        said: String,
    },
    /// Ceph refused an act: nothing was changed.
    #[error("`ceph {command}` for {osd} was refused: {errno}{}", sentence(said))]
    Act {
        /// Command.
        command: &'static str,
        /// OSD of the act.
        osd: OsdId,
        /// Errno.
        errno: Errno,
        /// Message of Ceph.
        said: String,
    },
    /// The user has no capability for a command: nothing was changed.
    #[error(
        "{user} may not run `ceph {command}`{}{}. To fix its capabilities: {}", about(*osd), sentence(said),
        remedy(user, command)
    )]
    NotAllowed {
        /// User.
        user: String,
        /// Command.
        command: &'static str,
        /// OSD of the command, if it was an act.
        osd: Option<OsdId>,
        /// Message of Ceph.
        said: String,
    },
    /// No answer arrived in time.
    ///
    /// **The outcome is unknown**: the command may have been done, or may be done later. Observe again, never
    /// assume.
    #[error(
        "no answer to `ceph {command}` within {} s; the outcome is unknown. See: \
         kubectl -n {namespace} get pods -l app=rook-ceph-{daemon} -o wide", waited.as_secs()
    )]
    NoAnswer {
        /// Command.
        command: &'static str,
        /// Daemon that should have answered: `mon` or `mgr`.
        daemon: &'static str,
        /// Time waited.
        waited: Duration,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// The answer cannot be read: it comes from a release that this program does not know.
    #[error("the answer to `ceph {command}` cannot be read: {source}")]
    UnreadableAnswer {
        /// Command.
        command: &'static str,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// The cluster differed right before the act from what the act expects. Nothing was sent.
    #[error("`ceph {command}` for {osd} was not sent: expected {expected}, found {found}")]
    Unexpected {
        /// Command that was not sent.
        command: &'static str,
        /// OSD of the act.
        osd: OsdId,
        /// State that the act expects.
        expected: String,
        /// State that was found.
        found: String,
    },
    /// The osdmap kept changing while it was read together with CRUSH.
    #[error("the osdmap changed {tries} times while it was read")]
    Unsettled {
        /// Number of reads.
        tries: u32,
    },
    /// The image of the runner has no `osdmaptool`.
    #[error(
        "osdmaptool is missing in the runner's image, so no forecast is possible. Use the Ceph image of the \
         cluster, which contains it: value `cephImage`"
    )]
    NoOsdmaptool,
    /// `osdmaptool` failed.
    #[error("osdmaptool failed, so there is no forecast: {why}. Try again")]
    Osdmaptool {
        /// Reason.
        why: String,
    },
    /// The thread of librados has ended.
    #[error("the connection to Ceph is closed")]
    Closed,
}

impl CephError {
    /// Returns the code: the anchor of the error in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl CephError {
    /// Returns whether no answer arrived in time.
    ///
    /// The outcome of such an act is unknown.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::NoMon { .. } | Self::NoAnswer { .. })
    }

    /// Returns whether the key is refused, or a capability is missing.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::KeyRefused { .. } | Self::NotAKey { .. } | Self::NotAllowed { .. })
            || matches!(self.errno(), Some(Errno::ACCESS | Errno::PERM))
    }

    /// Returns whether nothing was sent because the cluster is not as the act expects.
    pub fn is_unexpected(&self) -> bool {
        matches!(self, Self::Unexpected { .. })
    }

    /// Returns whether a person has to change something: the error does not pass by itself.
    pub fn needs_person(&self) -> bool {
        match self {
            Self::NoLibrados { .. }
            | Self::NotAKey { .. }
            | Self::KeyRefused { .. }
            | Self::NotAllowed { .. }
            | Self::OtherCluster { .. }
            | Self::NoOsdmaptool
            | Self::UnreadableAnswer { .. } => true,
            Self::Read { .. } | Self::Act { .. } => self.is_permission(),
            Self::NoMon { .. }
            | Self::Connect { .. }
            | Self::NoAnswer { .. }
            | Self::Unexpected { .. }
            | Self::Unsettled { .. }
            | Self::Osdmaptool { .. }
            | Self::Closed => false,
        }
    }

    /// Returns the errno, if Ceph gave one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Read { errno, .. } | Self::Act { errno, .. } | Self::KeyRefused { errno, .. } => {
                Some(*errno)
            }
            Self::NotAllowed { .. } => Some(Errno::ACCESS),
            Self::NoLibrados { .. }
            | Self::NotAKey { .. }
            | Self::NoMon { .. }
            | Self::Connect { .. }
            | Self::OtherCluster { .. }
            | Self::NoAnswer { .. }
            | Self::UnreadableAnswer { .. }
            | Self::Unexpected { .. }
            | Self::Unsettled { .. }
            | Self::NoOsdmaptool
            | Self::Osdmaptool { .. }
            | Self::Closed => None,
        }
    }

    /// Returns whether a query is worth repeating at once.
    ///
    /// A timeout is not: the query waited long enough.
    pub(super) fn is_transient(&self) -> bool {
        matches!(
            self.errno(),
            Some(Errno::AGAIN | Errno::INTR | Errno::BUSY | Errno::CONNRESET | Errno::NOTCONN)
        )
    }
}

/// Returns the errno of a negated code.
pub(super) fn errno(code: i32) -> Errno {
    Errno::from_raw_os_error(code.saturating_abs())
}

fn about(osd: Option<OsdId>) -> String {
    osd.map(|osd| format!(" for {osd}")).unwrap_or_default()
}

/// Returns the command that fixes the capabilities of the user `client.osd-migrate`, or creates this user if
/// another one was used (docs/guides/install.md).
fn remedy(user: &str, command: &str) -> String {
    caps::by_hand(if user == caps::USER { "caps" } else { "get-or-create" }, Needs::of(command))
}

fn sentence(said: &str) -> String {
    let clipped: String = said.chars().take(500).collect();
    if clipped.is_empty() { clipped } else { format!(": {clipped}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i32) -> CephError {
        CephError::Act {
            command: "osd destroy",
            osd: OsdId(1),
            errno: errno(code),
            said: "osd.1 is not `down`.".to_owned(),
        }
    }

    #[test]
    fn refusal_names_command_osd_and_reason() {
        let text = refused(-16).to_string();
        assert!(text.starts_with("`ceph osd destroy` for osd.1 was refused: "), "{text}");
        assert!(text.ends_with(": osd.1 is not `down`."), "{text}");
    }

    #[test]
    fn permission_error_names_the_command_that_sets_the_caps() {
        let refused = |user: &str, osd| CephError::NotAllowed {
            user: user.to_owned(),
            command: "osd destroy-actual",
            osd,
            said: "access denied".to_owned(),
        };
        let text = refused(caps::USER, Some(OsdId(1))).to_string();
        assert!(
            text.starts_with(
                "client.osd-migrate may not run `ceph osd destroy-actual` for osd.1: access denied. "
            ),
            "{text}"
        );
        assert!(text.ends_with(&caps::by_hand("caps", Needs::USUAL)), "{text}");
        let other = refused("client.healthchecker", None);
        assert!(other.to_string().ends_with(&caps::by_hand("get-or-create", Needs::USUAL)), "{other}");
        let purge = CephError::NotAllowed {
            user: caps::USER.to_owned(),
            command: "osd purge-actual",
            osd: Some(OsdId(1)),
            said: "access denied".to_owned(),
        };
        assert!(purge.to_string().ends_with(&caps::by_hand("caps", Needs::PURGE)), "{purge}");
        assert!(other.needs_person() && other.is_permission() && !other.is_transient());
    }

    #[test]
    fn ceph_errors_are_classified_by_errno() {
        assert!(refused(-13).is_permission() && refused(-1).is_permission() && !refused(-16).is_permission());
        assert!(refused(-13).needs_person() && !refused(-16).needs_person());
        assert!(refused(-11).is_transient() && !refused(-2).is_transient());
        let silent = CephError::NoAnswer {
            command: "pg dump",
            daemon: "mgr",
            waited: Duration::from_secs(30),
            namespace: "rook-ceph".to_owned(),
        };
        assert!(silent.is_timeout() && !silent.is_transient());
        assert!(
            silent.to_string().ends_with("kubectl -n rook-ceph get pods -l app=rook-ceph-mgr -o wide"),
            "{silent}"
        );
    }
}
