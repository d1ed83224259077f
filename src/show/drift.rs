//! Drift findings, below the plan.

use serde_json::{Value, json};

use crate::domain::drift::Finding;

/// Returns one line for each finding, or none if there is no finding.
pub fn drift_text(found: &[Finding]) -> Option<String> {
    let lines: Vec<_> = found.iter().map(|finding| format!("drift: {finding}")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the findings for programs.
pub fn drift_json(found: &[Finding]) -> Value {
    found.iter().map(|finding| json!({"what": finding.code(), "message": finding.to_string()})).collect()
}
