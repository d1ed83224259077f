//! Passes the arguments to their command.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::{Cli, Command};
use crate::commands::control::control;
use crate::commands::node::node;
use crate::commands::plan::plan;
use crate::commands::preflight::preflight;
use crate::commands::rehearse::rehearse;
use crate::commands::remote::{AsJob, follow, remote};
use crate::commands::retry::retry;
use crate::commands::run::run;
use crate::commands::start::start;
use crate::commands::status::status;
use crate::commands::uninstall::uninstall;
use crate::domain::observation::ControlKind;
use crate::exit::{Exit, not_seen};
use crate::k8s::{K8s, Place};
use crate::live::kube_failure;

/// Returns whether a command handles signals itself.
///
/// An agent that is interrupted ends its task first: an unfinished task would only have to be repeated. A
/// command that follows a Job says what becomes of the Job.
pub fn ends_itself(command: &Command) -> bool {
    let watches = matches!(command, Command::Status(args) if args.watch);
    watches
        || matches!(command, Command::Node { .. } | Command::Follow { .. })
        || AsJob::of(command).is_some()
}

/// Does what the arguments say.
///
/// `typed` has the same arguments as words, for a Job that gets them.
pub async fn dispatch(cli: Cli, typed: &[OsString]) -> Exit {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider is already installed");
    }
    if let Command::Node { command } = &cli.command {
        return node(command).await;
    }
    if let Command::Rehearse(args) = &cli.command {
        return rehearse(args);
    }
    let place = Place {
        namespace: cli.namespace.clone(),
        cluster: cli.cluster.clone(),
        operator_namespace: cli.operator_namespace.clone(),
        ceph_secret: cli.ceph_secret.clone(),
    };
    let k8s = match K8s::connect(place, None).await {
        Ok(k8s) => Arc::new(k8s),
        Err(error) => return not_seen(&kube_failure(error)),
    };
    // A person who mistyped the namespace gets no answer from an empty one, and writes nothing there.
    let as_job = AsJob::of(&cli.command);
    let is_of_ledger = matches!(
        cli.command,
        Command::Status(_)
            | Command::Pause
            | Command::Cancel
            | Command::Resume
            | Command::Retry { .. }
            | Command::Follow { .. }
    );
    if (is_of_ledger || as_job.is_some())
        && let Err(error) = k8s.find_cluster().await
    {
        return not_seen(&kube_failure(error));
    }
    if let Some(command) = as_job {
        return remote(k8s, command, typed).await;
    }
    let timeout = Duration::from_secs(cli.ceph_timeout);
    match cli.command {
        Command::Plan(args) => plan(k8s, timeout, &args).await,
        Command::Run(args) => run(k8s, timeout, args.policy()).await,
        Command::Provision(args) => run(k8s, timeout, args.policy()).await,
        Command::Status(args) => status(k8s, &args).await,
        Command::Pause => control(&k8s, Some(ControlKind::Pause)).await,
        Command::Cancel => control(&k8s, Some(ControlKind::Cancel)).await,
        Command::Resume => control(&k8s, None).await,
        Command::Retry { osds } => retry(k8s, &osds).await,
        Command::Follow { job } => follow(k8s, job).await,
        Command::Preflight => preflight(k8s, timeout).await,
        Command::Start { revision } => start(&k8s, revision).await,
        Command::Uninstall => uninstall(k8s, timeout).await,
        Command::Rehearse(_) | Command::Node { .. } => Exit::Finished,
    }
}
