//! Output for the caller of a command.

use std::io::Write;

/// Prints data to stdout.
///
/// A reader that closed the pipe is no error of this program.
pub(super) fn print(text: &str) {
    let _gone = writeln!(std::io::stdout().lock(), "{text}").is_err();
}

/// Prints a line of a pod's log: what the program printed goes to stdout, and what it logged to stderr.
///
/// A pod has one log for both. A line that was logged begins with its time and its level, or is a JSON object
/// with both.
pub(super) fn print_log(line: &str) {
    if is_logged(line) {
        let _gone = writeln!(std::io::stderr().lock(), "{line}").is_err();
    } else {
        print(line);
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
}
