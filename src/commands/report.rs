//! `report`: what was done to each OSD, from the history, the ledger and the status.

use std::sync::Arc;

use crate::cli::ReportOutput;
use crate::commands::print::print;
use crate::commands::terminal::width;
use crate::domain::history::{self, Account, Courses};
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, WallClock, kube_failure};
use crate::ports::{Clock, LedgerStore};
use crate::report::Said;
use crate::show::{self, Report};

/// Columns of the text if it goes to a file or to another program.
const WIDTH: u16 = 120;

/// Prints the report.
pub(super) async fn report(k8s: Arc<K8s>, output: ReportOutput) -> Exit {
    // The history is read last: a record that is closed meanwhile is in the history then.
    let (ledger, _) = match Ledgers::new(Arc::clone(&k8s)).load().await {
        Ok(loaded) => loaded,
        Err(error) => return not_loaded(&error),
    };
    let (status, lines) = match (k8s.read_status().await, k8s.read_history().await) {
        (Ok(status), Ok(lines)) => (status, lines),
        (Err(error), _) | (_, Err(error)) => return not_seen(&kube_failure(error)),
    };
    let stored = status.and_then(|text| serde_json::from_str::<Said>(&text).ok());
    let stored = stored.and_then(|said| said.history);
    let (courses, unwritten) =
        stored.map_or((Courses::default(), Vec::new()), |run| (run.courses, run.unwritten));
    let read: Vec<_> = lines.iter().map(|text| history::read(text)).collect();
    let unread = read.iter().map(|(_, unread)| unread).sum();
    let entries = read.into_iter().flat_map(|(entries, _)| entries).chain(unwritten).collect();
    let (now, names) = (WallClock.now(), k8s.names());
    let account = Account::of(entries, &ledger, &courses, now);
    let report = Report { names: &names, account: &account, unread, now };
    let columns = width().known().unwrap_or(WIDTH);
    let printed = match output {
        ReportOutput::Text => print(&show::report_text(&report, columns)),
        ReportOutput::Json => print(&format!("{:#}", show::report_json(&report))),
        ReportOutput::Html => match show::report_html(&report) {
            Ok(page) => print(&page),
            Err(error) => return failed(&format!("the page could not be created: {error}"), Exit::TryAgain),
        },
    };
    printed.map_or_else(|exit| exit, |()| Exit::Finished)
}
