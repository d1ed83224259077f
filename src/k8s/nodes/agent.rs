//! Node Jobs and the objects that belong to them: created together, deleted by uid.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, PropagationPolicy};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::domain::inspection::{NodeRequest, RecordId};
use crate::domain::osd::OsdId;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::{K8sError, there_already};
use crate::k8s::client::kind::typed;
use crate::k8s::names::{PART, Part, RECORD, attempt_labels, job_name, key_owner_name, short};
use crate::k8s::nodes::agent_pod::{NodePod, owner};
use crate::k8s::nodes::node_job::{Blueprint, build};
use crate::k8s::rook::mon_access::Key;

/// Everything that a node Job is built from.
#[derive(Debug, Clone, Copy)]
pub struct Agent<'a> {
    /// Request that the agent receives.
    pub request: &'a NodeRequest,
    /// Settings of its pod.
    pub pod: NodePod<'a>,
    /// Key of `client.bootstrap-osd`.
    pub bootstrap_key: &'a Key,
}

impl K8s {
    /// Creates a node Job, its empty report and the Secret with its key; existing objects stay unchanged.
    ///
    /// Report, Secret and Job have the Job's name. The report owns the Job. The Secret is owned by an empty
    /// ConfigMap, and the report owns that ConfigMap, too. So all of them are deleted together with the
    /// report. Objects that a frozen runner creates after the record was cleaned up are deleted, too.
    ///
    /// Deleting the ConfigMap deletes the key before the Job and its log. A right to delete Secrets would be
    /// a right to delete all of them, also those that open encrypted OSDs, because the names are not known
    /// beforehand.
    ///
    /// Before all of these, the key of an unencrypted OSD on a PVC that is to be encrypted is created
    /// ([`K8s::create_pvc_key`]): a device is encrypted only with a key that exists already.
    pub async fn create_agent(&self, agent: &Agent<'_>) -> Result<(), K8sError> {
        let name = job_name(agent.request);
        let &Agent { request, pod, .. } = agent;
        if let Some(pvc) = request.pvc_for_new_key() {
            self.create_pvc_key(pvc, pod.declaration).await?;
        }
        let placement = &pod.declaration.storage.placement.tolerations;
        let on_pvcs = request.pvcs.is_some();
        let osd_pod = self.osd_pod_template(request.osd, on_pvcs, &request.node, placement).await?;
        let report = self.make_report(&name, report(request)).await?;
        let uid = report.metadata.uid.unwrap_or_default();
        let owner_name = key_owner_name(&name);
        let (owner, _) = self.make_map(&owner_name, key_owner(request, &uid)).await?;
        let key = typed(&name, secret(request, agent.bootstrap_key, &owner_name, &owner))?;
        there_already(self.kind::<Secret>().create(&name, &key).await)?;
        let job = build(&Blueprint { request, base: pod, osd_pod: &osd_pod, report_uid: &uid });
        let jobs = self.untyped(&ApiResource::erase::<Job>(&()));
        there_already(jobs.create(&name, &typed::<DynamicObject>(&name, job)?).await)
    }

    /// Creates the empty ConfigMap that an agent or an inventory reports to; an existing one stays unchanged.
    ///
    /// The ledger's version is checked after the ConfigMap was created. A runner that closes the record
    /// meanwhile has two possibilities. Either it finds the report and deletes it; then the garbage collector
    /// also deletes what the report owns, even objects that are created later. Or it has saved the ledger
    /// already; then this function deletes the new ConfigMap.
    pub(super) async fn make_report(&self, name: &str, report: Value) -> Result<ConfigMap, K8sError> {
        let (report, is_new) = self.make_map(name, report).await?;
        if let Err(late) = self.expect_ledger().await {
            let back = if is_new { self.delete_created(&report).await } else { Ok(()) };
            return back.and(Err(late));
        }
        Ok(report)
    }

    /// Creates a ConfigMap, or reads the existing one; the flag is true if the ConfigMap is new.
    async fn make_map(&self, name: &str, map: Value) -> Result<(ConfigMap, bool), K8sError> {
        let maps = self.kind::<ConfigMap>();
        match maps.create(name, &typed(name, map)?).await {
            Ok(map) => Ok((map, true)),
            Err(K8sError::AlreadyExists(_)) => Ok((maps.get(name).await?, false)),
            Err(error) => Err(error),
        }
    }

    /// Deletes the ConfigMap that was just created.
    pub(crate) async fn delete_created(&self, map: &ConfigMap) -> Result<(), K8sError> {
        let name = map.metadata.name.clone().unwrap_or_default();
        let uid = map.metadata.uid.clone().unwrap_or_default();
        self.kind::<ConfigMap>().delete(&name, &uid, PropagationPolicy::Background).await
    }

    /// Deletes a node Job whose container did not start, if it has this uid, and its pod.
    ///
    /// The report stays.
    pub async fn drop_agent(&self, name: &str, uid: &str) -> Result<(), K8sError> {
        self.kind::<Job>().delete(name, uid, PropagationPolicy::Background).await
    }

    /// Deletes the owner of a node Job's Secret, if it has this uid; already deleted is success.
    ///
    /// The garbage collector then deletes the Secret.
    pub async fn delete_key(&self, job: &str, uid: &str) -> Result<(), K8sError> {
        let name = key_owner_name(job);
        self.kind::<ConfigMap>().delete(&name, uid, PropagationPolicy::Background).await
    }

    /// Deletes the objects that a closed record would leave behind.
    ///
    /// Node Jobs are deleted first, then reports and the owners of their Secrets, and the backup of the
    /// Deployment last.
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
                let backups = map.metadata.labels.as_ref().and_then(|l| l.get(PART)).map(String::as_str)
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

/// Builds the empty ConfigMap that owns the Secret of a node Job.
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

/// Builds the Secret with the keyring as ceph-volume expects it in `/var/lib/ceph/bootstrap-osd`.
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
