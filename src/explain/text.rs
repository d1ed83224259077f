//! An entry as text, with what belongs to it, and the list of all codes.

use std::collections::BTreeSet;

use super::entries::{Entry, Pages, Section};
use super::markdown::{columns, lines, plain, targets};
use crate::domain::commands::Names;
use crate::layout::{Width, wrapped};

/// Indentation of the texts below a code.
const INDENT: &str = "  ";

/// Section with the definitions of `ceph` and `hand`, which remarks type.
const DEFINITIONS: (&str, &str) = ("recover-by-hand.md", "before-you-type");

/// Returns the entries of one code, and the sections of the guides that they refer to.
///
/// The names of a cluster replace those of the examples, if they are known.
pub fn entry_text(pages: &Pages, entries: &[&Entry], names: Option<&Names>, width: Width) -> String {
    let fill = |text: &str| names.map_or_else(|| text.to_owned(), |names| names.in_page(text));
    let mut parts = Vec::new();
    let mut above: Vec<&Section> = Vec::new();
    for entry in entries {
        parts.push(one(entry, width, &fill));
        above.extend(pages.sections_of(entry));
    }
    let mut seen = BTreeSet::new();
    above.retain(|section| seen.insert(section.heading));
    parts.extend(above.iter().filter_map(|section| about(section, width, &fill)));
    parts.extend(see_also(entries, pages));
    parts.extend(guides(entries, pages).iter().map(|section| guide(section, width, &fill)));
    if names.is_none() {
        parts.push(without_names(entries.first().copied(), width));
    }
    parts.join("\n\n")
}

/// Returns all codes with the beginning of their texts, one a line, below the headings of their sections.
pub fn list_text(pages: &Pages, width: Width) -> String {
    let longest = pages.entries().iter().map(|entry| entry.code.len()).max().unwrap_or_default();
    let (mut text, mut heading, mut seen) = (Vec::new(), String::new(), BTreeSet::new());
    for entry in pages.entries() {
        if !seen.insert(entry.code.as_str()) {
            continue;
        }
        let of =
            pages.sections_of(entry).iter().map(|section| section.heading).collect::<Vec<_>>().join(": ");
        if heading != of {
            text.push(if text.is_empty() { of.clone() } else { format!("\n{of}") });
            heading = of;
        }
        let says = plain(entry.message.as_ref().unwrap_or(&entry.remark));
        let room = columns(width).saturating_sub(longest + 4);
        text.push(
            format!("{INDENT}{:<longest$}  {}", entry.code, beginning(&says, room)).trim_end().to_owned(),
        );
    }
    text.push("\nTo explain one of them: osd-migrate explain CODE".to_owned());
    text.join("\n")
}

/// Returns as many words as fit.
fn beginning(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut found = String::new();
    for word in text.split(' ') {
        if found.chars().count() + word.chars().count() + 4 > room {
            break;
        }
        found.push_str(word);
        found.push(' ');
    }
    if found.is_empty() { found } else { format!("{}...", found.trim_end_matches([' ', '.', ':', ','])) }
}

fn one(entry: &Entry, width: Width, named: &dyn Fn(&str) -> String) -> String {
    let indented = |text: &str| wrapped(&named(text), columns(width), INDENT, INDENT);
    let message = entry.message.as_ref().map(|message| format!("{}\n\n", indented(message)));
    format!("{}\n{}{}", entry.code, message.unwrap_or_default(), indented(&plain(&entry.remark)))
}

/// Returns what a section says of all its entries.
fn about(section: &Section, width: Width, named: &dyn Fn(&str) -> String) -> Option<String> {
    let intro: Vec<&str> = section.body.lines().take_while(|line| !line.starts_with("- ")).collect();
    let intro = lines(&intro.join("\n"), width, named);
    (!intro.is_empty()).then(|| format!("{}\n\n{intro}", section.heading))
}

/// Returns the codes that the entries refer to.
fn see_also(entries: &[&Entry], pages: &Pages) -> Option<String> {
    let anchors = entries.iter().flat_map(|entry| targets(&entry.remark));
    let codes = anchors.filter_map(|target| target.rsplit_once('#')).map(|(_, anchor)| anchor);
    let is_other = |code: &&str| entries.iter().all(|entry| entry.code != **code);
    let known: BTreeSet<&str> = codes.filter(is_other).filter(|code| !pages.find(code).is_empty()).collect();
    let commands: Vec<_> = known.iter().map(|code| format!("osd-migrate explain {code}")).collect();
    (!commands.is_empty()).then(|| format!("See: {}", commands.join("; ")))
}

