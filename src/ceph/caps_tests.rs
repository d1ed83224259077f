//! Tests of the capabilities against the sources of this folder. Every command that is sent is allowed, every
//! allowed command is sent, and no other command is allowed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::ceph::command::Command;
use crate::domain::recovery::RecoveryOption;

/// First words of Ceph's commands (`MonCommands.h`, `MgrCommands.h`), and the commands of one word.
const MODULES: [&str; 10] =
    ["auth", "balancer", "config", "config-key", "device", "log", "mgr", "mon", "osd", "pg"];
const WHOLE: [&str; 7] = ["df", "fsid", "health", "quorum_status", "report", "status", "versions"];

/// Commands that only the session with the admin key sends, to create the user.
const BY_ADMIN: [&str; 3] = ["auth caps", "auth get", "auth get-or-create"];

/// Everything that a run may need.
const ALL: Needs = Needs { purge: true, scrub: true, recovery: true };

/// Decides as the daemons do whether a command is allowed.
pub(in crate::ceph) fn allow(command: &Command) -> bool {
    let sent: Value = serde_json::from_slice(command.to_c_string().to_bytes()).unwrap();
    if command.daemon == Daemon::Mon && READABLE.contains(&command.name) {
        return true;
    }
    ALL.grants().any(|grant| {
        (grant.daemon, grant.command) == (command.daemon, command.name)
            && grant
                .with
                .iter()
                .all(|(argument, must)| argument_of(&sent, argument).is_some_and(|v| is(must, &v)))
    })
}

/// Returns an argument as a constraint sees it.
///
/// Capabilities are seen one by one: `caps_mon` of `"caps": ["mon", "..."]`
/// (`Monitor::_generate_command_map`).
fn argument_of(sent: &Value, argument: &str) -> Option<String> {
    let Some(daemon) = argument.strip_prefix("caps_") else {
        return sent.get(argument)?.as_str().map(str::to_owned);
    };
    let caps: Vec<_> = sent.get("caps")?.as_array()?.iter().filter_map(Value::as_str).collect();
    caps.chunks(2).find(|pair| pair[0] == daemon).map(|pair| pair[1].to_owned())
}

fn is(must: &Must, value: &str) -> bool {
    match must {
        Must::Be(text) => value == *text,
        Must::BeginWith(text) => value.starts_with(text),
        Must::BeOneOf(text) => text.split('|').any(|one| one == value),
    }
}

/// Returns the names of commands in the sources of this folder, tests excluded: strings that begin with a
/// word of Ceph's.
fn in_sources() -> Vec<(String, BTreeSet<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ceph");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "caps.rs" || name.ends_with("_tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let strings =
            lines.flat_map(|line| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
        let is_command = |text: &String| {
            let module = text.split_once(' ').map(|(module, _)| module);
            let is_word = |c: char| c.is_ascii_lowercase() || "- _".contains(c);
            (module.is_some_and(|word| MODULES.contains(&word)) && text.chars().all(is_word))
                || WHOLE.contains(&text.as_str())
        };
        let names: BTreeSet<String> = strings.filter(is_command).collect();
        let sends = code.contains("Command::mon(") || code.contains("Command::mgr(");
        if sends {
            assert!(!names.is_empty(), "{name} sends a command that this test can't read the name of");
            found.push((name, names));
        }
    }
    found
}

#[test]
fn allowed_ceph_commands_are_exactly_those_that_are_sent() {
    let mut sent = BTreeSet::new();
    for (file, names) in in_sources() {
        if file == "own_user.rs" {
            assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), BY_ADMIN);
            continue;
        }
        sent.extend(names);
    }
    let allowed: BTreeSet<String> =
        ALL.grants().map(|g| g.command).chain(READABLE).map(str::to_owned).collect();
    assert_eq!(sent, allowed);
    assert!(sent.len() > 20, "{sent:?}");
}

