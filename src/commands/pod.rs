//! The pod of this process: its environment, and its Job.

use std::time::Duration;

use crate::domain::policy::Policy;
use crate::failures::PATIENCE_FOR_A_RIGHT;
use crate::k8s::{K8s, Own, PodEnv};
use crate::live::{WallClock, kube_failure};
use crate::ports::{Clock, Failure, Severity};

/// Environment variable with the image of the node agents for a runner outside Kubernetes.
///
/// Its pod and Job are then those that POD_NAME and POD_UID name, whether or not they exist.
#[cfg(feature = "failpoint")]
const OWN_IMAGE: &str = "OSD_MIGRATE_OWN_IMAGE";

/// Reads the pod's environment: the request and the downward API.
#[expect(clippy::disallowed_methods, reason = "the environment of a pod has its identity and its request")]
pub(super) fn environment(key: &str) -> Option<String> {
    std::env::var(key).ok()
}

/// Returns whether this process runs in a pod of osd-migrate.
pub(super) fn is_in_pod() -> bool {
    environment("POD_NAME").is_some_and(|name| !name.is_empty())
}

/// Adds the settings of the pod's environment to those of the arguments.
pub(super) fn of_environment(policy: Policy) -> Policy {
    let is_set = |key| environment(key).is_some_and(|value| !value.is_empty());
    Policy { store_on_file: is_set("TEST_ENVIRONMENT_OSD_STORE_ON_FILE"), ..policy }
}

/// Time between requests at the start of a run while a right is missing.
const BETWEEN_TRIES: Duration = Duration::from_secs(3);

/// Asks again for a minute while a right is missing: an OSD may be stopped.
pub(super) async fn patiently<T>(ask: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
    for _ in 1..PATIENCE_FOR_A_RIGHT {
        match ask().await {
            Err(failure) if failure.severity == Severity::Denied => WallClock.sleep(BETWEEN_TRIES).await,
            answer => return answer,
        }
    }
    ask().await
}

/// Returns this pod and its Job: the runner works only as one.
pub(super) async fn own(k8s: &K8s) -> Result<Own, Failure> {
    #[cfg(feature = "failpoint")]
    if let Some(own) = without_pod() {
        return Ok(own);
    }
    let env = PodEnv::read(environment).map_err(kube_failure)?;
    k8s.whoami(&env).await.map_err(kube_failure)
}

/// Returns a runner whose pod and Job need not exist: in test builds only.
#[cfg(feature = "failpoint")]
fn without_pod() -> Option<Own> {
    let image = environment(OWN_IMAGE)?;
    let PodEnv { name, uid, .. } = PodEnv::read(environment).ok()?;
    let (job, job_uid) = (name.clone(), uid.clone());
    Some(Own {
        pod: name,
        pod_uid: uid,
        node: None,
        job,
        job_uid,
        scheduled: false,
        failed_pods: 0,
        resumes: false,
        image,
        pull_policy: None,
        pull_secrets: Vec::new(),
        more: crate::k8s::More::default(),
    })
}
