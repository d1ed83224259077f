//! Session with the cluster: its two handles, and how queries and acts are sent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use rustix::io::Errno;

use crate::ceph::command::Command;
use crate::ceph::down_since::DownSince;
use crate::ceph::error::{self, CephError};
use crate::ceph::fsid;
use crate::ceph::librados::{self, Buffer, Daemon, Lane, NotConnected, Reply};
use crate::ceph::maps::Maps;
use crate::ceph::numbers::parsed;
use crate::ceph::osd_metadata::KeptMetadata;
use crate::ceph::pg_statistics::Kept;
use crate::ceph::secret::Secret;
use crate::domain::osd::{ClusterFsid, OsdId};

/// Parameters of a connection to the cluster.
///
/// No configuration file is read.
#[derive(Debug, Clone)]
pub struct Connection {
    /// `mon_host` as Ceph takes it: `[v2:10.0.0.1:3300,v1:10.0.0.1:6789],...`
    pub mon_host: String,
    /// Name of the user: `client.admin`
    pub user: String,
    /// Key of the user.
    pub key: Secret,
    /// Secret that contains the key, for the commands in messages.
    pub secret: String,
    /// Expected fsid of the cluster.
    pub fsid: ClusterFsid,
    /// Namespace of the cluster, for the commands in messages.
    pub namespace: String,
    /// Longest time for connecting and for each command; whole seconds, at least one.
    pub timeout: Duration,
}

impl Connection {
    /// Default timeout: long enough for an election of the mons, and short enough to report soon.
    ///
    /// `mon_lease` and `mon_election_timeout` are 5 s each.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// Returns the options of librados.
    ///
    /// `rados_mon_op_timeout` also limits `rados_mgr_command` (16-20), but there the command outlives the
    /// call: its late answer is written to freed memory. So the mgr's handle keeps it at 0, without a limit,
    /// and only the caller stops waiting. The answer frees the handle for the next command whenever it
    /// arrives.
    fn options(&self, daemon: Daemon) -> Vec<(&'static str, String)> {
        let seconds = self.timeout.as_secs().max(1).to_string();
        let mon_op_timeout = match daemon {
            Daemon::Mon => seconds.clone(),
            Daemon::Mgr => "0".to_owned(),
        };
        vec![
            ("log_to_stderr", "false".to_owned()),
            ("err_to_stderr", "false".to_owned()),
            ("log_file", String::new()),
            ("admin_socket", String::new()),
            ("keyring", String::new()), // the key below, and no keyring file that happens to exist
            ("mon_host", self.mon_host.clone()),
            ("key", self.key.expose().to_owned()),
            // By default (16-20: "cephx, none"), a mon that refuses cephx gets a session without any proof
            // that it has the key, and a false mon answers every query.
            ("auth_client_required", "cephx".to_owned()),
            ("client_mount_timeout", seconds),
            ("rados_mon_op_timeout", mon_op_timeout),
        ]
    }

    async fn open(&self, daemon: Daemon) -> Result<Lane, CephError> {
        if self.mon_host.trim().is_empty() {
            return Err(self.explain(NotConnected::BadOption("mon_host".to_owned()))); // librados asks DNS
        }
        // librados waits up to the timeout for the first map and again for the session; name resolution has
        // no limit of its own.
        let patience = self.timeout * 3;
        match tokio::time::timeout(patience, Lane::connect(daemon, &self.user, self.options(daemon))).await {
            Ok(connected) => connected.map_err(|reason| self.explain(reason)),
            Err(_) => Err(self.explain(NotConnected::Failed(-Errno::TIMEDOUT.raw_os_error()))),
        }
    }

    fn explain(&self, reason: NotConnected) -> CephError {
        let (mon_host, namespace) = (self.mon_host.clone(), self.namespace.clone());
        match reason {
            NotConnected::NoLibrary(reason) => CephError::NoLibrados { reason, namespace },
            NotConnected::BadOption(option) => CephError::Connect {
                mon_host,
                reason: format!("`{option}` is empty or refused by librados"),
                namespace,
            },
            NotConnected::NoThread(reason) => CephError::Connect { mon_host, reason, namespace },
            NotConnected::Failed(code) => match error::errno(code) {
                Errno::TIMEDOUT => CephError::NoMon { mon_host, waited: self.timeout, namespace },
                errno @ (Errno::ACCESS | Errno::PERM) => {
                    let (user, secret) = (self.user.clone(), self.secret.clone());
                    CephError::KeyRefused { user, secret, errno, namespace }
                }
                errno => CephError::Connect { mon_host, reason: errno.to_string(), namespace },
            },
        }
    }
}

/// Session with the cluster.
///
/// It has two handles, because mon and mgr need different options of librados ([`Connection`]'s options).
/// Dropping it shuts both down.
pub struct Ceph {
    mon: Lane,
    mgr: Lane,
    timeout: Duration,
    pub(super) namespace: String,
    user: String,
    commands_sent: AtomicU64,
    /// Statistics of the PGs of the last observation.
    pub(super) kept_pgs: Mutex<Option<Kept>>,
    /// Whether the mgr has refused `pg stat` to the user.
    pub(super) lacks_pg_stat: AtomicBool,
    /// Whether the mgr has refused `pg ls-by-osd` to the user.
    pub(super) lacks_pg_ls_by_osd: AtomicBool,
    /// Metadata of the OSDs of the last observation.
    pub(super) kept_metadata: Mutex<KeptMetadata>,
    /// Osdmap and CRUSH of the last observation.
    pub(super) kept_map: Mutex<Option<Maps>>,
    /// Times since which OSDs have been down.
    pub(super) down_since: Mutex<DownSince>,
}

impl std::fmt::Debug for Ceph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ceph").field("commands_sent", &self.commands_sent()).finish_non_exhaustive()
    }
}