#[test]
fn caps_reject_any_other_entity_flag_profile_or_command() {
    let get = |entity: &str| Command::mon("auth get").with("entity", entity);
    let make = |caps: Value| {
        Command::mon("auth get-or-create").with("entity", "client.bootstrap-osd").with("caps", caps)
    };
    assert!(allow(&get("osd.3")) && allow(&get("client.bootstrap-osd")));
    for entity in
        ["client.admin", "client.osd-migrate", "client.osd-lockbox.x", "mon.", "client.bootstrap-osd2"]
    {
        assert!(!allow(&get(entity)), "{entity}");
    }
    assert!(allow(&make(json!(["mon", "allow profile bootstrap-osd"]))));
    assert!(!allow(&make(json!(["mon", "allow *"]))) && !allow(&make(json!([]))));
    let remove = |entity: &str| Command::mon("auth rm").with("entity", entity);
    assert!(allow(&remove("client.bootstrap-osd")) && !allow(&remove("osd.3")));
    let set = |flags: &str| Command::mon("osd set-group").with("flags", flags);
    assert!(allow(&set("noout")) && allow(&set("noout,noin")));
    assert!(!allow(&set("noup")) && !allow(&set("noout,noup")));
    for other in [
        Command::mon("osd pool rm"),
        Command::mon("config-key rm"),
        Command::mon("auth ls"),
        Command::mgr("osd destroy"),
    ] {
        assert!(!allow(&other), "{other:?}");
    }
}

#[test]
fn caps_of_a_purge_are_the_usual_ones_and_two_more() {
    let (usual, purge) = (on_mons(Needs::USUAL), on_mons(Needs::PURGE));
    assert_eq!(purge, format!(r#"{usual}, allow command "osd purge-actual", allow command "osd crush rm""#));
    assert!(!usual.contains("purge-actual"));
    assert!(by_hand("caps", Needs::PURGE).contains(&format!("mon '{purge}'")));
}

#[test]
fn caps_to_set_flags_are_those_of_scrubs_and_only_on_demand() {
    let (usual, scrub) = (on_mons(Needs::USUAL), on_mons(Needs::SCRUB));
    let (set, unset) = ["osd set", "osd unset"]
        .map(|name| format!(r#", allow command "{name}" with key regex "noscrub|nodeep-scrub""#))
        .into();
    assert_eq!(scrub, format!("{usual}{set}{unset}"));
    assert!(!usual.contains("scrub"));
    assert_eq!(on_mons(Needs::SCRUB.and(Needs::PURGE).and(Needs::RECOVERY)), on_mons(ALL));
    assert_eq!(
        [Needs::of("osd unset"), Needs::of("osd purge-actual"), Needs::of("osd new")],
        [Needs::SCRUB, Needs::PURGE, Needs::USUAL]
    );
}

#[test]
fn caps_to_set_options_are_those_of_recovery_and_only_on_demand() {
    let (usual, recovery) = (on_mons(Needs::USUAL), on_mons(Needs::RECOVERY));
    let names = RecoveryOption::ALL.map(RecoveryOption::name).join("|");
    let options = format!(r#"who="osd" name regex "{names}""#);
    let set = format!(r#", allow command "config set" with {options} value regex "high_recovery_ops|3|0""#);
    let rm = format!(r#", allow command "config rm" with {options}"#);
    assert_eq!(recovery, format!("{usual}{set}{rm}"));
    assert!(!usual.contains("config set") && !on_mons(Needs::SCRUB).contains("config set"));
    assert_eq!([Needs::of("config set"), Needs::of("config rm")], [Needs::RECOVERY; 2]);
}

#[test]
fn caps_text_is_exact_and_has_no_single_quote() {
    let text = on_mons(Needs::USUAL);
    assert!(text.starts_with(
        r#"allow r, allow command "config-key ls", allow command "auth get" with entity prefix "osd.", "#
    ));
    assert!(text.contains(
        r#"allow command "auth get-or-create" with entity="client.bootstrap-osd" caps_mon="allow profile bootstrap-osd""#
    ));
    assert!(
        text.contains(r#"allow command "osd set-group" with flags regex "noout|noin|noout,noin""#),
        "{text}"
    );
    assert!(!text.contains('\'') && !on_mgr().contains('\''), "it stands between single quotes");
    assert_eq!(
        on_mgr(),
        r#"allow command "pg dump", allow command "pg ls", allow command "pg ls-by-osd", allow command "pg stat", allow command "osd df", allow command "osd perf", allow command "osd ok-to-stop", allow command "osd safe-to-destroy""#
    );
}

#[test]
fn install_guide_has_the_exact_auth_get_or_create_command() {
    let note =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/install.md")).unwrap();
    // The page breaks the command into lines: a backslash at the end of each line, a space at each break.
    let joined = note.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined.contains(&by_hand("get-or-create", Needs::USUAL)),
        "not in docs/guides/install.md: {}",
        by_hand("get-or-create", Needs::USUAL)
    );
}
