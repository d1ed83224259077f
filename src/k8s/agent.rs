//! Node Jobs and what goes with them: made together, deleted by uid.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, PropagationPolicy};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::domain::inspection::{NodeRequest, RecordId};
use crate::domain::osd::OsdId;
use crate::domain::policy::Declaration;

use super::agent_pod::owner;
use super::mon_access::Key;
use super::names::{Part, RECORD, attempt_labels, job_name, key_owner_name, short};
use super::node_job::{Blueprint, build};
use super::own_pod::Own;
use super::{K8s, K8sError};

/// Everything a node Job is made from.
#[derive(Debug, Clone, Copy)]
pub struct Agent<'a> {
    /// What it is told.
    pub request: &'a NodeRequest,
    /// Image of Ceph that it runs in.
    pub image: &'a str,
    /// The host folder `dataDirHostPath`.
    pub data_dir: &'a str,
    /// What the CephCluster says of the pods that prepare OSDs.
    pub declaration: &'a Declaration,
    /// Key of `client.bootstrap-osd`.
    pub bootstrap_key: &'a Key,
    /// The runner's own pod.
    pub own: &'a Own,
}

impl K8s {
    /// Makes a node Job, its empty report before it, and the Secret with its key; what is there already stays.
    ///
    /// All three have the Job's name. The Job is owned by the report, the Secret by an empty ConfigMap that is owned by the report,
    /// too: they go when it goes, and what a runner that was frozen in between makes after the sweep does not live. By deleting the
    /// ConfigMap the key is deleted before the Job and its log. A right to delete Secrets would be one to delete all of them, also
    /// those that open encrypted OSDs, as their names are not known beforehand.
    pub async fn create_agent(&self, agent: &Agent<'_>) -> Result<(), K8sError> {
        let name = job_name(agent.request);
        let &Agent { request, image, data_dir, declaration, own, .. } = agent;
        let placement = &declaration.storage.placement.tolerations;
        let osd_pod = self.osd_pod_template(request.osd, &request.node, placement).await?;
        let report = self.make_report(&name, report(request)).await?;
        let uid = report.metadata.uid.unwrap_or_default();
        let owner_name = key_owner_name(&name);
        let (owner, _) = self.make_map(&owner_name, key_owner(request, &uid)).await?;
        let key = typed(&name, secret(request, agent.bootstrap_key, &owner_name, &owner))?;
        there_already(self.kind::<Secret>().create(&name, &key).await)?;
        let job = build(&Blueprint {
            request,
            image,
            data_dir,
            declaration,
            own,
            osd_pod: &osd_pod,
            report_uid: &uid,
        });
        let jobs = self.untyped(&ApiResource::erase::<Job>(&()));
        there_already(jobs.create(&name, &typed::<DynamicObject>(&name, job)?).await)
    }

    /// Makes the empty ConfigMap that an agent or a look reports to; one that is there already stays.
    ///
    /// The ledger is looked at after it was made: who closes the record meanwhile either finds the report, and with it goes
    /// what it owns, also what is made later; or has saved already, and what was just made is taken back.
    pub(super) async fn make_report(&self, name: &str, report: Value) -> Result<ConfigMap, K8sError> {
        let (report, is_new) = self.make_map(name, report).await?;
        if let Err(late) = self.expect_ledger().await {
            let back = if is_new { self.delete_created(&report).await } else { Ok(()) };
            return back.and(Err(late));
        }
        Ok(report)
    }

    /// Makes a ConfigMap; returns one that is there already, and whether it is new.
    async fn make_map(&self, name: &str, map: Value) -> Result<(ConfigMap, bool), K8sError> {
        let maps = self.kind::<ConfigMap>();
        match maps.create(name, &typed(name, map)?).await {
            Ok(map) => Ok((map, true)),
            Err(K8sError::AlreadyExists(_)) => Ok((maps.get(name).await?, false)),
            Err(error) => Err(error),
        }
    }

    /// Deletes the ConfigMap that was just made.
    pub(super) async fn delete_created(&self, made: &ConfigMap) -> Result<(), K8sError> {
        let name = made.metadata.name.clone().unwrap_or_default();
        let uid = made.metadata.uid.clone().unwrap_or_default();
        self.kind::<ConfigMap>().delete(&name, &uid, PropagationPolicy::Background).await
    }

