//! `plan --remove` and `plan --remove-node`: the forecast of a removal. They only read.

use std::collections::BTreeSet;

use crate::cli::{PlanArgs, PlanOutput};
use crate::commands::print::print;
use crate::commands::rate::rate;
use crate::commands::terminal::width;
use crate::domain::forecast::forecast;
use crate::domain::node_osds;
use crate::domain::observation::Observation;
use crate::domain::osd::{NodeName, OsdId, OsdRange};
use crate::domain::plan::Questions;
use crate::exit::{Exit, failed, not_seen};
use crate::k8s::K8s;
use crate::layout::fitted;
use crate::live::Live;
use crate::ports::Cluster;
use crate::show::{self, Removal};

/// Prints what a removal of OSDs would move.
///
/// The exit code says whether each PG and each byte finds a place.
pub(super) async fn plan_removal(mut live: Live, k8s: &K8s, args: &PlanArgs) -> Exit {
    let seen = match live.observe(&BTreeSet::new(), |_| Questions::default()).await {
        Ok(seen) => seen,
        Err(failure) => return not_seen(&failure),
    };
    let without = match removed(args, &seen) {
        Ok(osds) => osds,
        Err(why) => return failed(&k8s.names().complete(&why), Exit::Refused),
    };
    let (placement, space) = match live.forecast(&without).await {
        Ok(found) => found,
        Err(failure) => return not_seen(&failure),
    };
    let forecast = forecast(&placement, &space, &seen.ceph);
    let removal =
        Removal { forecast: &forecast, placement: &placement, ceph: &seen.ceph, rate: rate(k8s).await };
    let names = k8s.names();
    let text = match args.output {
        PlanOutput::Table | PlanOutput::Wide => {
            fitted(&names.complete(&show::removal_text(&removal, args.all, width())), width())
        }
        PlanOutput::Json => format!("{:#}", show::removal_json(&removal)),
        PlanOutput::Yaml => show::yaml(&show::removal_json(&removal)),
        PlanOutput::Name => forecast.osds.keys().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    };
    let exit = if forecast.obstacles.is_empty() { Exit::Finished } else { Exit::Refused };
    print(&text).map_or_else(|exit| exit, |()| exit)
}

/// Returns the OSDs to remove; the error is a sentence about an OSD or a node that does not exist.
fn removed(args: &PlanArgs, seen: &Observation) -> Result<BTreeSet<OsdId>, String> {
    if let Some(node) = &args.remove_node {
        return node_osds::on(&NodeName(node.clone()), seen).map(|found| found.osds);
    }
    let osds: BTreeSet<OsdId> = args.remove.iter().flat_map(OsdRange::osds).collect();
    match osds.iter().find(|osd| !seen.ceph.slots.contains_key(osd)) {
        Some(osd) => Err(format!("{osd} does not exist. See: ceph osd tree")),
        None => Ok(osds),
    }
}
