//! Arguments, logs, exit code. Nothing is decided here.

use std::process::ExitCode;
use std::time::Duration;

use osd_migrate::cli::parse;
use osd_migrate::commands::{columns, dispatch, ends_itself, interrupted, is_coloured, written};
use osd_migrate::exit::Exit;
use osd_migrate::node;

fn main() -> ExitCode {
    // Called under the name of a tool that ceph-volume calls, this program is the shim for that tool.
    if std::env::args_os().next().is_some_and(|name| node::shim::is_called_as(&name)) {
        return node::shim::main(std::env::args_os());
    }
    let arguments: Vec<_> = std::env::args_os().collect();
    start_logging();
    let cli = match parse(&arguments, columns()) {
        Ok(cli) => cli,
        Err(text) => return explained(&text).into(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!("the async runtime could not be started: {error}");
            return Exit::TryAgain.into();
        }
    };
    let ends_itself = ends_itself(&cli.command);
    let exit = runtime.block_on(async {
        tokio::select! {
            exit = dispatch(cli, arguments.get(1..).unwrap_or_default()) => exit,
            () = interrupted(), if !ends_itself => {
                tracing::warn!("interrupted: the next run completes what is in progress");
                Exit::Interrupted
            }
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
    exit.into()
}

/// Prints help, the version, or what is wrong with the arguments.
fn explained(text: &clap::Error) -> Exit {
    let printed = written(text.print());
    if text.use_stderr() { Exit::WrongUsage } else { printed.map_or_else(|exit| exit, |()| Exit::Finished) }
}

fn start_logging() {
    // kube's client logs each failed request by itself, without its cause: the error that is returned has it.
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        tracing_subscriber::EnvFilter::new("osd_migrate=info,kube_client::client::builder=off,warn")
    });
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured())
        .with_target(false)
        .init();
}
