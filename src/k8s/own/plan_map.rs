//! Plans that a person may approve: one ConfigMap each, named by the hash of its lines.
//!
//! A stored plan never changes: another plan has another hash. None of the ConfigMaps has an owner.

use std::cmp::Reverse;
use std::io::{Read, Write};

use chrono::{DateTime, SecondsFormat, Utc};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};

use crate::domain::approval::{PlanHash, PlanLines};
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::names::{OURS, PART, Part, labels};

/// Prefix of the name of a stored plan; its hash follows.
pub const PLAN: &str = "osd-migrate-plan-";

/// Key of the lines in `data`.
const LINES: &str = "plan";
/// Key of the lines in `binaryData`, if the plain text would be too long.
const LINES_GZ: &str = "plan.gz";
/// Annotation: when the plan was last made or used.
const USED_AT: &str = "osd-migrate.io/used-at";

/// Longest plain text: a ConfigMap has at most 1 MiB, metadata included.
const PLAIN_LIMIT: usize = 512 << 10;
/// Longest unpacked text: 10,000 OSDs have 3 MiB.
const UNPACKED_LIMIT: u64 = 64 << 20;

/// Number of plans that are kept: people approve the latest one, and a run keeps its own one among the
/// latest, since it renews its time.
const KEPT: usize = 20;

impl K8s {
    /// Stores a plan, or renews the time of a stored one.
    pub async fn write_plan(&self, plan: &PlanLines, at: DateTime<Utc>) -> Result<(), K8sError> {
        let name = format!("{PLAN}{}", plan.hash());
        let text = plan.text();
        let (data, binary) = if text.len() <= PLAIN_LIMIT {
            (json!({LINES: text}), Value::Null)
        } else {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
            let what = || format!("configmap/{name}");
            let packed = packed.map_err(|e| K8sError::Malformed { what: what(), why: e.to_string() })?;
            (Value::Null, json!({LINES_GZ: ByteString(packed)}))
        };
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
            "metadata": {
                "name": name,
                "labels": labels(Part::Plan),
                "annotations": {USED_AT: at.to_rfc3339_opts(SecondsFormat::Secs, true)},
            },
            "data": data,
            "binaryData": binary,
        });
        self.kind::<ConfigMap>().apply(&name, &object).await.map(drop)
    }

    /// Reads the plan with this hash; none if it is not stored, or if its lines have another hash.
    pub async fn read_plan(&self, hash: &PlanHash) -> Result<Option<PlanLines>, K8sError> {
        let map = self.kind::<ConfigMap>().get_opt(&format!("{PLAN}{hash}")).await?;
        let lines = map.and_then(lines).map(|text| PlanLines::parse(&text));
        Ok(lines.filter(|lines| lines.hash() == *hash))
    }

    /// Deletes all stored plans except the latest ones.
    pub async fn prune_plans(&self) -> Result<(), K8sError> {
        let selector = format!("app.kubernetes.io/name={OURS},{PART}={}", Part::Plan.as_str());
        let maps = self.kind::<ConfigMap>();
        let mut plans: Vec<_> = maps.metadata(&selector).await?;
        plans.sort_by_cached_key(|plan| {
            Reverse(plan.annotations.as_ref().and_then(|annotations| annotations.get(USED_AT)).cloned())
        });
        for plan in plans.into_iter().skip(KEPT) {
            let (Some(name), Some(uid)) = (plan.name, plan.uid) else { continue };
            maps.delete(&name, &uid, PropagationPolicy::Background).await?;
        }
        Ok(())
    }
}

/// Returns the lines of a stored plan as text.
fn lines(map: ConfigMap) -> Option<String> {
    if let Some(text) = map.data.and_then(|mut data| data.remove(LINES)) {
        return Some(text);
    }
    let packed = map.binary_data?.remove(LINES_GZ)?;
    let mut text = String::new();
    GzDecoder::new(packed.0.as_slice()).take(UNPACKED_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::domain::osd::OsdId;
    use crate::k8s::wire::{on, play};

    fn plan(osds: u32) -> PlanLines {
        let line = |osd| {
            (OsdId(osd), format!("osd.{osd} on host-{}, fsid {:032x}, Filestore -> raw", osd / 12, osd * 77))
        };
        PlanLines::new((0..osds).map(line).collect(), [].into())
    }

    fn at() -> DateTime<Utc> {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    /// Writes a plan, reads it from what was written, and returns the stored object.
    async fn stored(plan: &PlanLines) -> Value {
        let map = format!("/api/v1/namespaces/rook-ceph/configmaps/{PLAN}{}", plan.hash());
        let patch = format!("PATCH {map}?&force=true&fieldManager=osd-migrate application/apply-patch+yaml");
        let (sender, receiver) = channel();
        let script =
            vec![on(&patch, 200, json!({"metadata": {}})).with(move |body| sender.send(body).unwrap())];
        play(script, async |k8s| k8s.write_plan(plan, at()).await).await.unwrap();
        let object = receiver.recv().unwrap();
        let script = vec![on(&format!("GET {map}"), 200, object.clone())];
        let read = play(script, async |k8s| k8s.read_plan(&plan.hash()).await).await.unwrap();
        assert_eq!(read.as_ref(), Some(plan));
        object
    }

    #[tokio::test]
    async fn small_plan_is_stored_as_text_and_never_changes() {
        let object = stored(&plan(3)).await;
        assert_eq!(object["immutable"], true);
        assert_eq!(object["data"]["plan"], plan(3).text());
        assert_eq!(object["metadata"]["annotations"]["osd-migrate.io/used-at"], "2026-03-01T12:00:00Z");
    }

    #[tokio::test]
    async fn plan_of_ten_thousand_osds_fits_into_a_configmap() {
        let object = stored(&plan(10_000)).await;
        assert_eq!(object["data"], Value::Null);
        assert!(object.to_string().len() < 1 << 20, "{}", object.to_string().len());
    }

    #[tokio::test]
    async fn plan_with_other_lines_than_its_hash_is_not_read() {
        let path = format!("GET /api/v1/namespaces/rook-ceph/configmaps/{PLAN}{}", plan(3).hash());
        let data: BTreeMap<_, _> = [("plan", plan(4).text())].into();
        let script = vec![on(&path, 200, json!({"metadata": {}, "data": data}))];
        let read = play(script, async |k8s| k8s.read_plan(&plan(3).hash()).await).await.unwrap();
        assert_eq!(read, None);
    }

    #[tokio::test]
    async fn oldest_plans_are_deleted() {
        let meta = |n: usize| {
            let at = format!("2026-03-{:02}T12:00:00Z", n + 1);
            json!({"metadata": {"name": format!("{PLAN}{n}"), "uid": format!("u{n}"), "annotations": {USED_AT: at}}})
        };
        let items: Vec<_> = (0..=KEPT).map(meta).collect();
        let list = "GET /api/v1/namespaces/rook-ceph/configmaps?&labelSelector=app.kubernetes.io%2Fname%3Dosd-migrate%2Cosd-migrate.io%2Fpart%3Dplan";
        let all = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": items});
        let delete = format!("DELETE /api/v1/namespaces/rook-ceph/configmaps/{PLAN}0?");
        let script = vec![on(list, 200, all), on(&delete, 200, json!({"metadata": {"name": "x"}}))];
        play(script, async |k8s| k8s.prune_plans().await).await.unwrap();
    }
}
