//! Output for the caller of a command.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::{Exit, failed};
use crate::live::pause;

/// Pause between two looks at the reader of the output.
const PAUSE: Duration = Duration::from_millis(500);

/// Prints data to stdout.
///
/// A reader that closed the pipe is no error of this program: what the command does besides printing is
/// completed. The error of any other failure, such as a full disk, is logged.
pub(super) fn print(text: &str) -> Result<(), Exit> {
    let mut stdout = std::io::stdout().lock();
    written(writeln!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// Returns the exit code of output that could not be written.
pub fn written(result: std::io::Result<()>) -> Result<(), Exit> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(failed(&format!("the output could not be written: {error}"), Exit::TryAgain))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Waits until the reader of stdout has closed the pipe.
///
/// A command that prints again and again would otherwise notice that only at its next line.
pub(super) async fn closed() {
    while !is_closed() {
        pause(PAUSE).await;
    }
}

fn is_closed() -> bool {
    let stdout = std::io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut polled, Some(&at_once)).is_ok() && polled.iter().any(|fd| fd.revents().intersects(gone))
}

/// Prints a line of a pod's log: what the program printed goes to stdout, and what it logged to stderr.
///
/// A pod has one log for both. A line that was logged begins with its time and its level, or is a JSON object
/// with both.
pub(super) fn print_log(line: &str) -> Result<(), Exit> {
    if is_logged(line) {
        let _gone = writeln!(std::io::stderr().lock(), "{line}").is_err();
        Ok(())
    } else {
        print(line)
    }
}

fn is_logged(line: &str) -> bool {
    if line.starts_with("{\"timestamp\":") {
        let object: Option<serde_json::Value> = serde_json::from_str(line).ok();
        return object.is_some_and(|object| object.get("level").is_some_and(serde_json::Value::is_string));
    }
    let mut words = line.split_whitespace();
    let time = words.next().is_some_and(|word| chrono::DateTime::parse_from_rfc3339(word).is_ok());
    time && words.next().is_some_and(|level| ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(&level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_logged_are_told_from_output() {
        assert!(is_logged("2026-03-01T03:00:00.123456Z  INFO created Job x"));
        assert!(is_logged("2026-03-01T03:00:00.123456Z ERROR osd.5: halted"));
        assert!(is_logged(
            r#"{"timestamp":"2026-03-01T03:00:00Z","level":"INFO","message":"x","code":"stop"}"#
        ));
        for output in [
            "",
            "{",
            r#"{"timestamp":"2026-03-01T03:00:00Z"}"#,
            r#"{"timestamp":"#,
            "  \"osds\": [",
            "osd.5  h1",
            "2026-03-01T03:00:00Z done",
            "INFO 5",
        ] {
            assert!(!is_logged(output), "{output}");
        }
    }

    #[test]
    fn full_disk_is_an_error_and_a_closed_pipe_is_none() {
        assert_eq!(written(Err(ErrorKind::BrokenPipe.into())), Ok(()));
        assert_eq!(written(Err(ErrorKind::StorageFull.into())), Err(Exit::TryAgain));
    }
}
