//! `ceph osd crush dump`: the location of each OSD with its exact weight and class, and the failure domain of
//! each rule. (`osd tree` rounds weights; `osd crush rule dump` is a part of this command.)

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::ceph::command::Command;
use crate::domain::osd::{CrushItem, OsdId, Weight};

/// Used part of the CRUSH map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crush {
    /// OSDs in a bucket.
    pub(super) items: BTreeMap<OsdId, CrushItem>,
    /// Bucket type by rule: the finest one that a step of the rule chooses.
    pub(super) failure_domains: BTreeMap<i64, String>,
    /// Names of the buckets of type `host`.
    pub(super) hosts: BTreeSet<String>,
    /// Those without items that no rule takes: the mons let such a bucket be removed.
    pub(super) empty_hosts: BTreeSet<String>,
}

/// Bucket type of a node.
const HOST: &str = "host";

/// Sign between the name of a bucket and a device class, in the name of a shadow bucket.
const SHADOW: char = '~';

/// Bucket type of OSDs themselves: the finest failure domain.
pub(super) const FINEST: &str = "osd";

/// Number of levels that is deeper than any tree: the default map has 12 `types`.
const DEEPEST: usize = 64;

#[derive(Deserialize)]
struct CrushDump {
    devices: Vec<Device>,
    types: Vec<BucketType>,
    buckets: Vec<Bucket>,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Device {
    id: i64,
    class: Option<String>,
}

#[derive(Deserialize)]
struct BucketType {
    type_id: i64,
    name: String,
}

#[derive(Deserialize)]
struct Bucket {
    id: i64,
    name: String,
    type_name: String,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: i64,
    weight: Weight,
}

#[derive(Deserialize)]
struct Rule {
    rule_id: i64,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    op: String,
    #[serde(rename = "type")]
    chosen: Option<String>,
    /// Bucket of a step `take`.
    #[serde(rename = "item")]
    taken: Option<i64>,
}

pub(super) fn command() -> Command {
    Command::mon("osd crush dump")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<Crush> {
    let mut answer: CrushDump = serde_json::from_slice(answer)?;
    let taken = taken(&answer);
    // Shadow trees contain the OSDs of one device class a second time: `default~hdd`.
    answer.buckets.retain(|bucket| !bucket.name.contains(SHADOW));
    let is_taken = |bucket: &Bucket| taken.contains(&bucket.name);
    let hosts = || answer.buckets.iter().filter(|bucket| bucket.type_name == HOST);
    let empty = hosts().filter(|bucket| bucket.items.is_empty() && !is_taken(bucket));
    Ok(Crush {
        items: items(&answer),
        failure_domains: failure_domains(&answer),
        hosts: hosts().map(|bucket| bucket.name.clone()).collect(),
        empty_hosts: empty.map(|bucket| bucket.name.clone()).collect(),
    })
}

/// Returns the names of the buckets that a rule takes, with or without a device class.
///
/// The mons refuse to remove either (`EBUSY`; 16.2.15, `CrushWrapper::_bucket_is_in_use`).
fn taken(answer: &CrushDump) -> BTreeSet<String> {
    let steps = answer.rules.iter().flat_map(|rule| &rule.steps);
    let ids: BTreeSet<i64> = steps.filter_map(|step| step.taken).collect();
    let name = |bucket: &Bucket| match bucket.name.split_once(SHADOW) {
        Some((base, _)) => base.to_owned(),
        None => bucket.name.clone(),
    };
    answer.buckets.iter().filter(|bucket| ids.contains(&bucket.id)).map(name).collect()
}

fn items(answer: &CrushDump) -> BTreeMap<OsdId, CrushItem> {
    let parents: BTreeMap<i64, &Bucket> = answer
        .buckets
        .iter()
        .rev()
        .flat_map(|bucket| bucket.items.iter().map(move |item| (item.id, bucket)))
        .collect();
    let classes: BTreeMap<i64, &String> =
        answer.devices.iter().filter_map(|device| Some((device.id, device.class.as_ref()?))).collect();
    let item_of = |id: i64| {
        let weight = parents.get(&id)?.items.iter().find(|item| item.id == id)?.weight;
        let device_class = classes.get(&id).map(|class| (*class).clone());
        Some(CrushItem { location: location(id, &parents), weight, device_class })
    };
    answer
        .devices
        .iter()
        .filter_map(|device| Some((OsdId(u32::try_from(device.id).ok()?), item_of(device.id)?)))
        .collect()
}

fn location(mut id: i64, parents: &BTreeMap<i64, &Bucket>) -> BTreeMap<String, String> {
    let mut location = BTreeMap::new();
    while let (Some(bucket), true) = (parents.get(&id), location.len() < DEEPEST) {
        if location.insert(bucket.type_name.clone(), bucket.name.clone()).is_some() {
            break; // a bucket type twice on one path, which `--crush-location` cannot express
        }
        id = bucket.id;
    }
    location
}

fn failure_domains(answer: &CrushDump) -> BTreeMap<i64, String> {
    let ids: BTreeMap<&str, i64> = answer.types.iter().map(|t| (t.name.as_str(), t.type_id)).collect();
    let finest = |rule: &Rule| {
        rule.steps
            .iter()
            .filter(|step| step.op.starts_with("choose"))
            .filter_map(|step| step.chosen.clone())
            .min_by_key(|chosen| ids.get(chosen.as_str()).copied().unwrap_or_default())
            .unwrap_or_else(|| FINEST.to_owned())
    };
    answer.rules.iter().map(|rule| (rule.rule_id, finest(rule))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer};

    fn sample(release: &str, state: &str) -> Crush {
        parse(&answer(release, &format!("osd-crush-dump{state}"))).unwrap()
    }

    pub(crate) fn fine() -> Crush {
        sample("16.2.15", "")
    }

    #[test]
    fn osd_is_in_crush_once_and_not_in_shadow_trees() {
        let place = [("root", "default"), ("host", "h2")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let expected =
            CrushItem { location: place.into(), weight: Weight::ONE, device_class: Some("hdd".to_owned()) };
        for release in RELEASES {
            let crush = sample(release, "");
            assert_eq!((crush.items.len(), &crush.items[&OsdId(1)]), (4, &expected), "{release}");
        }
    }

    #[test]
    fn purged_osd_has_no_crush_item() {
        for release in RELEASES {
            assert!(!sample(release, ".purged").items.contains_key(&OsdId(1)), "{release}");
        }
    }

    #[test]
    fn host_without_items_is_empty_unless_a_rule_takes_it() {
        for release in RELEASES {
            assert!(sample(release, "").empty_hosts.is_empty(), "{release}");
            // The samples have one OSD on h2.
            assert!(sample(release, ".purged").empty_hosts.contains("h2"), "{release}");
        }
        let map = br#"{"devices":[],"types":[],"buckets":[
            {"id":-2,"name":"h1","type_name":"host","items":[]},
            {"id":-3,"name":"h2","type_name":"host","items":[]},
            {"id":-4,"name":"r1","type_name":"rack","items":[]},
            {"id":-5,"name":"h3","type_name":"host","items":[]},
            {"id":-6,"name":"h3~ssd","type_name":"host","items":[]},
            {"id":-7,"name":"h1~ssd","type_name":"host","items":[]}],
            "rules":[{"rule_id":0,"steps":[{"op":"take","item":-3},{"op":"emit"}]},
                     {"rule_id":1,"steps":[{"op":"take","item":-6},{"op":"emit"}]}]}"#;
        let crush = parse(map).unwrap();
        assert_eq!(crush.hosts, ["h1", "h2", "h3"].map(str::to_owned).into());
        assert_eq!(crush.empty_hosts, ["h1".to_owned()].into());
    }

    #[test]
    fn crush_rule_has_host_as_its_failure_domain() {
        let hosts = BTreeMap::from([(0, "host".to_owned()), (1, "host".to_owned())]);
        for release in RELEASES {
            assert_eq!(sample(release, ".ec-hole").failure_domains, hosts, "{release}");
        }
    }

    #[test]
    fn failure_domain_is_the_finest_choose_step_or_else_the_osd() {
        let map = br#"{"devices":[],"buckets":[],
            "types":[{"type_id":0,"name":"osd"},{"type_id":1,"name":"host"},{"type_id":3,"name":"rack"}],
            "rules":[{"rule_id":0,"steps":[{"op":"set_choose_tries","num":9},{"op":"take","item":-1},
                       {"op":"choose_indep","num":2,"type":"rack"},{"op":"chooseleaf_indep","num":2,"type":"host"}]},
                     {"rule_id":1,"steps":[{"op":"take","item":-1},{"op":"emit"}]}]}"#;
        let domains = parse(map).unwrap().failure_domains;
        assert_eq!(domains, BTreeMap::from([(0, "host".to_owned()), (1, "osd".to_owned())]));
    }
}
