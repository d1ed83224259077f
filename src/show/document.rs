//! Documents of `plan` and `status` for programs.

use serde_json::Value;

/// Version of the documents. A field may be added to a version, and none is renamed or removed.
pub(super) const API_VERSION: &str = "osd-migrate.io/v1";

/// Returns a document as YAML.
pub fn yaml(document: &Value) -> String {
    serde_saphyr::to_string(document)
        .map_or_else(|error| format!("# {error}"), |text| text.trim_end().to_owned())
}
