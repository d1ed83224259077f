//! Arguments, logs, ports, dispatch, exit code. Nothing is decided here.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use osd_migrate::cli::{Cli, Command, NodeCommand, Output, PlanArgs, RehearseArgs};
use osd_migrate::domain::commands;
use osd_migrate::domain::drift::{self, Finding};
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::observation::ControlKind;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::Policy;
use osd_migrate::domain::preview;
use osd_migrate::event_reporter::EventReporter;
use osd_migrate::exit::{Exit, ended, failed, not_loaded, not_seen};
use osd_migrate::hooks;
use osd_migrate::inventories::Inventories;
use osd_migrate::k8s::{K8s, Own, Place, PodEnv};
use osd_migrate::live::{Ledgers, Live, PodLease, WallClock, kube_failure};
use osd_migrate::node;
use osd_migrate::ports::{Clock, Cluster, Failure, LedgerStore};
use osd_migrate::rehearse;
use osd_migrate::report::Said;
use osd_migrate::run::{End, Ports};
use osd_migrate::serve;
use osd_migrate::show::{self, Status};
use osd_migrate::sim::schedule::BACKFILL_RATE;

fn main() -> ExitCode {
    // Called under the name of a tool that ceph-volume calls, this program is the shim for that tool.
    if std::env::args_os().next().is_some_and(|name| node::shim::is_called_as(&name)) {
        return node::shim::main(std::env::args_os());
    }
    let cli = Cli::parse();
    start_logging();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!("the async runtime could not be started: {error}");
            return Exit::TryAgain.into();
        }
    };
    // An agent that is interrupted ends its task first: an unfinished task would only have to be repeated.
    let on_a_node = matches!(cli.command, Command::Node { .. });
    let exit = runtime.block_on(async {
        tokio::select! {
            exit = dispatch(cli) => exit,
            () = interrupted(), if !on_a_node => {
                tracing::warn!("interrupted: the next run completes what is in progress");
                Exit::Interrupted
            }
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
    exit.into()
}

fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("osd_migrate=info,warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// Waits for SIGTERM or SIGINT. As pid 1 of a container the program would ignore SIGTERM without this
/// handler.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}

async fn dispatch(cli: Cli) -> Exit {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider is already installed");
    }
    if let Command::Node { command } = &cli.command {
        return match command {
            NodeCommand::Install { folder } => told(node::install(folder).map(drop)),
            NodeCommand::Agent => told(serve::serve(environment).await),
            NodeCommand::Inventory => told(serve::inventory(environment).await),
        };
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
        Err(error) => return failed(&error.to_string(), Exit::Halted),
    };
    let timeout = Duration::from_secs(cli.ceph_timeout);
    match cli.command {
        Command::Plan(args) => {
            let live = Live::new(Arc::clone(&k8s), timeout);
            if args.inventory {
                plan_with_inventory(live, k8s, &args).await
            } else {
                plan_only(live, k8s, &args).await
            }
        }
        Command::Run(args) => run(k8s, timeout, args.policy()).await,
        Command::Provision(args) => run(k8s, timeout, args.policy()).await,
        Command::Status(args) => print_status(k8s, args.output).await,
        Command::Pause => control(&k8s, Some(ControlKind::Pause)).await,
        Command::Cancel => control(&k8s, Some(ControlKind::Cancel)).await,
        Command::Resume => control(&k8s, None).await,
        Command::Retry { osd } => retry(k8s, osd).await,
        Command::Preflight => hooks::preflight(k8s, timeout, print).await,
        Command::Start { revision } => hooks::start(&k8s, revision).await,
        Command::Uninstall => match own(&k8s).await {
            Ok(own) => hooks::uninstall(k8s, timeout, own).await,
            Err(failure) => not_seen(&failure),
        },
        Command::Rehearse(_) | Command::Node { .. } => Exit::Finished,
    }
}

/// Returns this pod and its Job: the runner works only as one.
async fn own(k8s: &K8s) -> Result<Own, Failure> {
    #[cfg(feature = "failpoint")]
    if let Some(own) = osd_migrate::failpoint::own() {
        return Ok(own);
    }
    let env = PodEnv::read(environment).map_err(kube_failure)?;
    k8s.whoami(&env).await.map_err(kube_failure)
}

fn told(result: Result<(), impl std::fmt::Display>) -> Exit {
    match result {
        Ok(()) => Exit::Finished,
        Err(why) => failed(&why.to_string(), Exit::TryAgain),
    }
}

/// Reads the pod's environment: the request and the downward API.
#[expect(
    clippy::disallowed_methods,
    reason = "a pod is told who it is and what to do through its environment"
)]
fn environment(key: &str) -> Option<String> {
    std::env::var(key).ok()
}

