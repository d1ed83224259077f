//! The behaviour of test builds is behind the feature `failpoint`, which only test builds enable.

use std::fs;
use std::path::Path;

use crate::purity::sources;

const ONLY_THERE: &str = "#[cfg(feature = \"failpoint\")]";

#[test]
fn failpoint_is_compiled_only_with_its_feature() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut uses = 0;
    for path in sources(&root.join("src")) {
        if path.ends_with("failpoint.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2) {
            if pair[1].contains("failpoint::") || pair[1].contains("mod failpoint") {
                assert_eq!(pair[0], ONLY_THERE, "{}: before `{}`", path.display(), pair[1]);
                uses += 1;
            }
        }
        assert!(
            !text.contains("OSD_MIGRATE_FAILPOINT"),
            "{}: a switch outside src/failpoint.rs",
            path.display()
        );
    }
    assert!(uses >= 7, "the failpoints moved: {uses} uses");
}

#[test]
fn image_has_the_released_binary_without_failpoints() {
    let read = |name: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    // build/image puts into the folders of the architectures what the Dockerfile copies.
    assert!(read("image/Dockerfile").contains("\nCOPY --chmod=0755 ${TARGETARCH}/ /\n"));
    assert!(read("build/image").contains("\n  program=$(released \"$architecture\")\n"));
    assert!(
        read("build/lib.sh")
            .contains("\nreleased() { echo \"$TARGET/$(machine_of \"$1\")-unknown-linux-gnu/release/")
    );
    let with_failpoints: Vec<_> =
        read("build/binary").lines().filter(|line| line.contains("--features")).map(str::to_owned).collect();
    assert_eq!(with_failpoints, ["  of_profile x86_64 --profile test --features failpoint"]);
}

#[test]
fn failpoint_feature_is_never_enabled_by_default() {
    let features = |path: &str| {
        let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let features = manifest.split_once("[features]").unwrap().1.split("\n[").next().unwrap().to_owned();
        let lines = features.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(features("Cargo.toml"), ["failpoint = [\"osd-migrate-core/failpoint\", \"tokio/test-util\"]"]);
    assert_eq!(features("core/Cargo.toml"), ["failpoint = []"]);
}
