//! ConfigMaps of osd-migrate and of Rook that an observation reads, each only if its version is another one.
//!
//! The metadata of all of them is one request. An object of the same name and version has the same contents:
//! the version is that of its last write in etcd, also if it was deleted and created again.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use crate::domain::observation::Control;
use crate::domain::osd::OsdId;
use crate::domain::removal::Requests;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::list::ShortMeta;
use crate::k8s::names::{NAME, OF_AGENTS, OURS, PART, Part};
use crate::k8s::nodes::owned::{OwnedMap, owned_map};
use crate::k8s::own::control_map::{self, CONTROL};
use crate::k8s::own::requests_map::{self, REQUESTS};

/// ConfigMap in which Rook records which OSD it migrates itself, from 1.16 on; the other one is of 1.13 to
/// 1.15.
const MIGRATION: &str = "osd-migration-config";
const REPLACEMENT: &str = "osd-replace-config";

/// ConfigMap in which Rook records the failure domain whose node is drained.
const PDB_STATE: &str = "rook-ceph-pdbstatemap";

/// ConfigMaps of Rook that an observation reads.
pub(super) const ROOK_MAPS: [&str; 3] = [MIGRATION, REPLACEMENT, PDB_STATE];

/// Number of changed ConfigMaps up to which each is read by its name: as many requests as three pages.
///
/// More of them are inventories of many nodes, which change at the same time.
const FEW: usize = 3;

/// Contents of a ConfigMap, reduced to what is needed.
#[derive(Clone)]
enum Content {
    OfAgent(OwnedMap),
    Control(Option<Control>),
    Requests(Requests),
    /// OSD that Rook migrates itself.
    Migrated(Option<OsdId>),
    /// Failure domain whose node is drained.
    Draining(Option<String>),
}

/// Name of a ConfigMap, with its version and contents.
type ReadMap = (String, (String, Content));

/// ConfigMaps that were read, by their names, with their versions.
#[derive(Default)]
pub(super) struct ReadMaps(BTreeMap<String, (String, Content)>);

/// Contents of ConfigMaps that an observation uses.
#[derive(Clone, Default)]
pub(super) struct SeenMaps {
    pub(super) of_agents: Vec<OwnedMap>,
    pub(super) control: Option<Control>,
    pub(super) requests: Requests,
    /// OSDs that Rook migrates itself.
    pub(super) migrated: BTreeSet<OsdId>,
    /// Failure domain whose node is drained.
    pub(super) draining: Option<String>,
}

impl K8s {
    /// Reads the ConfigMaps whose versions are not those of `read`.
    pub(super) async fn maps(&self, read: &mut ReadMaps) -> Result<SeenMaps, K8sError> {
        let maps = self.kind::<ConfigMap>();
        let now = maps.short_metadata(|meta| is_read(&meta).then_some((meta.name, meta.version))).await?;
        let now: BTreeMap<String, String> = now.into_iter().collect();
        read.0.retain(|name, (version, _)| now.get(name) == Some(version));
        let changed: Vec<&String> = now.keys().filter(|name| !read.0.contains_key(*name)).collect();
        let (by_name, by_label): (Vec<&String>, Vec<&String>) =
            changed.into_iter().partition(|name| is_named(name));
        // Each is reduced at once: inventories are large.
        let found = if by_label.len() > FEW {
            maps.list(OF_AGENTS, |map| Some(reduced(map))).await?
        } else {
            self.each(by_label).await?
        };
        read.0.extend(found);
        read.0.extend(self.each(by_name).await?);
        Ok(read.seen())
    }

    /// Reads the ConfigMaps of these names that are still there.
    async fn each(&self, names: Vec<&String>) -> Result<Vec<ReadMap>, K8sError> {
        let maps = self.kind::<ConfigMap>();
        let each = stream::iter(names).map(|name| maps.get_opt(name)).buffered(FEW + ROOK_MAPS.len());
        let found: Vec<Option<ConfigMap>> = each.try_collect().await?;
        Ok(found.into_iter().flatten().map(reduced).collect())
    }
}

