//! Errors on a node: every variant names the operation and its subject.

use std::path::Path;
use std::process::ExitStatus;

use crate::domain::inspection::NodeProblem;

/// An error of the node agent.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A file, folder or device could not be read or written.
    #[error("{operation} {subject}: {source}")]
    Io {
        /// the operation, in the infinitive: `read`, `open exclusively`
        operation: &'static str,
        /// the path
        subject: String,
        /// the kernel's answer
        source: std::io::Error,
    },
    /// A command could not be started.
    #[error("start `{command}`: {source}")]
    Start {
        /// the command line
        command: String,
        /// the kernel's answer
        source: std::io::Error,
    },
    /// A command gave no answer in time and was killed with its process group.
    #[error("`{command}` did not respond within {secs} s")]
    TimedOut {
        /// the command line
        command: String,
        /// the limit
        secs: u64,
    },
    /// A command ended with an error.
    #[error("`{command}` ended with {status}: {last}")]
    Ended {
        /// the command line
        command: String,
        /// the exit status
        status: ExitStatus,
        /// last lines of the output, keys redacted
        last: String,
    },
    /// The output of a command, or the content of a file, has an unknown form.
    #[error("{subject} cannot be parsed: {why}")]
    Unreadable {
        /// the command or file
        subject: String,
        /// what is wrong with it
        why: String,
    },
    /// Another agent, or a ceph-volume that it left running, has the OSD's lock.
    #[error("{path} is locked by another agent, or by a ceph-volume process that another agent left running")]
    Busy {
        /// the lock file
        path: String,
    },
    /// The state of the node is not the recorded state; nothing was touched.
    #[error("{0}")]
    Refused(String),
    /// A device that the new OSD is to get carries data of another owner; nothing was touched.
    #[error("{0}")]
    Foreign(String),
    /// The work was done, but the device does not show it.
    #[error("{0}")]
    NotDone(String),
}

impl NodeError {
    /// Returns a closure for `map_err` that adds the operation and the path to an error of the kernel.
    pub(crate) fn io<E: Into<std::io::Error>>(
        operation: &'static str,
        subject: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        let subject = subject.as_ref().display().to_string();
        move |source| Self::Io { operation, subject, source: source.into() }
    }

    /// Converts the error into the problem that the report carries.
    pub(crate) fn into_problem(self) -> NodeProblem {
        let message = self.to_string();
        match self {
            Self::Busy { .. } => NodeProblem::Busy(message),
            Self::Refused(_) => NodeProblem::Refused(message),
            Self::Foreign(_) => NodeProblem::Foreign(message),
            Self::Io { .. }
            | Self::Start { .. }
            | Self::TimedOut { .. }
            | Self::Ended { .. }
            | Self::Unreadable { .. }
            | Self::NotDone(_) => NodeProblem::Failed(message),
        }
    }
}
