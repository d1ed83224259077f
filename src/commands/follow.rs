//! Follows a Job outside of the cluster: prints the logs of its pods as they come, and returns the exit code.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use futures_util::StreamExt;

use crate::commands::print::print_log;
use crate::exit::{Exit, not_seen};
use crate::k8s::{CRON_JOB, CommandJob, JobPod, JobState, K8s, K8sError};
use crate::live::{kube_failure, pause};

/// Pause between two reads of the Job while there is no log to read.
const PAUSE: Duration = Duration::from_secs(1);

/// Time without a line after which the log is opened again.
///
/// A run writes a line at least once a minute. Load balancers close an idle connection without a word.
const SILENCE: Duration = Duration::from_secs(90);

/// Number of reads in a row that may fail: five minutes at least. A laptop may sleep, an API server may
/// restart.
const FAILED_READS: u32 = 300;

/// Number of reads without a pod after which that is reported: a quota or a policy may refuse it.
const READS_WITHOUT_POD: u32 = 30;

/// Exit codes after which the Job creates no other pod (`podFailurePolicy` of the chart).
const FINAL: [i32; 6] = [0, 2, 3, 10, 11, 12];

/// A Job that is followed.
pub(super) struct Follower<'a> {
    k8s: &'a K8s,
    job: &'a CommandJob,
    /// Number of reads for which a pod may fail to start; without a limit if none.
    patience: Option<u32>,
    /// Pods whose log was read to its end.
    read: BTreeSet<String>,
    /// Last lines that were printed.
    last: Option<Last>,
    /// Reason why a pod does not start, and for how many reads.
    trouble: Option<(String, u32)>,
    /// Reads in a row in which the Job has no pod.
    without_pod: u32,
    failed_reads: u32,
}

/// Lines of a pod that have the time of its last line.
///
/// Runtimes of containers write all lines that they read at once with one time.
#[derive(Debug, Clone)]
struct Last {
    pod: String,
    at: DateTime<FixedOffset>,
    lines: usize,
}

impl Last {
    /// Adds a line, and returns whether it is new.
    ///
    /// `known` are the last lines before the log was opened again, and `repeated` the lines of that time
    /// since.
    fn is_new(
        last: &mut Option<Self>,
        (pod, at): (&str, DateTime<FixedOffset>),
        (known, repeated): (Option<&Self>, &mut usize),
    ) -> bool {
        if let Some(known) = known {
            *repeated += usize::from(at == known.at);
            if at < known.at || (at == known.at && *repeated <= known.lines) {
                return false;
            }
        }
        match last.as_mut().filter(|last| last.pod == pod && last.at == at) {
            Some(last) => last.lines += 1,
            None => *last = Some(Self { pod: pod.to_owned(), at, lines: 1 }),
        }
        true
    }
}

