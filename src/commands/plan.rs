//! `plan`: what a run would do, with an inventory of the nodes or without.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::cli::{PlanArgs, PlanOutput};
use crate::commands::approve::{approved_or_none, store};
use crate::commands::inventories::Inventories;
use crate::commands::plan_removal::plan_removal;
use crate::commands::pod::{of_environment, own};
use crate::commands::print::print;
use crate::commands::rate::rate;
use crate::commands::terminal::width;
use crate::domain::batch;
use crate::domain::drift::{self, Finding};
use crate::domain::gate::{self, Own};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::osd::OsdId;
use crate::domain::plan;
use crate::domain::policy::Policy;
use crate::domain::preview;
use crate::domain::view::View;
use crate::exit::{Exit, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::layout::fitted;
use crate::live::{Ledgers, Live};
use crate::ports::{Cluster, Failure, LedgerStore};
use crate::show::{self, Plan, PlanDetail};

/// Prints what a run would do.
pub(super) async fn plan(k8s: Arc<K8s>, timeout: Duration, args: &PlanArgs) -> Exit {
    let live = Live::new(Arc::clone(&k8s), timeout);
    if !args.remove.is_empty() || args.remove_node.is_some() {
        return plan_removal(live, &k8s, args).await;
    }
    if args.inventory { plan_with_inventory(live, k8s, args).await } else { plan_only(live, k8s, args).await }
}

async fn plan_only(mut live: Live, k8s: Arc<K8s>, args: &PlanArgs) -> Exit {
    let policy = match approved_or_none(&k8s, of_environment(args.run.policy())).await {
        Ok(policy) => policy,
        Err(exit) => return exit,
    };
    print_plan(&mut live, k8s, &policy, args.output, args.all)
        .await
        .map_or_else(|exit| exit, |()| Exit::Finished)
}

/// Prints the plan after an inventory of all nodes at once, then deletes the inventory Jobs.
///
/// A node that does not answer in time hides the disks of no other: the exit code reports it.
async fn plan_with_inventory(live: Live, k8s: Arc<K8s>, args: &PlanArgs) -> Exit {
    let own = match own(&k8s).await {
        Ok(own) => Arc::new(own),
        Err(failure) => return not_seen(&failure),
    };
    let policy =
        Policy { run: format!("{}{}", plan::OF_PLAN, own.pod_uid), ..of_environment(args.run.policy()) };
    let policy = match approved_or_none(&k8s, policy).await {
        Ok(policy) => policy,
        Err(exit) => return exit,
    };
    let mut live = live.acting_as(own);
    let mut inventories = Inventories { policy: &policy, live: &mut live, k8s: Arc::clone(&k8s) };
    let exit = match inventories.ask().await {
        Ok(silent) => {
            let printed =
                print_plan(inventories.live, Arc::clone(&k8s), &policy, args.output, args.all).await;
            printed.map_or_else(|exit| exit, |()| silent.as_ref().map_or(Exit::Finished, of_silent))
        }
        Err(failure) => not_seen(&failure),
    };
    match inventories.clean_up().await {
        Ok(()) => exit,
        Err(failure) => not_seen(&failure),
    }
}

/// Reports the nodes that did not answer, for a plan that was printed: another pod would print it again.
fn of_silent(failure: &Failure) -> Exit {
    not_seen(failure);
    Exit::SomeQuarantined
}

async fn print_plan(
    live: &mut Live,
    k8s: Arc<K8s>,
    policy: &Policy,
    output: PlanOutput,
    all: bool,
) -> Result<(), Exit> {
    let (text, _) = planned(live, k8s, policy, output, all).await?;
    print(&text)
}

/// Returns what a run would do, and the drift findings for callers that also report them elsewhere.
pub(super) async fn planned(
    live: &mut Live,
    k8s: Arc<K8s>,
    policy: &Policy,
    output: PlanOutput,
    all: bool,
) -> Result<(String, Vec<Finding>), Exit> {
    let (ledger, _) = Ledgers::new(Arc::clone(&k8s)).load().await.map_err(|error| not_loaded(&error))?;
    let observed =
        live.observe(&BTreeSet::new(), |seen| questions(View { policy, ledger: &ledger, seen })).await;
    let seen = observed.map_err(|failure| not_seen(&failure))?;
    let lines = if policy.only_new { Vec::new() } else { preview::lines(policy, &ledger, &seen) };
    let devices = proven_devices(&ledger);
    let disks = if policy.makes_new() { plan::disks(policy, &ledger, &seen) } else { plan::Disks::default() };
    let view = View { policy, ledger: &ledger, seen: &seen };
    let places = if policy.makes_new() { plan::places(view) } else { Vec::new() };
    let keys = live.keys().await.map_err(|failure| not_seen(&failure))?;
    let drift = drift::find(&ledger, &seen, &keys);
    let names = k8s.names();
    let hash = store(&k8s, &preview::plan_lines(&lines, (&disks, &places), view)).await;
    let plan = Plan {
        lines: &lines,
        devices: &devices,
        disks: &disks,
        places: &places,
        rate: rate(&k8s).await,
        hash: hash.as_ref(),
        unmatched: &plan::unmatched(view),
    };
    let document = || {
        let mut plan = show::plan_json(&plan);
        if let Some(plan) = plan.as_object_mut() {
            plan.insert("drift".to_owned(), show::drift_json(&drift));
            plan.insert("pgsPerOsd".to_owned(), show::pgs_json(&seen.ceph));
            plan.insert("fencedSince".to_owned(), show::fenced_since(&ledger).into());
            plan.insert("beforeAnEdit".to_owned(), show::before_an_edit(&seen).into());
            plan.insert("nothingDeclared".to_owned(), show::nothing_declared(&seen).into());
            plan.insert("windows".to_owned(), show::windows_json(&policy.windows, seen.at));
            plan.insert("inParallel".to_owned(), show::in_parallel_json(policy.in_parallel));
            plan.insert("mostInParallel".to_owned(), batch::most(view).into());
        }
        plan
    };
    let text = match output {
        PlanOutput::Table | PlanOutput::Wide => {
            let detail = PlanDetail { all, wide: output == PlanOutput::Wide, width: width() };
            let plan = show::plan_text(&plan, detail);
            let windows = show::windows_text(&policy.windows, seen.at);
            let in_parallel = show::in_parallel_text(policy.in_parallel, batch::most(view));
            let fenced = show::fence_text(&ledger, seen.at);
            let remarks = [
                show::before_an_edit(&seen),
                show::nothing_declared(&seen),
                show::pgs_text(&seen.ceph),
                show::drift_text(&drift),
            ];
            let parts = [Some(plan), windows, in_parallel, fenced].into_iter().chain(remarks);
            let parts: Vec<_> = parts.flatten().collect();
            fitted(&names.complete(&parts.join("\n")), detail.width)
        }
        PlanOutput::Json => names.complete(&format!("{:#}", document())),
        PlanOutput::Yaml => names.complete(&show::yaml(&document())),
        PlanOutput::Name => show::plan_names(&plan),
    };
    Ok((text, drift))
}

/// Returns the questions of a run, and that about the OSD that is emptied next, even if no run may begin now.
fn questions(view: View<'_>) -> plan::Questions {
    let asked = plan::questions(view.policy, view.ledger, view.seen);
    let next = || {
        let is_idle = view.ledger.in_flight().next().is_none() && !view.policy.only_new;
        let own = Own::of(&gate::accepted(view), view.seen);
        is_idle.then(|| plan::first_to_be_emptied(&own, view)).flatten()
    };
    let emptiable = asked.emptiable.or_else(next);
    plan::Questions { emptiable, ..asked }
}

/// Returns the stable names of devices that an inspection has proven.
fn proven_devices(ledger: &Ledger) -> BTreeMap<OsdId, String> {
    let is_on_disk = |record: &&Record| record.removed_directory().is_none();
    let name = |record: &Record| Some((record.osd, record.evidence.as_ref()?.device.stable_name()));
    ledger.records.values().filter(is_on_disk).filter_map(name).collect()
}
