//! What happened, as data; told in words elsewhere.

use std::fmt;

use crate::domain::act::Act;
use crate::domain::ledger::Ledger;
use crate::domain::next::{Halt, Saving, Summary, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The ledger was written.
    Saved {
        /// whose record
        osd: Option<OsdId>,
        /// what about
        why: &'a Saving,
        /// as it is now
        ledger: &'a Ledger,
    },
    /// Somebody else wrote the ledger first; the next turn decides anew.
    Conflict,
    /// An act went through.
    Done(&'a Act),
    /// An act did not go through, or nobody knows; the next turn decides anew.
    NotDone {
        /// the act
        act: &'a Act,
        /// why
        why: &'a str,
    },
    /// A look failed; it is tried again.
    Blind(&'a str),
    /// Nothing can be done now.
    Waiting {
        /// for what
        wait: &'a Wait,
        /// the ledger
        ledger: &'a Ledger,
        /// what was seen
        seen: &'a Observation,
    },
    /// The Lease is somebody else's.
    Lease(&'a str),
    /// The end.
    Finished(&'a Summary),
    /// A person is needed.
    Halted(&'a Halt),
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saved { osd: Some(osd), why, .. } => write!(f, "{osd}: saved {}", why.word()),
            Self::Saved { osd: None, why, .. } => write!(f, "saved {}", why.word()),
            Self::Conflict => f.write_str("the ledger was written by somebody else meanwhile; looking again"),
            Self::Done(act) => write!(f, "{}", words(act)),
            Self::NotDone { act, why } => write!(f, "not done: {}: {why}", words(act)),
            Self::Blind(why) => write!(f, "could not look: {why}"),
            Self::Waiting { wait, .. } => wait.fmt(f),
            Self::Lease(why) => f.write_str(why),
            Self::Finished(summary) => finished(summary, f),
            Self::Halted(halt) => write!(f, "halted: {halt}"),
        }
    }
}

fn finished(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if !summary.unconfirmed.is_empty() {
        let names: Vec<_> = summary.unconfirmed.iter().map(ToString::to_string).collect();
        return write!(
            f,
            "not confirmed: {} would be migrated, nothing was changed. To confirm: kubectl patch cephcluster NAME --type merge \
             -p '{{\"spec\":{{\"storage\":{{\"migration\":{{\"confirmation\":\"yes-really-migrate-osds\"}}}}}}}}', or --confirm yes-really-migrate-osds",
            names.join(", ")
        );
    }
    f.write_str("finished: nothing is left to do")?;
    for (osd, why) in summary.quarantined.iter().chain(&summary.refused) {
        write!(f, "; {osd} was left alone: {why}")?;
    }
    Ok(())
}

/// An act in words.
pub fn words(act: &Act) -> String {
    match act {
        Act::Keep { osd, .. } => format!("{osd}: kept its Deployment"),
        Act::Agent { request, .. } => {
            format!("{}: made Job for {}, attempt {}", request.osd, request.task, request.attempt)
        }
        Act::DropAgent { job, .. } => format!("deleted Job {job}, which did not start"),
        Act::Fence { value } => format!("fenced the CephCluster: do-not-reconcile={value}"),
        Act::Unfence { value } => format!("lifted the fence {value}"),
        Act::Hush { osd, noout, noin, .. } => format!("{osd}: set {}", flags(*noout, *noin)),
        Act::Unhush { osd, noout, noin } => format!("{osd}: lifted {}", flags(*noout, *noin)),
        Act::Stop { osd, .. } => format!("{osd}: stopped"),
        Act::Restart { osd, .. } => format!("{osd}: started again as it was"),
        Act::Destroy { osd, fsid } => format!("{osd}: destroyed {fsid}"),
        Act::Reclaim { osd, .. } => format!("{osd}: took its id back"),
        Act::PurgeStray { stray, .. } => format!("purged {stray}, which was made by mistake"),
        Act::RestoreCrush { osd, .. } => format!("{osd}: put back into CRUSH"),
        Act::Deploy(deploy) => format!("{}: deployed {}", deploy.osd, deploy.fsid),
        Act::Sweep { osd, .. } => format!("{osd}: swept what was made for its record"),
    }
}

fn flags(noout: bool, noin: bool) -> &'static str {
    match (noout, noin) {
        (true, true) => "noout and noin",
        (true, false) => "noout",
        (false, true) => "noin",
        (false, false) => "no flag",
    }
}