impl ReadMaps {
    fn seen(&self) -> SeenMaps {
        let mut seen = SeenMaps::default();
        for (_, content) in self.0.values() {
            match content.clone() {
                Content::OfAgent(map) => seen.of_agents.push(map),
                Content::Control(control) => seen.control = control,
                Content::Requests(requests) => seen.requests = requests,
                Content::Migrated(osd) => seen.migrated.extend(osd),
                Content::Draining(domain) => seen.draining = domain,
            }
        }
        seen
    }
}

/// Returns whether an observation reads a ConfigMap by its name.
fn is_named(name: &str) -> bool {
    name == CONTROL || name == REQUESTS || ROOK_MAPS.contains(&name)
}

/// Returns whether an observation reads a ConfigMap: by its name, or as `OF_AGENTS` selects.
fn is_read(meta: &ShortMeta) -> bool {
    const PARTS: [Part; 5] = [Part::Backup, Part::Key, Part::Inventory, Part::NodeJob, Part::Report];
    let label = |key: &str| meta.labels.get(key).map(String::as_str);
    let is_of_agent = || PARTS.iter().any(|part| label(PART) == Some(part.as_str()));
    is_named(&meta.name) || (label(NAME) == Some(OURS) && is_of_agent())
}

fn reduced(map: ConfigMap) -> ReadMap {
    let name = map.metadata.name.clone().unwrap_or_default();
    let version = map.metadata.resource_version.clone().unwrap_or_default();
    let content = content(&name, map);
    (name, (version, content))
}

fn content(name: &str, map: ConfigMap) -> Content {
    match name {
        CONTROL => Content::Control(control_map::control(map)),
        REQUESTS => Content::Requests(requests_map::requests(&map)),
        MIGRATION | REPLACEMENT => Content::Migrated(migrated_by_rook(map)),
        PDB_STATE => Content::Draining(draining(map)),
        _ => Content::OfAgent(owned_map(map)),
    }
}

/// Returns the domain whose node is drained.
///
/// Rook, fenced or not, also names a domain with an OSD down while PGs are not clean, which may be an OSD
/// that osd-migrate has stopped. `set-no-out` distinguishes the two.
fn draining(map: ConfigMap) -> Option<String> {
    let mut data = map.data?;
    let is_only_down = data.get("set-no-out").is_some_and(|word| word != "true");
    data.remove("draining-failure-domain").filter(|domain| !domain.is_empty() && !is_only_down)
}

