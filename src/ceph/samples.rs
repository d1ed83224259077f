//! What real clusters answered, for the tests beside the parsers: `tests/suite/fixtures`.

/// The releases that were asked, in the same states.
pub(super) const RELEASES: [&str; 3] = ["16.2.15", "18.2.7", "20.2.4"];

/// The answer of a release, by its file's name.
pub(super) fn answer(release: &str, name: &str) -> Vec<u8> {
    read(&format!("ceph/{release}/{name}"))
}

/// The same of a cluster of legacy OSDs: `fixtures/legacy`.
pub(super) fn legacy(release: &str, name: &str) -> Vec<u8> {
    read(&format!("legacy/{release}/readers/{name}"))
}

fn read(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/suite/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
