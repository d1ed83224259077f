//! External commands: each has a time limit and a process group of its own, which is killed when nothing
//! waits for it any more.

use std::ffi::OsStr;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::node::error::NodeError;
use crate::node::tools::redact::last_lines;

/// Limit of commands that read a device or ask for a version: a disk that answers no read for a minute is not
/// fit for work.
pub(crate) const QUICK: Duration = Duration::from_secs(60);
/// Limit of commands that talk to the mons: above their own `--connect-timeout`, below the time that the
/// runner waits.
pub(crate) const MONS: Duration = Duration::from_secs(45);

/// Output and exit status of a command.
pub(crate) struct CommandOutput {
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// Returns the output, or an error with its last lines if the command failed.
    pub(crate) fn good(self) -> Result<Self, NodeError> {
        if self.status.success() { Ok(self) } else { Err(self.into_error()) }
    }

    /// Converts the output into an error.
    pub(crate) fn into_error(self) -> NodeError {
        let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        NodeError::Ended { command: self.command, status: self.status, last: last_lines(said) }
    }
}

/// Process group that is killed on drop.
///
/// It is `None` once the group's leader has ended.
pub(crate) struct Group(pub(crate) Option<u32>);

impl Group {
    pub(crate) fn kill(&mut self) {
        let pid = self.0.take().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // An error here says that the group is gone, which is the intended state.
            kill_process_group(pid, Signal::KILL).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command that may be killed at any time; `stdin` is the only way to pass a secret.
pub(crate) async fn run<A: AsRef<OsStr>>(
    program: &str,
    args: &[A],
    stdin: Option<&[u8]>,
    limit: Duration,
) -> Result<CommandOutput, NodeError> {
    let command = words(program, args);
    let mut child = program_named(program)
        .args(args)
        .process_group(0)
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| NodeError::Start { command: command.clone(), source })?;
    let mut group = Group(child.id());
    let pipe = child.stdin.take();
    let all = async move {
        if let (Some(mut pipe), Some(bytes)) = (pipe, stdin) {
            // A command that does not accept its input reports that by its status.
            pipe.write_all(bytes).await.ok();
        }
        child.wait_with_output().await
    };
    match tokio::time::timeout(limit, all).await {
        Ok(Ok(output)) => {
            group.0 = None;
            Ok(CommandOutput {
                command,
                status: output.status,
                stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            })
        }
        Ok(Err(source)) => Err(NodeError::Start { command, source }),
        Err(_) => Err(NodeError::TimedOut { command, secs: limit.as_secs() }),
    }
}

/// Returns the command for a program to start.
#[expect(clippy::disallowed_methods, reason = "the one place where the agent starts programs")]
pub(crate) fn program_named(name: &str) -> Command {
    Command::new(name)
}

/// Returns the command line for messages.
pub(crate) fn words<A: AsRef<OsStr>>(program: &str, args: &[A]) -> String {
    let mut words = program.to_owned();
    for arg in args {
        words.push(' ');
        words.push_str(&arg.as_ref().to_string_lossy());
    }
    words
}

/// Runs work that waits for disks on a thread that may block.
///
/// A thread that hangs in the kernel is abandoned after `limit`: the report is still written, and the pod
/// shows what hangs.
pub(crate) async fn blocking<T: Send + 'static>(
    operation: &'static str,
    subject: String,
    limit: Duration,
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    match tokio::time::timeout(limit, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => done,
        Ok(Err(source)) => Err(NodeError::Io { operation, subject, source: std::io::Error::other(source) }),
        Err(_) => {
            Err(NodeError::TimedOut { command: format!("{operation} {subject}"), secs: limit.as_secs() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn command_that_times_out_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let script = format!("(sleep 1; touch {}) & sleep 60", mark.display());
        let answer = run("sh", &["-c", &script], None, Duration::from_millis(200)).await;
        assert!(matches!(answer, Err(NodeError::TimedOut { .. })));
        run("sleep", &["1.3"], None, QUICK).await.unwrap();
        assert!(!mark.exists(), "a child outlived its group");
    }

    #[tokio::test]
    async fn command_error_quotes_the_last_lines_and_redacts_keys() {
        let script = "cat >&2; echo AQDkaCBpGd3pNBAAk0kgVbmbgP4CcbZ7pDk0Xw== >&2; exit 3";
        let answer = run("sh", &["-c", script], Some(b"given\n"), QUICK).await.unwrap();
        let said = answer.good().err().unwrap().to_string();
        assert!(said.contains("given | <key>") && said.contains('3'), "{said}");
    }
}
