//! `status`: the ledger, and what the present run says.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::{StatusArgs, StatusOutput};
use crate::commands::interrupted::interrupted;
use crate::commands::print::{closed, print};
use crate::commands::terminal::width;
use crate::exit::{Exit, not_loaded, not_seen};
use crate::k8s::{K8s, K8sError};
use crate::layout::fitted;
use crate::live::{Ledgers, WallClock, kube_failure, pause};
use crate::ports::{Clock, LedgerStore};
use crate::report::Said;
use crate::show::{self, Status, StoredRequests};

/// Pause between two reads of `--watch`: the status itself is written every ten seconds.
const PAUSE: Duration = Duration::from_secs(2);

/// Number of pauses between two lines without a terminal: a minute.
const PAUSES_A_LINE: u32 = 30;

/// What `status` reads besides the ledger.
struct Read {
    said: Option<Said>,
    control: Option<crate::domain::observation::Control>,
    own_pdb: bool,
    runner: Option<crate::domain::observation::Runner>,
    requests: StoredRequests,
}

/// Status as text, and the bytes of the run.
struct Shown {
    text: String,
    moved: Option<Moved>,
}

/// Bytes that the backfills of a run moved, and that they move in all.
#[derive(Clone, Copy)]
struct Moved {
    bytes: u64,
    of: u64,
}

impl Moved {
    /// Returns the bytes of the last run; none if it has nothing to move.
    fn of(said: Option<&Said>, now: DateTime<Utc>) -> Option<Self> {
        let progress = said?.pace.as_ref()?.progress(now);
        let of = progress.moved_bytes + progress.left_bytes;
        (of > 0).then_some(Self { bytes: progress.moved_bytes, of })
    }
}

/// Prints the state of the runs, once or until a person interrupts.
pub(super) async fn status(k8s: Arc<K8s>, args: &StatusArgs) -> Exit {
    if args.watch {
        return tokio::select! {
            exit = watch(&k8s) => exit,
            () = interrupted() => Exit::Finished,
            () = closed() => Exit::Unread,
        };
    }
    match shown(&k8s, args.output).await {
        Ok(shown) => print(&shown.text).map_or_else(|exit| exit, |()| Exit::Finished),
        Err(exit) => exit,
    }
}

/// Shows the status again and again.
///
/// An error is shown in its place: the next read may succeed.
async fn watch(k8s: &Arc<K8s>) -> Exit {
    let screen = std::io::stdout().is_terminal().then(screen);
    let (mut last, mut printed, mut pauses) = (String::new(), String::new(), 0);
    loop {
        let Shown { text, moved } = match shown(k8s, StatusOutput::Table).await {
            Ok(shown) => {
                last.clone_from(&shown.text);
                shown
            }
            Err(exit) if last.is_empty() => return exit,
            Err(_) => Shown {
                text: format!("{last}\n(it cannot be read at the moment; trying again)"),
                moved: None,
            },
        };
        match &screen {
            Some(screen) => draw(screen, &text, moved),
            None if pauses == 0 && text != printed => {
                if let Err(exit) = print(&text) {
                    return exit;
                }
                printed = text;
            }
            None => {}
        }
        pauses = (pauses + 1) % PAUSES_A_LINE;
        pause(PAUSE).await;
    }
}

/// Returns a place on the terminal for a text that changes.
fn screen() -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout())
}

/// Draws the status, and a bar below it if the bytes of a run are known.
fn draw(screen: &ProgressBar, text: &str, moved: Option<Moved>) {
    let template = if moved.is_some() { "{msg}\n[{wide_bar}] {percent} %" } else { "{msg}" };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    screen.set_style(style.progress_chars("=> "));
    if let Some(Moved { bytes, of }) = moved {
        screen.set_length(of);
        screen.set_position(bytes);
    }
    screen.set_message(text.to_owned());
    screen.tick();
}

/// Returns the status in a format.
async fn shown(k8s: &Arc<K8s>, output: StatusOutput) -> Result<Shown, Exit> {
    let (ledger, _) = Ledgers::new(Arc::clone(k8s)).load().await.map_err(|error| not_loaded(&error))?;
    let read = read(k8s).await.map_err(|error| not_seen(&kube_failure(error)))?;
    let (names, now) = (k8s.names(), WallClock.now());
    let status = Status {
        names: &names,
        ledger: &ledger,
        control: read.control.as_ref(),
        own_pdb: read.own_pdb,
        runner: read.runner.as_ref(),
        requests: Some(&read.requests),
        said: read.said.as_ref(),
        now,
    };
    let (width, plain) = (width(), names.without_access());
    let text = match output {
        StatusOutput::Table => fitted(&names.complete(&show::status_text(&status, width)), width),
        StatusOutput::Json => plain.complete(&format!("{:#}", show::status_json(&status))),
        StatusOutput::Yaml => plain.complete(&show::yaml(&show::status_json(&status))),
    };
    Ok(Shown { text, moved: Moved::of(read.said.as_ref(), now) })
}

async fn read(k8s: &K8s) -> Result<Read, K8sError> {
    let said = k8s.read_status().await?;
    Ok(Read {
        said: said.as_deref().and_then(|text| serde_json::from_str(text).ok()),
        control: k8s.read_control().await?,
        own_pdb: k8s.own_pdb().await?.is_some(),
        runner: k8s.runner(WallClock.now()).await?,
        requests: requests(k8s).await?,
    })
}

/// Reads the requests to remove OSDs, and the fsids that tell whether one is void.
async fn requests(k8s: &K8s) -> Result<StoredRequests, K8sError> {
    let requests = k8s.read_requests().await?;
    if requests.removals.is_empty() {
        return Ok(StoredRequests { requests, ..StoredRequests::default() });
    }
    // A person who may not list the Deployments sees the requests all the same.
    let osds = requests.removals.keys().copied().collect();
    let deployed = k8s.deployed_fsids(&osds).await.unwrap_or_default();
    Ok(StoredRequests { requests, deployed })
}
