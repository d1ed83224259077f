//! What went wrong: which command, about which OSD, and what a person can do. Classified by errno, never by text.

use std::time::Duration;

use rustix::io::Errno;

use super::caps;
use crate::domain::osd::{ClusterFsid, OsdId};

/// Why Ceph could not be asked, or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CephError {
    /// `librados.so.2` is not there, or too old.
    #[error(
        "librados.so.2 can't be used ({reason}); run osd-migrate in the cluster's own Ceph image, which has it: \
         kubectl -n {namespace} get cephcluster -o jsonpath='{{.items[*].spec.cephVersion.image}}'"
    )]
    NoLibrados {
        /// What the dynamic linker says.
        reason: String,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// What was given as key is none. It never reached librados, which would print it.
    #[error(
        "what was given as the key of {user} is no cephx key; look at its Secret: \
         kubectl -n {namespace} describe secret {secret}"
    )]
    NotAKey {
        /// Whose.
        user: String,
        /// The Secret that it comes from.
        secret: String,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// The mons answered, and don't take the key.
    #[error(
        "the mons refuse the key of {user} ({errno}): was it changed, or is it another cluster's? It comes from the Secret: \
         kubectl -n {namespace} describe secret {secret}"
    )]
    KeyRefused {
        /// Whose.
        user: String,
        /// The Secret that it comes from.
        secret: String,
        /// `EACCES` or `EPERM`
        errno: Errno,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// No mon answered, or they have no quorum.
    #[error(
        "no mon of {mon_host} let us in within {} s: they are down, without quorum, or out of reach; see: \
         kubectl -n {namespace} get pods -l app=rook-ceph-mon -o wide", waited.as_secs()
    )]
    NoMon {
        /// Addresses that were tried.
        mon_host: String,
        /// How long.
        waited: Duration,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// Connecting failed otherwise; with `EINVAL` or `ENOENT` the mon addresses can't be used.
    #[error(
        "can't connect to the mons `{mon_host}`: {reason}; the addresses come from: \
         kubectl -n {namespace} get configmap rook-ceph-mon-endpoints -o yaml"
    )]
    Connect {
        /// Addresses that were tried.
        mon_host: String,
        /// What librados says.
        reason: String,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// The mons belong to another cluster than the one declared.
    #[error("the mons of {mon_host} belong to cluster {found}, not to {expected}: nothing was done")]
    OtherCluster {
        /// Addresses that were used.
        mon_host: String,
        /// The fsid that was expected.
        expected: ClusterFsid,
        /// The fsid that the mons say.
        found: ClusterFsid,
    },
    /// A question was answered with an error.
    #[error("`ceph {command}` failed: {errno}{}", sentence(said))]
    Read {
        /// The command.
        command: &'static str,
        /// What kind of error.
        errno: Errno,
        /// Ceph's sentence.
        said: String,
    },
    /// An act was refused by Ceph: it changed nothing.
    #[error("`ceph {command}` for {osd} was refused: {errno}{}", sentence(said))]
    Act {
        /// The command.
        command: &'static str,
        /// For which OSD.
        osd: OsdId,
        /// What kind of error.
        errno: Errno,
        /// Ceph's sentence.
        said: String,
    },
    /// The user has no capability for a command: nothing was changed.
    #[error("{user} may not `ceph {command}`{}{}; give it what it needs: {}", about(*osd), sentence(said), remedy(user))]
    NotAllowed {
        /// Who.
        user: String,
        /// The command.
        command: &'static str,
        /// For which OSD, where it was an act.
        osd: Option<OsdId>,
        /// Ceph's sentence.
        said: String,
    },
    /// No answer in time. **The outcome is unknown**: the command may have been done, or may yet be. Look again, never assume.
    #[error(
        "no answer to `ceph {command}` within {} s, its outcome is unknown; see: \
         kubectl -n {namespace} get pods -l app=rook-ceph-{daemon} -o wide", waited.as_secs()
    )]
    NoAnswer {
        /// The command.
        command: &'static str,
        /// `mon` or `mgr`: who should have answered.
        daemon: &'static str,
        /// How long.
        waited: Duration,
        /// Namespace of the cluster.
        namespace: String,
    },
    /// An answer that can't be read: a release that this program doesn't know.
    #[error("can't read the answer to `ceph {command}`: {source}")]
    UnreadableAnswer {
        /// The command.
        command: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// Right before the act something else was found than it expects. Nothing was sent.
    #[error("`ceph {command}` for {osd} was not sent: expected {expected}, found {found}")]
    Unexpected {
        /// The command that was not sent.
        command: &'static str,
        /// For which OSD.
        osd: OsdId,
        /// What the act expects.
        expected: String,
        /// What was there.
        found: String,
    },
    /// The osdmap kept changing while it was read together with CRUSH.
    #[error("the osdmap changed {tries} times while it was read")]
    Unsettled {
        /// How often it was read.
        tries: u32,
    },
    /// The thread of librados is gone.
    #[error("the connection to Ceph is closed")]
    Closed,
}