    /// Deletes a node Job whose container did not start, if it has this uid; its pod with it. Its report stays.
    pub async fn drop_agent(&self, name: &str, uid: &str) -> Result<(), K8sError> {
        self.kind::<Job>().delete(name, uid, PropagationPolicy::Background).await
    }

    /// Deletes the owner of a node Job's Secret, if it has this uid: the garbage collector deletes the Secret. Gone already is
    /// success.
    pub async fn delete_key(&self, job: &str, uid: &str) -> Result<(), K8sError> {
        let name = key_owner_name(job);
        self.kind::<ConfigMap>().delete(&name, uid, PropagationPolicy::Background).await
    }

    /// Deletes what a closed record would leave behind: node Jobs, then reports and the owners of their Secrets, last the kept copy.
    pub async fn clean_up(&self, osd: OsdId, record: &RecordId) -> Result<(), K8sError> {
        let selector = format!(
            "app.kubernetes.io/name=osd-migrate,osd-migrate.io/osd={},osd-migrate.io/record={}",
            osd.0,
            short(record)
        );
        let of_record = |annotations: Option<std::collections::BTreeMap<String, String>>| {
            annotations.is_some_and(|a| a.get(RECORD) == Some(&record.0))
        };
        let jobs = self.kind::<Job>();
        let found = jobs.list(&selector, |job| {
            of_record(job.metadata.annotations).then_some((job.metadata.name, job.metadata.uid))
        });
        for (name, uid) in found.await? {
            jobs.delete(&name.unwrap_or_default(), &uid.unwrap_or_default(), PropagationPolicy::Background)
                .await?;
        }
        let maps = self.kind::<ConfigMap>();
        let mut found = maps
            .list(&selector, |map| {
                let backups =
                    map.metadata.labels.as_ref().and_then(|l| l.get(super::names::PART)).map(String::as_str)
                        == Some(Part::Backup.as_str());
                of_record(map.metadata.annotations).then_some((backups, map.metadata.name, map.metadata.uid))
            })
            .await?;
        found.sort();
        for (_, name, uid) in found {
            maps.delete(&name.unwrap_or_default(), &uid.unwrap_or_default(), PropagationPolicy::Background)
                .await?;
        }
        Ok(())
    }
}

pub(super) fn there_already<T>(created: Result<T, K8sError>) -> Result<(), K8sError> {
    match created {
        Ok(_) | Err(K8sError::AlreadyExists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(super) fn typed<T: serde::de::DeserializeOwned>(name: &str, object: Value) -> Result<T, K8sError> {
    serde_json::from_value(object)
        .map_err(|e| K8sError::Malformed { what: name.to_owned(), why: e.to_string() })
}

fn report(request: &NodeRequest) -> Value {
    json!({
        "metadata": {
            "name": job_name(request),
            "labels": attempt_labels(Part::Report, request),
            "annotations": {RECORD: request.record.0},
        },
        "data": {},
    })
}

/// The empty ConfigMap that owns the Secret of a node Job.
fn key_owner(request: &NodeRequest, report_uid: &str) -> Value {
    let job = job_name(request);
    json!({
        "metadata": {
            "name": key_owner_name(&job),
            "labels": attempt_labels(Part::Key, request),
            "annotations": {RECORD: request.record.0},
            "ownerReferences": owner(&job, report_uid),
        },
    })
}

/// The keyring as ceph-volume expects it in `/var/lib/ceph/bootstrap-osd`.
fn secret(request: &NodeRequest, key: &Key, owner_name: &str, of: &ConfigMap) -> Value {
    let name = job_name(request);
    json!({
        "metadata": {
            "name": name,
            "labels": attempt_labels(Part::NodeJob, request),
            "annotations": {RECORD: request.record.0},
            "ownerReferences": owner(owner_name, of.metadata.uid.as_deref().unwrap_or_default()),
        },
        "immutable": true,
        "stringData": {"ceph.keyring": format!("[client.bootstrap-osd]\n\tkey = {}\n", key.reveal())},
    })
}