/// Prints data to stdout. A reader that closed the pipe is no error of this program.
fn print(text: &str) {
    let _gone = writeln!(std::io::stdout().lock(), "{text}").is_err();
}

async fn plan_only(mut live: Live, k8s: Arc<K8s>, args: &PlanArgs) -> Exit {
    let policy = of_environment(args.run.policy());
    print_plan(&mut live, k8s, &policy, args.output).await.map_or_else(|exit| exit, |_| Exit::Finished)
}

/// Prints the plan after an inventory of all nodes at once, then deletes the inventory Jobs.
async fn plan_with_inventory(live: Live, k8s: Arc<K8s>, args: &PlanArgs) -> Exit {
    let own = match own(&k8s).await {
        Ok(own) => Arc::new(own),
        Err(failure) => return not_seen(&failure),
    };
    let policy =
        Policy { run: format!("{}{}", plan::OF_PLAN, own.pod_uid), ..of_environment(args.run.policy()) };
    let mut live = live.acting_as(own);
    let mut inventories = Inventories { policy: &policy, live: &mut live, k8s: Arc::clone(&k8s) };
    let exit = match inventories.ask().await {
        Ok(()) => {
            let printed = print_plan(inventories.live, Arc::clone(&k8s), &policy, args.output).await;
            printed.map_or_else(|exit| exit, |_| Exit::Finished)
        }
        Err(failure) => not_seen(&failure),
    };
    match inventories.clean_up().await {
        Ok(()) => exit,
        Err(failure) => not_seen(&failure),
    }
}

/// Adds the settings of the pod's environment to those of the arguments.
fn of_environment(policy: Policy) -> Policy {
    let is_set = |key| environment(key).is_some_and(|value| !value.is_empty());
    Policy { store_on_file: is_set("TEST_ENVIRONMENT_OSD_STORE_ON_FILE"), ..policy }
}

/// Prints what a run would do, and returns the drift findings for callers that also report them elsewhere.
async fn print_plan(
    live: &mut Live,
    k8s: Arc<K8s>,
    policy: &Policy,
    output: Output,
) -> Result<Vec<Finding>, Exit> {
    let (ledger, _) = Ledgers(Arc::clone(&k8s)).load().await.map_err(|error| not_loaded(&error))?;
    let observed = live.observe(|seen| plan::questions(policy, &ledger, seen)).await;
    let seen = observed.map_err(|failure| not_seen(&failure))?;
    let lines = if policy.only_new { Vec::new() } else { preview::lines(policy, &ledger, &seen) };
    let devices = proven_devices(&ledger);
    let disks = if policy.makes_new() { plan::disks(policy, &ledger, &seen) } else { plan::Disks::default() };
    let keys = live.keys().await.map_err(|failure| not_seen(&failure))?;
    let drift = drift::find(&ledger, &seen, &keys);
    let names = k8s.names();
    match output {
        Output::Table => {
            print(&names.complete(&show::plan_table(&lines, &devices, &disks)));
            if let Some(text) = show::drift_text(&drift) {
                print(&names.complete(&text));
            }
        }
        Output::Json => {
            let mut plan = show::plan_json(&lines, &devices, &disks);
            if let Some(plan) = plan.as_object_mut() {
                plan.insert("drift".to_owned(), show::drift_json(&drift));
            }
            print(&names.complete(&format!("{plan:#}")));
        }
    }
    Ok(drift)
}

/// Returns the stable names of devices that an inspection has proven.
fn proven_devices(ledger: &Ledger) -> BTreeMap<OsdId, String> {
    let name = |record: &osd_migrate::domain::ledger::Record| {
        Some((record.osd, record.evidence.as_ref()?.device.stable_name()))
    };
    ledger.records.values().filter_map(name).collect()
}

