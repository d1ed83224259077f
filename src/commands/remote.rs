//! Commands that run in the cluster, typed outside of it: as a Job that is created from the CronJob.

use std::ffi::OsString;
use std::sync::Arc;

use crate::cli::{Command, forwarded};
use crate::commands::follow::Follower;
use crate::commands::interrupted::interrupted;
use crate::commands::pod::is_in_pod;
use crate::commands::print::{closed, print};
use crate::commands::terminal::width;
use crate::exit::{Exit, failed, not_seen};
use crate::k8s::{CRON_JOB, CommandJob, K8s, Look};
use crate::live::{WallClock, kube_failure};
use crate::ports::Clock;

/// Name of the command that fences the CephCluster.
const FENCE: &str = "fence";

/// How a person ends a run.
const TO_END_A_RUN: &str = "To end it: osd-migrate -n NAMESPACE cancel";

/// When the Job of `fence` ends: a cancel is for runs.
const TO_END_FENCE: &str = "It ends by itself, after 30 minutes at the latest";

/// A command that runs as a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AsJob {
    /// Name of the command.
    name: &'static str,
    /// Whether the command only answers a person who waits for it: its Job is deleted at the end.
    only_looks: bool,
    /// Whether the Job is only created.
    detach: bool,
}

impl AsJob {
    /// Returns how a command runs as a Job; none if it needs no Job, or if this process is in a pod.
    pub(super) fn of(command: &Command) -> Option<Self> {
        let (name, only_looks, detach) = match command {
            Command::Plan(args) => ("plan", true, args.run.new.detach),
            Command::Preflight => ("preflight", true, false),
            // The output is for the person who waits for it, and the request that it stores is in the API.
            Command::Remove(_) => ("remove", true, false),
            Command::Fence { .. } => (FENCE, false, false),
            Command::Run(args) => ("run", false, args.new.detach),
            Command::Provision(args) => ("provision", false, args.detach),
            Command::Follow { .. }
            | Command::Rehearse(_)
            | Command::Status(_)
            | Command::Report(_)
            | Command::Pause
            | Command::Cancel
            | Command::Resume
            | Command::Retry { .. }
            | Command::Keep(_)
            | Command::Start { .. }
            | Command::Uninstall
            | Command::Explain { .. }
            | Command::Version
            | Command::Completion { .. }
            | Command::Complete { .. }
            | Command::Man { .. }
            | Command::Node { .. } => return None,
        };
        (!is_in_pod()).then_some(Self { name, only_looks, detach })
    }
}

/// Creates the Job of a command, prints its log, and returns its exit code.
///
/// `typed` has the arguments of this process, without its name.
pub(super) async fn remote(k8s: Arc<K8s>, command: AsJob, typed: &[OsString]) -> Exit {
    let job = match create(&k8s, command, typed).await {
        Ok(job) => job,
        Err(exit) => return exit,
    };
    let (name, names) = (&job.name, k8s.names());
    if command.detach {
        let follow = names.complete(&format!("osd-migrate -n NAMESPACE follow {name}"));
        tracing::info!("to follow it: {follow}");
        return print(name).map_or_else(|exit| exit, |()| Exit::Finished);
    }
    if !command.only_looks {
        let to_end = if command.name == FENCE { TO_END_FENCE } else { TO_END_A_RUN };
        return follow_until_detached(&k8s, &job, to_end).await;
    }
    let exit = tokio::select! {
        exit = Follower::new(&k8s, &job, true).follow() => exit,
        () = interrupted() => Exit::Interrupted,
        () = closed() => Exit::Unread,
    };
    if let Err(error) = k8s.delete_command_job(&job).await {
        tracing::warn!("{error}. Kubernetes deletes Job {name} an hour after its end");
    }
    exit
}

async fn create(k8s: &K8s, command: AsJob, typed: &[OsString]) -> Result<CommandJob, Exit> {
    let template = k8s.template().await.map_err(|error| not_seen(&kube_failure(error)))?;
    let args = forwarded(typed, &template.arguments()).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default();
        let namespace = k8s.namespace();
        failed(
            &format!(
                "this program is of version {}, and does not know the arguments of CronJob {CRON_JOB} in \
                 namespace {namespace} ({why}). Install the version of the chart: helm -n {namespace} list",
                env!("CARGO_PKG_VERSION")
            ),
            Exit::WrongUsage,
        )
    })?;
    let name = format!("osd-migrate-{}-{}", command.name, WallClock.now().timestamp());
    let look = command.only_looks.then(|| Look { columns: width().known() });
    let job = k8s.create_command_job(&template, &name, &args, look).await;
    let job = job.map_err(|error| not_seen(&kube_failure(error)))?;
    tracing::info!("{}: created Job {name}: {}", k8s.names().cluster_line(), args.join(" "));
    Ok(job)
}

/// Follows a run that is at work, or a named Job.
pub(super) async fn follow(k8s: Arc<K8s>, name: Option<String>) -> Exit {
    let name = match name {
        Some(name) => name,
        None => match k8s.runner(WallClock.now()).await {
            Ok(Some(runner)) if runner.is_alive => runner.job,
            Ok(_) => {
                let why = "no run is at work. To see the last one: osd-migrate -n NAMESPACE status";
                return failed(&k8s.names().complete(why), Exit::Refused);
            }
            Err(error) => return not_seen(&kube_failure(error)),
        },
    };
    match k8s.find_command_job(&name).await {
        Ok(job) => follow_until_detached(&k8s, &job, TO_END_A_RUN).await,
        Err(error) => not_seen(&kube_failure(error)),
    }
}

/// Follows a Job until it ends or a person detaches: the Job does not end with this command.
async fn follow_until_detached(k8s: &K8s, job: &CommandJob, to_end: &str) -> Exit {
    tokio::select! {
        exit = Follower::new(k8s, job, false).follow() => exit,
        () = interrupted() => {
            let name = &job.name;
            let text = format!(
                "detached: Job {name} continues. To follow it again: osd-migrate -n NAMESPACE follow {name}. \
                 {to_end}"
            );
            tracing::warn!("{}", k8s.names().complete(&text));
            Exit::Interrupted
        }
        () = closed() => Exit::Unread,
    }
}