impl Ceph {
    /// Connects, and refuses a cluster with another fsid.
    pub async fn connect(connection: Connection) -> Result<Self, CephError> {
        if !connection.key.is_cephx_key() {
            let Connection { user, secret, namespace, .. } = connection;
            return Err(CephError::NotAKey { user, secret, namespace });
        }
        let mon = connection.open(Daemon::Mon).await?;
        let mgr = connection.open(Daemon::Mgr).await?;
        let Connection { mon_host, user, fsid: expected, namespace, timeout, .. } = connection;
        let ceph = Self {
            mon,
            mgr,
            timeout,
            namespace,
            user,
            commands_sent: AtomicU64::new(0),
            kept_pgs: Mutex::default(),
            lacks_pg_stat: AtomicBool::new(false),
            lacks_pg_ls_by_osd: AtomicBool::new(false),
            kept_metadata: Mutex::default(),
            kept_map: Mutex::default(),
            down_since: Mutex::default(),
        };
        let found = ceph.read(fsid::command(), fsid::parse).await?;
        if found == expected { Ok(ceph) } else { Err(CephError::OtherCluster { mon_host, expected, found }) }
    }

    /// Returns the version of librados in use (`3.0.0`), for the log.
    pub fn librados_version() -> Option<String> {
        librados::version().ok()
    }

    /// Returns the number of commands sent in this session, for the statistics.
    pub fn commands_sent(&self) -> u64 {
        self.commands_sent.load(Ordering::Relaxed)
    }

    /// Sends a query, and repeats it a few times if the error is transient.
    pub(super) async fn read<T>(
        &self,
        command: Command,
        parse: fn(&[u8]) -> serde_json::Result<T>,
    ) -> Result<T, CephError> {
        let answer = self.answer(&command).await?;
        value(&command, &answer, parse)
    }

    /// Sends a query once, for which an error that passes by itself is an answer, too.
    pub(super) async fn read_once<T>(
        &self,
        command: Command,
        parse: fn(&[u8]) -> serde_json::Result<T>,
    ) -> Result<T, CephError> {
        let answer = self.answer_once(&command).await?;
        value(&command, &answer, parse)
    }

    /// Sends a query whose answer is not JSON, as `read` does.
    pub(super) async fn answer(&self, command: &Command) -> Result<Buffer, CephError> {
        let ask = || self.answer_once(command);
        ask.retry(quick_retries()).when(CephError::is_transient).await
    }

    async fn answer_once(&self, command: &Command) -> Result<Buffer, CephError> {
        let reply = self.send(command).await?;
        match reply.code {
            0.. => Ok(reply.out),
            code => Err(self.refused(command.name, None, code, reply.said)),
        }
    }

    /// Sends an act, once.
    pub(super) async fn act(&self, osd: impl Into<Option<OsdId>>, command: Command) -> Result<(), CephError> {
        let reply = self.send(&command).await?;
        match reply.code {
            0.. => Ok(()),
            code => Err(self.refused(command.name, osd.into(), code, reply.said)),
        }
    }

    pub(super) fn refused(
        &self,
        command: &'static str,
        osd: Option<OsdId>,
        code: i32,
        said: String,
    ) -> CephError {
        match (error::errno(code), osd) {
            (Errno::ACCESS, osd) => CephError::NotAllowed { user: self.user.clone(), command, osd, said },
            (errno, None) => CephError::Read { command, errno, said },
            (errno, Some(osd)) => CephError::Act { command, osd, errno, said },
        }
    }

    /// Sends a command and waits no longer than the timeout.
    ///
    /// A mon command times out in librados first, which then forgets it.
    pub(super) async fn send(&self, command: &Command) -> Result<Reply, CephError> {
        self.commands_sent.fetch_add(1, Ordering::Relaxed);
        let (lane, daemon, patience) = match command.daemon {
            Daemon::Mon => (&self.mon, "mon", self.timeout + Duration::from_secs(5)),
            Daemon::Mgr => (&self.mgr, "mgr", self.timeout),
        };
        let silence = |waited| {
            let namespace = self.namespace.clone();
            CephError::NoAnswer { command: command.name, daemon, waited, namespace }
        };
        match tokio::time::timeout(patience, lane.send(command.to_c_string(), Vec::new())).await {
            Err(_) => Err(silence(patience)),
            Ok(Err(_)) => Err(CephError::Closed),
            Ok(Ok(reply)) if reply.code < 0 && error::errno(reply.code) == Errno::TIMEDOUT => {
                Err(silence(self.timeout))
            }
            Ok(Ok(reply)) => Ok(reply),
        }
    }
}

/// Locks what is kept from one observation to the next.
pub(super) fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn value<T>(
    command: &Command,
    answer: &[u8],
    parse: fn(&[u8]) -> serde_json::Result<T>,
) -> Result<T, CephError> {
    parsed(answer, parse).map_err(|source| CephError::UnreadableAnswer { command: command.name, source })
}

fn quick_retries() -> ExponentialBuilder {
    ExponentialBuilder::default().with_min_delay(Duration::from_millis(100)).with_max_times(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mon_that_does_not_prove_the_key_gets_no_session() {
        let connection = Connection {
            mon_host: "[v2:10.0.0.1:3300]".to_owned(),
            user: "client.admin".to_owned(),
            key: Secret::new(String::new()),
            secret: "rook-ceph-mon".to_owned(),
            fsid: "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap(),
            namespace: "rook-ceph".to_owned(),
            timeout: Connection::TIMEOUT,
        };
        for daemon in [Daemon::Mon, Daemon::Mgr] {
            assert!(connection.options(daemon).contains(&("auth_client_required", "cephx".to_owned())));
        }
    }
}