async fn run(k8s: Arc<K8s>, timeout: Duration, policy: Policy) -> Exit {
    let policy = of_environment(policy);
    let mut live = Live::new(Arc::clone(&k8s), timeout);
    // A failure here may pass: the run observes again and again, and knows whether a stopped OSD must not be
    // left.
    let drift = print_plan(&mut live, Arc::clone(&k8s), &policy, Output::Table).await.unwrap_or_default();
    let own = match own(&k8s).await {
        Ok(own) => Arc::new(own),
        Err(failure) => return not_seen(&failure),
    };
    let only_new = policy.only_new;
    let policy = Policy { run: own.job_uid.clone(), failed_pods: own.failed_pods, ..policy };
    let mut ports = Ports {
        cluster: live.acting_as(Arc::clone(&own)),
        store: Ledgers(Arc::clone(&k8s)),
        lease: PodLease::new(Arc::clone(&k8s), Some(&own)),
        clock: WallClock,
        audience: EventReporter::new(Arc::clone(&k8s), Some(&own)),
    };
    ports.audience.drift(&drift).await;
    let end = ports.run(&policy).await;
    // At debug level only: the last visible line is the result of the run.
    tracing::debug!(
        "sent {} commands to Ceph and {} requests to the API server; {} KiB of memory at most",
        ports.cluster.commands_sent(),
        k8s.requests(),
        peak_memory_kib()
    );
    match end {
        // A scheduled run only reports what it may not fix: that is not a failure.
        Ok(End::Finished(summary)) if own.scheduled && summary.needs_only_confirmation() => Exit::Finished,
        Ok(End::Finished(summary)) if only_new && !summary.unconfirmed_nodes.is_empty() => Exit::Refused,
        end => ended(end, &policy),
    }
}

fn rehearse(args: &RehearseArgs) -> Exit {
    let rehearsal = rehearse::rehearse(args.seed, &args.fault, BACKFILL_RATE);
    match args.output {
        Output::Table => print(&rehearse::text(&rehearsal, args.detail())),
        Output::Json => print(&format!("{:#}", rehearse::json(&rehearsal))),
    }
    rehearsal.end.map_or(Exit::Halted, |end| ended(end, &Policy::default()))
}

/// Returns `VmHWM` of this process.
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

async fn print_status(k8s: Arc<K8s>, output: Output) -> Exit {
    let ledger = match Ledgers(Arc::clone(&k8s)).load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    let doing = match k8s.read_status().await {
        Ok(doing) => doing,
        Err(error) => return failed(&error.to_string(), Exit::TryAgain),
    };
    let control = match k8s.read_control().await {
        Ok(control) => control,
        Err(error) => return failed(&error.to_string(), Exit::TryAgain),
    };
    let names = k8s.names();
    let own_pdb = match k8s.own_pdb().await {
        Ok(own) => own.is_some(),
        Err(error) => return failed(&error.to_string(), Exit::TryAgain),
    };
    let said: Option<Said> = doing.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let status = Status { ledger: &ledger, control: control.as_ref(), own_pdb, said: said.as_ref() };
    match output {
        Output::Table => print(&names.complete(&show::status_text(&status))),
        Output::Json => print(&names.complete(&format!("{:#}", show::status_json(&status)))),
    }
    Exit::Finished
}

/// Writes a pause or a cancel, or removes both.
async fn control(k8s: &K8s, kind: Option<ControlKind>) -> Exit {
    let standing = match k8s.read_control().await {
        Ok(control) => control.map(|control| control.kind),
        Err(error) => return not_seen(&kube_failure(error)),
    };
    // An unchanged control keeps its time, and a pause must not resume a cancelled run.
    let is_less = (standing, kind) == (Some(ControlKind::Cancel), Some(ControlKind::Pause));
    if standing != kind
        && !is_less
        && let Err(error) = k8s.write_control(kind, WallClock.now()).await
    {
        return not_seen(&kube_failure(error));
    }
    tracing::info!("{}", k8s.names().complete(show::control_changed(standing, kind)));
    Exit::Finished
}

async fn retry(k8s: Arc<K8s>, osd: OsdId) -> Exit {
    let names = k8s.names();
    let mut store = Ledgers(k8s);
    let (ledger, version) = match store.load().await {
        Ok(loaded) => loaded,
        Err(error) => return not_loaded(&error),
    };
    let Some(ledger) = ledger.retried(osd) else {
        let why = format!("{osd} is not quarantined. See: osd-migrate -n {} status", names.namespace);
        return failed(&why, Exit::Refused);
    };
    match store.save(&ledger, version).await {
        Ok(osd_migrate::ports::Saved::Stored) => {
            tracing::info!(
                "the next run tries {osd} again. Start it: {}",
                names.complete(commands::RUN_AGAIN)
            );
            Exit::Finished
        }
        Ok(osd_migrate::ports::Saved::Conflict) => {
            let again = names.complete(&commands::retry(osd));
            failed(&format!("a run wrote the ledger at the same time. Try again: {again}"), Exit::TryAgain)
        }
        Err(failure) => not_seen(&failure),
    }
}
