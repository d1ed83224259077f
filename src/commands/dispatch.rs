//! Passes the arguments to their command.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::{Cli, Command};
use crate::commands::control::control;
use crate::commands::explain::explain;
use crate::commands::fence::fence;
use crate::commands::keep::keep;
use crate::commands::node::node;
use crate::commands::pages::{complete, completion, man, version};
use crate::commands::plan::plan;
use crate::commands::preflight::preflight;
use crate::commands::rehearse::rehearse;
use crate::commands::remote::{AsJob, follow, remote};
use crate::commands::remove::remove;
use crate::commands::report::report;
use crate::commands::retry::retry;
use crate::commands::run::run;
use crate::commands::start::start;
use crate::commands::status::status;
use crate::commands::uninstall::uninstall;
use crate::domain::observation::ControlKind;
use crate::exit::{Exit, not_seen};
use crate::k8s::{Access, K8s, K8sError, Place};
use crate::live::kube_failure;

/// Namespace of Rook's own manifests and chart.
const ROOK_NAMESPACE: &str = "rook-ceph";

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
    if let Some(exit) = offline(&cli) {
        return exit;
    }
    let k8s = match connected(&cli).await {
        Ok(k8s) => Arc::new(k8s),
        Err(error) => return not_seen(&kube_failure(error)),
    };
    if let Some(command) = AsJob::of(&cli.command) {
        return remote(k8s, command, typed).await;
    }
    let timeout = Duration::from_secs(cli.ceph_timeout);
    match cli.command {
        Command::Plan(args) => plan(k8s, timeout, &args).await,
        Command::Run(args) => run(k8s, timeout, args.policy(), cli.telemetry).await,
        Command::Provision(args) => run(k8s, timeout, args.policy(), cli.telemetry).await,
        Command::Status(args) => status(k8s, &args).await,
        Command::Report(args) => report(k8s, args.output).await,
        Command::Pause => control(&k8s, Some(ControlKind::Pause)).await,
        Command::Cancel => control(&k8s, Some(ControlKind::Cancel)).await,
        Command::Resume => control(&k8s, None).await,
        Command::Retry { osds } => retry(k8s, &osds).await,
        Command::Remove(args) => remove(k8s, timeout, &args).await,
        Command::Keep(args) => keep(k8s, &args).await,
        Command::Fence { remove } => fence(k8s, timeout, remove, cli.telemetry.metrics_port).await,
        Command::Follow { job } => follow(k8s, job).await,
        Command::Preflight => preflight(k8s, timeout).await,
        Command::Start { revision } => start(&k8s, revision).await,
        Command::Uninstall => uninstall(k8s, timeout).await,
        Command::Rehearse(_)
        | Command::Explain { .. }
        | Command::Version
        | Command::Completion { .. }
        | Command::Complete { .. }
        | Command::Man { .. }
        | Command::Node { .. } => Exit::Finished,
    }
}

/// Does what needs no cluster; none if the command needs one.
fn offline(cli: &Cli) -> Option<Exit> {
    Some(match &cli.command {
        Command::Rehearse(args) => rehearse(args),
        Command::Explain { code } => explain(cli, code.as_deref()),
        Command::Version => version(),
        Command::Completion { shell } => completion(*shell),
        Command::Complete { words } => complete(words),
        Command::Man { folder } => man(folder),
        Command::Plan(_)
        | Command::Run(_)
        | Command::Follow { .. }
        | Command::Provision(_)
        | Command::Status(_)
        | Command::Report(_)
        | Command::Pause
        | Command::Cancel
        | Command::Resume
        | Command::Retry { .. }
        | Command::Remove(_)
        | Command::Keep(_)
        | Command::Fence { .. }
        | Command::Preflight
        | Command::Start { .. }
        | Command::Uninstall
        | Command::Node { .. } => return None,
    })
}

/// Opens the API, in the namespace of the CephCluster.
async fn connected(cli: &Cli) -> Result<K8s, K8sError> {
    let named = cli.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let access = Access { kubeconfig: cli.kubeconfig.clone(), context: cli.context.clone() };
    let place = Place {
        namespace: named.unwrap_or(ROOK_NAMESPACE).to_owned(),
        cluster: cli.cluster.clone(),
        operator_namespace: cli.operator_namespace.clone(),
        ceph_secret: cli.ceph_secret.clone(),
        access: access.options(),
    };
    let mut k8s = K8s::connect(place, &access).await?;
    if named.is_none() {
        k8s.locate().await?;
        return Ok(k8s);
    }
    // A person who mistyped the namespace gets no answer from an empty one, and writes nothing there.
    let is_of_ledger = matches!(
        cli.command,
        Command::Status(_)
            | Command::Report(_)
            | Command::Pause
            | Command::Cancel
            | Command::Resume
            | Command::Retry { .. }
            | Command::Keep(_)
            | Command::Follow { .. }
    );
    // In a pod, the first observation finds it, without another request.
    if is_of_ledger || AsJob::of(&cli.command).is_some() {
        k8s.find_cluster().await?;
    }
    Ok(k8s)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use clap::Parser;

    use super::*;

    /// Runs a command with a kubeconfig whose server is at this port.
    async fn exit(port: u16, args: &[&str]) -> Exit {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let config = format!(
            "clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}'}}}}]\n\
             contexts: [{{name: lab, context: {{cluster: c}}}}]\ncurrent-context: lab\n"
        );
        std::fs::write(&file, config).unwrap();
        let program = ["osd-migrate", "--kubeconfig", file.to_str().unwrap()];
        let typed: Vec<OsString> = args.iter().map(OsString::from).collect();
        dispatch(Cli::try_parse_from(program.iter().chain(args)).unwrap(), &typed).await
    }

    #[tokio::test]
    async fn unreachable_server_and_wrong_context_have_their_exit_codes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        for command in ["status", "pause", "plan", "preflight"] {
            assert_eq!(exit(port, &["-n", "rook-ceph", command]).await, Exit::TryAgain, "{command}");
            assert_eq!(exit(port, &[command]).await, Exit::TryAgain, "{command} without -n");
            assert_eq!(exit(port, &["--context", "prod", command]).await, Exit::WrongUsage, "{command}");
        }
    }
}
