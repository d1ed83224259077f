//! Answers of real clusters for the tests of the parsers: `tests/suite/fixtures`.

/// Releases whose answers were captured, in the same states.
pub(super) const RELEASES: [&str; 3] = ["16.2.15", "18.2.7", "20.2.4"];

/// Returns the answer of a release, by the name of its file.
pub(super) fn answer(release: &str, name: &str) -> Vec<u8> {
    read(&format!("ceph/{release}/{name}"))
}

/// Returns an answer of a cluster with legacy OSDs: `fixtures/legacy`.
pub(super) fn legacy(release: &str, name: &str) -> Vec<u8> {
    read(&format!("legacy/{release}/readers/{name}"))
}

/// Returns an answer that is not JSON, by the path of its file.
pub(super) fn text(path: &str) -> String {
    String::from_utf8(file(path)).unwrap()
}

fn read(name: &str) -> Vec<u8> {
    file(&format!("{name}.json"))
}

fn file(path: &str) -> Vec<u8> {
    let path = format!("{}/tests/suite/fixtures/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