impl CephError {
    /// No answer in time; for an act: its outcome is unknown.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::NoMon { .. } | Self::NoAnswer { .. })
    }

    /// The key is refused, or lacks a capability.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::KeyRefused { .. } | Self::NotAKey { .. } | Self::NotAllowed { .. })
            || matches!(self.errno(), Some(Errno::ACCESS | Errno::PERM))
    }

    /// Nothing was sent, because the cluster is not as the act expects.
    pub fn is_unexpected(&self) -> bool {
        matches!(self, Self::Unexpected { .. })
    }

    /// It does not pass by itself: a person has to change something.
    pub fn needs_person(&self) -> bool {
        match self {
            Self::NoLibrados { .. }
            | Self::NotAKey { .. }
            | Self::KeyRefused { .. }
            | Self::NotAllowed { .. }
            | Self::OtherCluster { .. }
            | Self::UnreadableAnswer { .. } => true,
            Self::Read { .. } | Self::Act { .. } => self.is_permission(),
            Self::NoMon { .. }
            | Self::Connect { .. }
            | Self::NoAnswer { .. }
            | Self::Unexpected { .. }
            | Self::Unsettled { .. }
            | Self::Closed => false,
        }
    }

    /// The errno, where Ceph gave one.
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
            | Self::Closed => None,
        }
    }

    /// A question that is worth asking again at once. Not after a timeout: that waited long enough.
    pub(super) fn is_transient(&self) -> bool {
        matches!(
            self.errno(),
            Some(Errno::AGAIN | Errno::INTR | Errno::BUSY | Errno::CONNRESET | Errno::NOTCONN)
        )
    }
}

/// The errno behind a negated one.
pub(super) fn errno(code: i32) -> Errno {
    Errno::from_raw_os_error(code.saturating_abs())
}

fn about(osd: Option<OsdId>) -> String {
    osd.map(|osd| format!(" for {osd}")).unwrap_or_default()
}

/// Our own user is given its capabilities; who has only another one makes it (docs/guides/install.md).
fn remedy(user: &str) -> String {
    caps::by_hand(if user == caps::USER { "caps" } else { "get-or-create" })
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
    fn an_error_names_command_subject_and_reason() {
        let text = refused(-16).to_string();
        assert!(text.starts_with("`ceph osd destroy` for osd.1 was refused: "), "{text}");
        assert!(text.ends_with(": osd.1 is not `down`."), "{text}");
    }

    #[test]
    fn what_the_user_may_not_is_named_with_the_command_that_mends_it() {
        let refused = |user: &str, osd| CephError::NotAllowed {
            user: user.to_owned(),
            command: "osd destroy-actual",
            osd,
            said: "access denied".to_owned(),
        };
        let text = refused(caps::USER, Some(OsdId(1))).to_string();
        assert!(
            text.starts_with(
                "client.osd-migrate may not `ceph osd destroy-actual` for osd.1: access denied; "
            ),
            "{text}"
        );
        assert!(text.ends_with(&caps::by_hand("caps")), "{text}");
        let other = refused("client.healthchecker", None);
        assert!(other.to_string().ends_with(&caps::by_hand("get-or-create")), "{other}");
        assert!(other.needs_person() && other.is_permission() && !other.is_transient());
    }

    #[test]
    fn errors_are_told_apart_by_errno() {
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
