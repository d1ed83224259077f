//! Arguments, logs, exit code. Nothing is decided here.

use std::process::ExitCode;
use std::time::Duration;

use osd_migrate::cli::{LogFormat, parse};
use osd_migrate::commands::{as_shim, columns, dispatch, ends_itself, interrupted, is_coloured, written};
use osd_migrate::exit::Exit;
use osd_migrate::telemetry::start_logging;

fn main() -> ExitCode {
    // Called under the name of a tool that ceph-volume calls, this program is the shim for that tool.
    if let Some(exit) = as_shim(std::env::args_os()) {
        return exit;
    }
    let arguments: Vec<_> = std::env::args_os().collect();
    let cli = match parse(&arguments, columns()) {
        Ok(cli) => cli,
        Err(text) => {
            start_logging(LogFormat::Text, is_coloured());
            return explained(&text).into();
        }
    };
    start_logging(cli.telemetry.log_format, is_coloured());
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