/// Next step of the follower.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    /// The log of this pod exists.
    Read(&'a JobPod),
    /// This pod ended before its container started.
    Pass(&'a JobPod),
    /// This pod has not started.
    Await(&'a JobPod),
    /// No pod exists yet.
    AwaitPod,
    /// The Job ended.
    End(Exit),
}

impl<'a> Follower<'a> {
    /// Follows a Job from the beginning of its log.
    ///
    /// A pod that cannot start for two minutes ends the command
    /// if `only_looks`.
    pub(super) fn new(k8s: &'a K8s, job: &'a CommandJob, only_looks: bool) -> Self {
        let (read, last, trouble) = (BTreeSet::new(), None, None);
        let patience = only_looks.then_some(120);
        Self { k8s, job, patience, read, last, trouble, without_pod: 0, failed_reads: 0 }
    }

    /// Prints the log until the Job has ended.
    pub(super) async fn follow(mut self) -> Exit {
        loop {
            let state = match self.k8s.job_state(self.job).await {
                Ok(Some(state)) => state,
                Ok(None) => {
                    tracing::error!("Job {} was deleted before it ended", self.job.name);
                    return Exit::TryAgain;
                }
                Err(error) => match self.failed(error).await {
                    Some(exit) => return exit,
                    None => continue,
                },
            };
            self.failed_reads = 0;
            match step(&state, &self.read) {
                Step::Read(pod) => {
                    if let Err(exit) = self.read_log(&pod.name).await {
                        return exit;
                    }
                }
                Step::Pass(pod) => {
                    self.report(pod);
                    self.read.insert(pod.name.clone());
                }
                Step::Await(pod) if self.report(pod) => {
                    tracing::error!("{}", self.gives_up());
                    return Exit::TryAgain;
                }
                Step::AwaitPod if state.pods.is_empty() => {
                    if self.lacks_pod() {
                        return Exit::TryAgain;
                    }
                }
                Step::Await(_) | Step::AwaitPod => {}
                Step::End(exit) => return exit,
            }
            pause(PAUSE).await;
        }
    }

    /// Prints the log of a pod until the server closes it, or until it is silent for long.
    ///
    /// The pod is read to its end only if it had ended before its log was opened. A log that the server
    /// closed is opened again.
    async fn read_log(&mut self, pod: &str) -> Result<(), Exit> {
        let ended = matches!(self.k8s.job_state(self.job).await,
            Ok(Some(state)) if state.pods.iter().any(|seen| seen.name == pod && seen.has_ended));
        let known = self.last.clone().filter(|last| last.pod == pod);
        let since = known.as_ref().map(|last| last.at.to_rfc3339());
        let opened = tokio::time::timeout(SILENCE, self.k8s.follow_log(pod, since.as_deref())).await;
        let lines = match opened {
            Ok(Ok(lines)) => lines,
            Ok(Err(error)) => {
                tracing::warn!("the log of pod {pod} cannot be read: {error}");
                let may_not = matches!(error, K8sError::Forbidden { .. } | K8sError::UserForbidden { .. });
                if ended || may_not {
                    self.read.insert(pod.to_owned());
                }
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        let (mut lines, mut repeated) = (pin!(lines), 0);
        while let Ok(Some(Ok(line))) = tokio::time::timeout(SILENCE, lines.next()).await {
            let (time, text) = line.split_once(' ').unwrap_or((&line, ""));
            let at = DateTime::parse_from_rfc3339(time);
            let known = (known.as_ref(), &mut repeated);
            if at.is_err() || at.is_ok_and(|at| Last::is_new(&mut self.last, (pod, at), known)) {
                print_log(text)?;
            }
        }
        if ended {
            self.read.insert(pod.to_owned());
        }
        Ok(())
    }

    /// Reports why a pod does not start, if the reason is new, and returns whether it lasts for too long.
    fn report(&mut self, pod: &JobPod) -> bool {
        let Some(trouble) = &pod.trouble else {
            self.trouble = None;
            return false;
        };
        // Further reasons are not reported: the kubelet alternates between ErrImagePull and ImagePullBackOff.
        if let Some((_, reads)) = &mut self.trouble {
            *reads = reads.saturating_add(1);
            self.patience.is_some_and(|patience| *reads > patience)
        } else {
            tracing::warn!("pod {} does not start: {trouble}", pod.name);
            self.trouble = Some((trouble.clone(), 0));
            false
        }
    }

    /// Counts a read in which the Job has no pod, reports it once, and returns whether it lasts for too long.
    fn lacks_pod(&mut self) -> bool {
        self.without_pod = self.without_pod.saturating_add(1);
        let (name, namespace) = (&self.job.name, self.k8s.namespace());
        let text = format!("Job {name} has no pod yet. See: kubectl -n {namespace} describe job {name}");
        if self.patience.is_some_and(|patience| self.without_pod > patience) {
            tracing::error!("{text}");
            return true;
        }
        if self.without_pod == READS_WITHOUT_POD {
            tracing::warn!("{text}");
        }
        false
    }

    fn gives_up(&self) -> String {
        let why = self.trouble.as_ref().map(|(why, _)| why.as_str()).unwrap_or_default();
        not_started(self.job, self.k8s.namespace(), why)
    }

    /// Counts a failed read of the Job, and returns the exit code if it makes no sense to read again.
    async fn failed(&mut self, error: K8sError) -> Option<Exit> {
        self.failed_reads = self.failed_reads.saturating_add(1);
        if !error.is_transient() || self.failed_reads >= FAILED_READS {
            return Some(not_seen(&kube_failure(error)));
        }
        if self.failed_reads == 1 {
            tracing::warn!("{error}; trying again");
        }
        pause(PAUSE).await;
        None
    }
}

/// Returns the message about a Job whose pods do not start.
fn not_started(job: &CommandJob, namespace: &str, why: &str) -> String {
    let (name, release) = (&job.name, job.release.as_deref().unwrap_or(CRON_JOB));
    format!(
        "no pod of Job {name} started within 2 minutes: {why}. Check the values of the chart: helm -n {namespace} \
         get values {release}"
    )
}

/// Decides what comes next: the logs of all pods are printed, then the exit code of the last one counts.
fn step<'a>(state: &'a JobState, read: &BTreeSet<String>) -> Step<'a> {
    if let Some(pod) = state.pods.iter().find(|pod| !read.contains(&pod.name)) {
        // A pod that was evicted before its container started counts as begun, and has no exit code.
        return match (pod.has_ended, pod.exit.is_some(), pod.has_begun) {
            (true, true, _) | (false, _, true) => Step::Read(pod),
            (true, false, _) => Step::Pass(pod),
            (false, _, false) => Step::Await(pod),
        };
    }
    let last = state.pods.last().and_then(|pod| pod.exit);
    match (state.completed, last) {
        (_, Some(code)) if FINAL.contains(&code) => Step::End(Exit::of_job(code)),
        (Some(true), _) => Step::End(Exit::Finished),
        (Some(false), code) => Step::End(code.map_or(Exit::Halted, Exit::of_job)),
        (None, _) => Step::AwaitPod,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines that are printed of a log that is opened twice.
    fn printed(first: &[(&str, &str)], again: &[(&str, &str)]) -> Vec<String> {
        let (mut last, mut printed) = (None, Vec::new());
        for lines in [first, again] {
            let (known, mut repeated) = (last.clone(), 0);
            for (time, text) in lines {
                let at = DateTime::parse_from_rfc3339(time).unwrap();
                if Last::is_new(&mut last, ("pod", at), (known.as_ref(), &mut repeated)) {
                    printed.push((*text).to_owned());
                }
            }
        }
        printed
    }

    #[test]
    fn lines_with_one_time_are_printed_once_each() {
        let (one, two) = ("2026-11-29T18:00:00.5Z", "2026-11-29T18:00:01.5Z");
        let first = [(one, "a"), (one, "b"), (one, "c")];
        assert_eq!(printed(&first, &[]), ["a", "b", "c"]);
        let again = [(one, "a"), (one, "b"), (one, "c"), (one, "d"), (two, "e"), (two, "f")];
        assert_eq!(printed(&first, &again), ["a", "b", "c", "d", "e", "f"]);
        // Times with another offset are compared by their moment.
        let local = [("2026-11-29T19:00:00.5+01:00", "c"), ("2026-11-29T19:00:01.5+01:00", "e")];
        assert_eq!(printed(&[(one, "c")], &local), ["c", "e"]);
    }

    #[test]
    fn values_to_check_are_those_of_the_release() {
        let job = |release| CommandJob { name: "look".to_owned(), uid: String::new(), release };
        let text = |release| not_started(&job(release), "ceph-a", "ImagePullBackOff");
        assert!(text(Some("storage".to_owned())).ends_with("helm -n ceph-a get values storage"));
        assert!(text(None).ends_with("helm -n ceph-a get values osd-migrate"));
    }

    fn pod(name: &str, has_begun: bool, exit: Option<i32>) -> JobPod {
        JobPod { name: name.to_owned(), has_begun, has_ended: exit.is_some(), exit, trouble: None }
    }

    #[test]
    fn job_ends_with_the_exit_code_of_its_last_pod() {
        let read = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let state = |completed, exit| JobState {
            completed,
            pods: vec![pod("a", true, Some(137)), pod("b", true, exit)],
        };
        for (code, exit) in [
            (0, Exit::Finished),
            (2, Exit::WrongUsage),
            (3, Exit::Refused),
            (10, Exit::Halted),
            (11, Exit::SomeQuarantined),
            (12, Exit::SomeNotMigrated),
        ] {
            // The Job's controller reports the end a little later.
            assert_eq!(step(&state(None, Some(code)), &read), Step::End(exit));
        }
        assert_eq!(step(&state(None, Some(1)), &read), Step::AwaitPod, "the Job starts another pod");
        assert_eq!(step(&state(Some(false), Some(1)), &read), Step::End(Exit::TryAgain));
        assert_eq!(step(&state(Some(false), Some(137)), &read), Step::End(Exit::OfJob(137)));
        assert_eq!(step(&state(Some(false), None), &read), Step::End(Exit::Halted));
    }

    #[test]
    fn logs_of_all_pods_are_read_in_their_order() {
        let pods = vec![pod("a", true, Some(1)), pod("b", true, None), pod("c", false, None)];
        let state = JobState { completed: None, pods };
        let mut read = BTreeSet::new();
        for name in ["a", "b"] {
            assert!(matches!(step(&state, &read), Step::Read(pod) if pod.name == name));
            read.insert(name.to_owned());
        }
        assert!(matches!(step(&state, &read), Step::Await(pod) if pod.name == "c"));
    }

    #[test]
    fn pod_that_was_evicted_before_its_start_has_no_log() {
        let evicted = JobPod { has_ended: true, ..pod("a", true, None) };
        let state = JobState { completed: None, pods: vec![evicted] };
        assert!(matches!(step(&state, &BTreeSet::new()), Step::Pass(_)));
    }
}
