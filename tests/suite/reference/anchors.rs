//! The anchors of the pages with entries: one for each code, so that a message can be linked.

use std::collections::BTreeSet;

/// Prefix of a code in its anchor, by heading.
///
/// Codes of messages have none: no two are the same.
const PREFIXES: [(&str, &str); 4] =
    [("# Exit codes", "exit-"), ("# Events", "event-"), ("## Phase by phase", "phase-"), ("## ", "")];

/// Returns a page with an anchor before the first entry of each code, and with no other.
pub(super) fn anchored(page: &str) -> String {
    let (mut prefix, mut set, mut lines) = ("", BTreeSet::new(), Vec::new());
    for line in page.lines() {
        if let Some((_, of_heading)) = PREFIXES.iter().find(|(heading, _)| line.starts_with(heading)) {
            prefix = of_heading;
        }
        if line.starts_with("- <a id=") {
            assert!(line.ends_with("</a>"), "an anchor has a line of its own: {line}");
            continue;
        }
        let entry =
            line.strip_prefix("- ").or(line.strip_prefix("  ")).filter(|rest| rest.starts_with("**`"));
        let Some((entry, (code, _))) = entry.and_then(|entry| Some((entry, entry[3..].split_once("`**")?)))
        else {
            lines.push(line.to_owned());
            continue;
        };
        let id = format!("{prefix}{}", kebab(code));
        if set.insert(id.clone()) {
            lines.push(format!("- <a id=\"{id}\"></a>"));
            lines.push(format!("  {entry}"));
        } else {
            lines.push(format!("- {entry}"));
        }
    }
    lines.join("\n") + "\n"
}

/// Converts `LedgerLost` to `ledger-lost`.
fn kebab(code: &str) -> String {
    let mut text = String::new();
    for c in code.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

#[test]
fn anchor_is_set_once_for_each_code() {
    let page = "## Phase by phase\n\n- **`LedgerLost`** a\n  b\n- **`LedgerLost`** c\n## Reasons\n- **`down`** d\n- *e*\n";
    let set = "## Phase by phase\n\n- <a id=\"phase-ledger-lost\"></a>\n  **`LedgerLost`** a\n  b\n- **`LedgerLost`** c\n\
               ## Reasons\n- <a id=\"down\"></a>\n  **`down`** d\n- *e*\n";
    assert_eq!(anchored(page), set);
    assert_eq!(anchored(set), set);
}
