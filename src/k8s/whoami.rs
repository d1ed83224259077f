//! Our own pod: which image holds the agent, which Job we are.

use k8s_openapi::api::core::v1::Pod;

use super::{K8s, K8sError};

/// What the downward API tells a pod of itself, by environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEnv {
    /// `POD_NAME`
    pub name: String,
    /// `POD_NAMESPACE`
    pub namespace: String,
    /// `POD_UID`
    pub uid: String,
}

impl PodEnv {
    /// Reads them by `lookup`; the error names the one that is missing.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, K8sError> {
        let get = |key: &str| {
            let missing = || {
                K8sError::NoConfig(format!(
                    "environment variable {key} is not set: this must run as a Job's pod"
                ))
            };
            lookup(key).filter(|value| !value.is_empty()).ok_or_else(missing)
        };
        Ok(Self { name: get("POD_NAME")?, namespace: get("POD_NAMESPACE")?, uid: get("POD_UID")? })
    }
}

/// Our own pod and Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Name of the pod.
    pub pod: String,
    /// Its uid.
    pub pod_uid: String,
    /// Node it is on.
    pub node: Option<String>,
    /// Name of the Job; the pod's own name where no Job made it.
    pub job: String,
    /// uid of the Job; the pod's own where no Job made it.
    pub job_uid: String,
    /// The schedule made the Job, and no person.
    pub scheduled: bool,
    /// Our image.
    pub image: String,
    /// Names of the Secrets that it is pulled with.
    pub pull_secrets: Vec<String>,
}

impl K8s {
    /// Looks at our own pod and Job.
    pub async fn whoami(&self, env: &PodEnv) -> Result<Own, K8sError> {
        let pod = self.kind_in::<Pod>(&env.namespace).get(&env.name).await?;
        if pod.metadata.uid.as_ref() != Some(&env.uid) {
            let found = "it is another pod of our name".to_owned();
            return Err(K8sError::Unexpected { what: format!("pod/{}", env.name), found });
        }
        let own = own(&pod).ok_or_else(|| K8sError::Malformed {
            what: format!("pod/{}", env.name),
            why: "no container".to_owned(),
        })?;
        let scheduled = own.job_uid != own.pod_uid && self.is_scheduled(&own.job).await?;
        Ok(Own { scheduled, ..own })
    }
}

fn own(pod: &Pod) -> Option<Own> {
    let spec = pod.spec.as_ref()?;
    let ours = spec.containers.iter().find(|c| c.name == super::OURS).or_else(|| spec.containers.first())?;
    let (name, uid) = (pod.metadata.name.clone()?, pod.metadata.uid.clone()?);
    let job = pod.metadata.owner_references.iter().flatten().find(|o| o.kind == "Job");
    let (job, job_uid) = job.map_or_else(|| (name.clone(), uid.clone()), |o| (o.name.clone(), o.uid.clone()));
    Some(Own {
        pod: name,
        pod_uid: uid,
        node: spec.node_name.clone(),
        job,
        job_uid,
        scheduled: false,
        image: ours.image.clone()?,
        pull_secrets: spec.image_pull_secrets.iter().flatten().map(|s| s.name.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pod_tells_job_and_image() {
        let pod = json!({
            "metadata": {"name": "m-x", "uid": "p", "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "m", "uid": "j", "controller": true}]},
            "spec": {"nodeName": "h1", "imagePullSecrets": [{"name": "s"}], "containers": [
                {"name": "side", "image": "x"}, {"name": "osd-migrate", "image": "osd-migrate:1"}]},
        });
        let seen = own(&serde_json::from_value(pod).unwrap()).unwrap();
        assert_eq!(
            (seen.job.as_str(), seen.job_uid.as_str(), seen.image.as_str()),
            ("m", "j", "osd-migrate:1")
        );
        assert_eq!(seen.pull_secrets, ["s"]);
    }

    #[test]
    fn outside_a_pod_it_says_what_is_missing() {
        let error = PodEnv::read(|key| (key == "POD_NAME").then(|| "x".to_owned())).unwrap_err();
        assert!(error.to_string().contains("POD_NAMESPACE"), "{error}");
    }
}
