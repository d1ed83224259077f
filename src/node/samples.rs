//! Output of the tools of nodes of three releases, for the tests alongside the parsers:
//! `tests/suite/fixtures`.

/// Releases whose tools were run on the same disks.
pub(super) const RELEASES: [&str; 3] = ["16.2.15", "18.2.7", "20.2.4"];

/// Returns captured output about disks and their contents: `fixtures/inventory`.
pub(super) fn said(release: &str, name: &str) -> String {
    read(&format!("inventory/{release}/{name}"))
}

/// Returns the captured label of a part of a legacy OSD, by kind: `fixtures/legacy`.
pub(super) fn label(release: &str, kind: &str, part: &str) -> String {
    read(&format!("legacy/{release}/readers/label-{kind}-{part}.json"))
}

fn read(name: &str) -> String {
    let path = format!("{}/tests/suite/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
