//! What real clusters answered, for the tests beside the parsers: `tests/suite/fixtures/ceph`.

/// The releases that were asked, in the same states.
pub(super) const RELEASES: [&str; 3] = ["16.2.15", "18.2.7", "20.2.4"];

/// The answer of a release, by its file's name.
pub(super) fn answer(release: &str, name: &str) -> Vec<u8> {
    let path = format!("{}/tests/suite/fixtures/ceph/{release}/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
