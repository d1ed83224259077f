//! Command as Ceph takes it: a JSON object with its prefix and arguments, for a mon or the mgr.

use std::ffi::CString;

use serde_json::{Map, Value};

use crate::ceph::librados::Daemon;

/// Command and the daemon that answers it.
#[derive(Debug, Clone)]
pub(super) struct Command {
    /// Name, as in `ceph <name>`.
    pub(super) name: &'static str,
    /// Daemon that answers.
    pub(super) daemon: Daemon,
    arguments: Map<String, Value>,
}

impl Command {
    /// Creates a command that a mon answers.
    pub(super) fn mon(name: &'static str) -> Self {
        Self::new(name, Daemon::Mon)
    }

    /// Creates a query that the mgr answers.
    ///
    /// Acts never use the mgr: librados keeps a mgr command without an answer and sends it again to the next
    /// mgr (`MgrClient::reconnect`), however late.
    pub(super) fn mgr(name: &'static str) -> Self {
        Self::new(name, Daemon::Mgr)
    }

    fn new(name: &'static str, daemon: Daemon) -> Self {
        let arguments = [("prefix", name), ("format", "json")];
        Self {
            name,
            daemon,
            arguments: arguments.map(|(k, v)| (k.to_owned(), v.into())).into_iter().collect(),
        }
    }

    /// Adds an argument.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.arguments.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the text that is sent.
    ///
    /// JSON escapes NUL, so the text contains none.
    pub(super) fn to_c_string(&self) -> CString {
        CString::new(Value::Object(self.arguments.clone()).to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mon_command_is_one_json_object() {
        let command = Command::mon("osd new").with("id", 3).with("uuid", "a\0b");
        let sent = command.to_c_string().into_string().unwrap();
        assert_eq!(sent, r#"{"format":"json","id":3,"prefix":"osd new","uuid":"a\u0000b"}"#);
    }
}
