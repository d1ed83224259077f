//! `plan`: the windows in which a run starts OSDs.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::domain::windows::Windows;

/// Returns the windows, and whether one is open now or when the next one opens; none if there is no window.
pub fn windows_text(windows: &Windows, now: DateTime<Utc>) -> Option<String> {
    let state = match (windows.is_open_at(now), windows.opens_after(now)) {
        (true, _) => "open now".to_owned(),
        (false, Some(at)) => format!("closed now, opens at {}", windows.zone().format(at)),
        (false, None) => "never opens".to_owned(),
    };
    (!windows.is_empty()).then(|| format!("Window: {windows}; {state}"))
}

/// Returns the windows for programs; null if there is no window.
pub fn windows_json(windows: &Windows, now: DateTime<Utc>) -> Value {
    if windows.is_empty() {
        return Value::Null;
    }
    let is_open = windows.is_open_at(now);
    let opens_at = windows.opens_after(now).filter(|_| !is_open);
    json!({
        "timeZone": windows.zone().name(),
        "windows": windows.each().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "isOpen": is_open,
        "opensAt": opens_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)),
    })
}
