//! `status`: the ledger, and what the present run says.

use std::sync::Arc;

use crate::cli::Output;
use crate::commands::print::print;
use crate::exit::{Exit, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, WallClock, kube_failure};
use crate::ports::{Clock, LedgerStore};
use crate::report::Said;
use crate::show::{self, Status};

/// Prints the state of the runs.
pub(super) async fn status(k8s: Arc<K8s>, output: Output) -> Exit {
    let ledger = match Ledgers(Arc::clone(&k8s)).load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    let doing = match k8s.read_status().await {
        Ok(doing) => doing,
        Err(error) => return not_seen(&kube_failure(error)),
    };
    let control = match k8s.read_control().await {
        Ok(control) => control,
        Err(error) => return not_seen(&kube_failure(error)),
    };
    let names = k8s.names();
    let own_pdb = match k8s.own_pdb().await {
        Ok(own) => own.is_some(),
        Err(error) => return not_seen(&kube_failure(error)),
    };
    let runner = match k8s.runner(WallClock.now()).await {
        Ok(runner) => runner,
        Err(error) => return not_seen(&kube_failure(error)),
    };
    let said: Option<Said> = doing.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let status = Status {
        names: &names,
        ledger: &ledger,
        control: control.as_ref(),
        own_pdb,
        runner: runner.as_ref(),
        said: said.as_ref(),
    };
    match output {
        Output::Table => print(&names.complete(&show::status_text(&status))),
        Output::Json => print(&names.complete(&format!("{:#}", show::status_json(&status)))),
    }
    Exit::Finished
}
