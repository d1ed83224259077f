//! Session with Ceph, and its key: that of `client.osd-migrate`, which the first act creates (ADR 0019).

use crate::ceph::{self, Ceph, CephError, Connection, Needs, Secret};
use crate::domain::act::{Act, CephAct};
use crate::k8s::MonAccess;
use crate::live::adapter::{Live, Session};
use crate::live::failure::{ceph_failure, kube_failure};
use crate::ports::{Failure, passing};

impl Live {
    /// Returns the session with Ceph, and opens it if there is none.
    ///
    /// It uses the mons and the key that Kubernetes names now, since mons move and keys are rotated. It may
    /// have Rook's key, and is for queries only, until [`act_as_own_user`](Live::act_as_own_user) was called.
    pub(super) async fn session(&mut self) -> Result<&Ceph, Failure> {
        if self.ceph.is_none() {
            let session = self.open(false).await?;
            self.ceph = Some(session);
        }
        self.ceph.as_ref().map(|session| &session.ceph).ok_or_else(closed)
    }

    /// Prepares an act: the session becomes that of the user of osd-migrate, which is created if it is
    /// missing.
    ///
    /// No observation creates the user, so a command that only observes changes nothing. The first act of a
    /// run that needs another capability (a purge, a flag of the cluster, an option) adds it to the user, and
    /// opens a session that has it.
    pub(super) async fn act_as_own_user(&mut self, act: &Act) -> Result<(), Failure> {
        let needs = self.needs.and(needed_for(act));
        if needs != self.needs {
            self.needs = needs;
            self.close();
        }
        self.session().await?;
        if self.ceph.as_ref().is_some_and(|session| session.borrowed) {
            self.close();
            let session = self.open(true).await?;
            self.ceph = Some(session);
        }
        Ok(())
    }

    async fn open(&mut self, acts: bool) -> Result<Session, Failure> {
        let access = self.k8s.mon_access().await.map_err(kube_failure)?;
        let of_rook = access.of_rook;
        let connection = self.connection(access);
        let first = Ceph::connect(connection.clone()).await.map_err(ceph_failure)?;
        if !of_rook {
            return Ok(Session { ceph: first, borrowed: false });
        }
        let needs = self.needs;
        let own = if acts { first.make_own_user(needs).await.map(Some) } else { first.own_user(needs).await };
        let Some(key) = own.map_err(ceph_failure)? else {
            return Ok(Session { ceph: first, borrowed: true });
        };
        self.commands_before += first.commands_sent();
        drop(first);
        let user = ceph::USER.to_owned();
        let ceph = Ceph::connect(Connection { user, key, ..connection }).await.map_err(ceph_failure)?;
        Ok(Session { ceph, borrowed: false })
    }

    fn connection(&self, access: MonAccess) -> Connection {
        Connection {
            mon_host: access.mon_host,
            user: access.user,
            key: Secret::new(access.key.reveal().to_owned()),
            secret: access.secret,
            fsid: access.fsid,
            namespace: self.k8s.namespace().to_owned(),
            timeout: self.ceph_timeout,
        }
    }

    /// Closes the session after an error of Ceph, so that the next call opens another.
    ///
    /// This is cheap (20 ms), and correct after a failover of the mons.
    pub(super) fn reopen<T>(&mut self, result: Result<T, CephError>) -> Result<T, Failure> {
        result.map_err(|error| {
            if !error.is_unexpected() {
                self.close();
            }
            ceph_failure(error)
        })
    }

    fn close(&mut self) {
        self.commands_before = self.commands_sent();
        self.ceph = None;
    }
}

fn needed_for(act: &Act) -> Needs {
    match act {
        Act::Ceph(CephAct::Purge { .. } | CephAct::RemoveHost { .. }) => Needs::PURGE,
        Act::Ceph(CephAct::SetNoScrub { .. } | CephAct::UnsetNoScrub { .. }) => Needs::SCRUB,
        Act::Ceph(CephAct::SetFastRecovery { .. } | CephAct::UnsetFastRecovery { .. }) => Needs::RECOVERY,
        Act::Ceph(_) | Act::Kube(_) | Act::Node(_) => Needs::USUAL,
    }
}

fn closed() -> Failure {
    passing("the session with Ceph is closed".to_owned())
}