/// Returns the OSD that Rook's own migration took last: a number, or JSON with more
/// (`pkg/operator/ceph/cluster/osd/migrate.go`, `replace.go`).
fn migrated_by_rook(map: ConfigMap) -> Option<OsdId> {
    let data = map.data?;
    let of_config = || serde_json::from_str::<Value>(data.get("config")?).ok()?.get("id")?.as_u64();
    let id = data.get("osdID").and_then(|id| id.trim().parse().ok()).or_else(of_config)?;
    u32::try_from(id).ok().map(OsdId)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::k8s::names::labels;
    use crate::k8s::wire::{Exchange, list, on, play};

    const MAPS: &str = "GET /api/v1/namespaces/rook-ceph/configmaps";

    /// Returns a ConfigMap: its metadata for the list, with a value for a read.
    fn map(name: &str, version: u32, part: Option<Part>, data: &Value) -> Value {
        let labels = part.map(labels).unwrap_or_default();
        json!({"metadata": {"name": name, "resourceVersion": version.to_string(), "labels": labels,
            "managedFields": [{"manager": "osd-migrate"}]}, "data": data})
    }

    fn metadata(maps: &[Value]) -> Exchange {
        on(&format!("{MAPS}?&limit=1000"), 200, list(maps))
    }

    fn read(map: &Value) -> Exchange {
        on(&format!("{MAPS}/{}", map["metadata"]["name"].as_str().unwrap()), 200, map.clone())
    }

    #[tokio::test]
    async fn config_maps_are_read_again_only_in_another_version() {
        let paused = map(CONTROL, 5, Some(Part::Control), &json!({"order": "pause"}));
        let resumed = map(CONTROL, 7, Some(Part::Control), &json!({"order": "run"}));
        let drained = map(PDB_STATE, 3, None, &json!({"draining-failure-domain": "h1"}));
        let backup = map("osd-migrate-osd-3", 4, Some(Part::Backup), &json!({}));
        let other = [
            map("rook-config-override", 1, None, &json!({})),
            map("osd-migrate-ledger", 9, Some(Part::Ledger), &json!({})),
        ];
        let with = |maps: &[&Value]| {
            let all: Vec<Value> = maps.iter().map(|map| (*map).clone()).chain(other.clone()).collect();
            metadata(&all)
        };
        let script = vec![
            with(&[&paused, &drained, &backup]),
            read(&backup),
            read(&paused),
            read(&drained),
            with(&[&paused, &drained, &backup]),
            with(&[&resumed, &drained]),
            read(&resumed),
        ];
        play(script, async |k8s| {
            let mut known = ReadMaps::default();
            for _ in 0..2 {
                let seen = k8s.maps(&mut known).await.unwrap();
                assert!(seen.control.is_some() && seen.of_agents.len() == 1);
                assert_eq!(seen.draining.as_deref(), Some("h1"));
            }
            let seen = k8s.maps(&mut known).await.unwrap();
            assert!(seen.control.is_none() && seen.of_agents.is_empty() && seen.draining.is_some());
        })
        .await;
    }

    #[tokio::test]
    async fn many_changed_config_maps_of_agents_are_one_list() {
        let part = Some(Part::Inventory);
        let maps: Vec<Value> =
            (0..4).map(|n| map(&format!("osd-migrate-inventory-{n}"), n, part, &json!({}))).collect();
        let by_label = "app.kubernetes.io%2Fname%3Dosd-migrate%2Cosd-migrate.io%2Fpart+in+%28backup%2Ckey%2Cinventory%2Cnode-job%2Creport%29";
        let list_of_agents = format!("{MAPS}?&labelSelector={by_label}&limit=100");
        let script = vec![metadata(&maps), on(&list_of_agents, 200, list(&maps))];
        let seen = play(script, async |k8s| k8s.maps(&mut ReadMaps::default()).await).await.unwrap();
        assert_eq!(seen.of_agents.len(), 4);
    }

    #[test]
    fn config_maps_of_agents_are_those_that_the_selector_selects() {
        let meta =
            |part: Part| ShortMeta { name: "a".to_owned(), version: "1".to_owned(), labels: labels(part) };
        let parts = [Part::Backup, Part::Key, Part::Inventory, Part::NodeJob, Part::Report];
        let others = [Part::Ledger, Part::History, Part::Status, Part::Plan, Part::Drains];
        assert!(parts.into_iter().all(|part| is_read(&meta(part)) && OF_AGENTS.contains(part.as_str())));
        assert!(others.into_iter().all(|part| !is_read(&meta(part)) && !OF_AGENTS.contains(part.as_str())));
    }

    #[test]
    fn down_osd_is_not_a_drain_unless_rook_sets_noout() {
        let seen = |data: Value| draining(serde_json::from_value(json!({ "data": data })).unwrap());
        assert_eq!(
            seen(json!({"draining-failure-domain": "h1", "set-no-out": "true"})).as_deref(),
            Some("h1")
        );
        assert_eq!(seen(json!({"draining-failure-domain": "h1", "set-no-out": ""})), None);
        assert_eq!(seen(json!({"draining-failure-domain": "", "set-no-out": ""})), None);
        // Rook 1.6 has only this key.
        assert_eq!(seen(json!({"draining-failure-domain": "h1"})).as_deref(), Some("h1"));
    }

    #[test]
    fn osd_migrated_by_rook_is_read_in_each_of_rooks_formats() {
        let of = |data: Value| migrated_by_rook(serde_json::from_value(json!({"data": data})).unwrap());
        assert_eq!(of(json!({"osdID": "5"})), Some(OsdId(5)));
        let config = json!({"id": 5, "path": "/dev/sdb", "node": "h1"}).to_string();
        assert_eq!(of(json!({"config": config})), Some(OsdId(5)));
        for none in [
            json!({}),
            json!({"osdID": ""}),
            json!({"osdID": "-1"}),
            json!({"config": "null"}),
            json!({"config": "{}"}),
        ] {
            assert_eq!(of(none.clone()), None, "{none}");
        }
    }
}
