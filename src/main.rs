//! Arguments, logs, exit code. Nothing is decided here.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use osd_migrate::cli::{Cli, Command};
use osd_migrate::commands::dispatch;
use osd_migrate::exit::Exit;
use osd_migrate::node;

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
    // kube's client logs each failed request by itself, without its cause: the error that is returned has it.
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        tracing_subscriber::EnvFilter::new("osd_migrate=info,kube_client::client::builder=off,warn")
    });
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