/// Returns the sections of the guides that the entries refer to, the definitions of their commands first.
fn guides<'a>(entries: &[&Entry], pages: &'a Pages) -> Vec<&'a Section> {
    let links = entries.iter().flat_map(|entry| targets(&entry.remark));
    let linked = links.filter(|target| target.contains("guides/")).filter_map(|target| {
        let (path, anchor) = target.split_once('#')?;
        pages.section_at(path, anchor)
    });
    let mut found: Vec<&Section> = linked.collect();
    let types = |text: &str| text.contains("`hand ") || text.contains("    hand ") || text.contains("`ceph ");
    let is_typed =
        entries.iter().any(|entry| types(&entry.remark)) || found.iter().any(|section| types(&section.body));
    if is_typed && let Some(definitions) = pages.section_at(DEFINITIONS.0, DEFINITIONS.1) {
        found.insert(0, definitions);
    }
    let mut seen = BTreeSet::new();
    found.retain(|section| seen.insert(section.heading));
    found
}

fn guide(section: &Section, width: Width, named: &dyn Fn(&str) -> String) -> String {
    format!("{} ({})\n\n{}", section.heading, section.path, lines(&section.body, width, named))
}

/// Returns what to type to see the names of a cluster.
fn without_names(entry: Option<&Entry>, width: Width) -> String {
    let code = entry.map_or("CODE", |entry| entry.code.as_str());
    let text = format!(
        "NAMESPACE, CEPHCLUSTER and rook-ceph stand for the names of your cluster. To see your names: \
         osd-migrate -n NAMESPACE --cluster CEPHCLUSTER explain {code}"
    );
    wrapped(&text, columns(width), "", INDENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(code: &str, names: Option<&Names>, width: Width) -> String {
        let pages = Pages::embedded();
        entry_text(&pages, &pages.find(code), names, width)
    }

    #[test]
    fn entry_has_its_section_its_guides_and_the_names_of_the_cluster() {
        let names =
            Names { namespace: "ceph-a".to_owned(), cluster: Some("store".to_owned()), ..Names::default() };
        let text = explained("not-confirmed", Some(&names), Width::of(80));
        assert!(text.starts_with("not-confirmed\n  the migration is not confirmed."), "{text}");
        assert!(text.contains("osd-migrate -n ceph-a run --confirm yes-really-migrate-osds"), "{text}");
        assert!(text.contains("\n\nReasons\n\nWhy a gate is not open."), "{text}");
        for placeholder in ["NAMESPACE", "CEPHCLUSTER", "rook-ceph ", "]("] {
            assert!(!text.contains(placeholder), "{placeholder}: {text}");
        }
        let text = explained("wipe-blocked-too-long", Some(&names), Width::of(80));
        assert!(text.contains("\nRestore the slot (docs/guides/recover-by-hand.md)\n"), "{text}");
        assert!(text.contains("\nBefore you type (docs/guides/recover-by-hand.md)\n"), "{text}");
    }

    #[test]
    fn entry_without_names_says_how_to_see_them() {
        let text = explained("paused", None, Width::Unknown);
        assert!(text.contains("osd-migrate -n NAMESPACE resume"), "{text}");
        assert!(text.ends_with("osd-migrate -n NAMESPACE --cluster CEPHCLUSTER explain paused"), "{text}");
        assert!(
            explained("failure-limit", None, Width::Unknown)
                .contains("osd-migrate explain too-many-failures")
        );
    }

    #[test]
    fn list_has_each_code_once_and_one_line_for_it() {
        let pages = Pages::embedded();
        for columns in [40, 60, 80, 120] {
            let list = list_text(&pages, Width::of(columns));
            let codes: Vec<_> = list.lines().filter_map(|line| line.strip_prefix(INDENT)).collect();
            let all: BTreeSet<_> = pages.entries().iter().map(|entry| entry.code.as_str()).collect();
            assert_eq!(codes.len(), all.len());
            let long = list.lines().find(|line| line.chars().count() > usize::from(columns).max(60));
            assert_eq!(long, None);
        }
    }
}
