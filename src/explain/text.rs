//! An entry as text, with what belongs to it, and the list of all codes.

use std::collections::BTreeSet;

use super::entries::{Entry, Pages, Section};
use super::markdown::{columns, lines, plain, targets};
use crate::domain::commands::Names;
use crate::layout::{Width, wrapped};

/// Indentation of the texts below a code.
const INDENT: &str = "  ";

/// Columns below which the texts of the list do not stand next to the codes.
const NARROW: usize = 80;

/// Section with the definitions of `ceph` and `hand`, which remarks type.
const DEFINITIONS: (&str, &str) = ("recover-by-hand.md", "before-you-type");

/// Beginning of the paragraph of this section that is about `hand`.
const OF_HAND: &str = "`hand` ";

/// Beginning of a function of the shell: `NAME() {`.
const FUNCTION: &str = "() {";

/// Entry whose explanation is a whole section: the message of a quarantine has no code of its own.
const WITH_SECTION: (&str, &str) = ("quarantine", "quarantined");

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
    if entries.iter().any(|entry| entry.code == WITH_SECTION.0) {
        parts.extend(section_text(pages, WITH_SECTION.1, names, width));
    }
    parts.extend(guides(entries, pages).iter().map(|section| guide(section, width, &fill)));
    if names.is_none() {
        parts.push(without_names(entries.first().copied(), width));
    }
    parts.join("\n\n")
}

/// Returns what a section says of all its entries, and the messages of the entries.
pub fn section_text(pages: &Pages, anchor: &str, names: Option<&Names>, width: Width) -> Option<String> {
    let fill = |text: &str| names.map_or_else(|| text.to_owned(), |names| names.in_page(text));
    let sections = pages.with_entries(anchor)?;
    let mut parts = Vec::new();
    for section in &sections {
        parts.push(about(section, width, &fill).unwrap_or_else(|| section.heading.to_owned()));
        let item = |message: &String| wrapped(&fill(message), columns(width), "- ", INDENT);
        let messages: Vec<_> = section.messages().iter().map(item).collect();
        parts.extend((!messages.is_empty()).then(|| messages.join("\n")));
    }
    let page = sections.first().map_or("", |section| section.path);
    parts.push(format!("What to do about each of them: {page}"));
    Some(parts.join("\n\n"))
}

/// Returns all codes with the beginning of their texts, below the headings of their sections.
///
/// A code and its text have one line. In narrow output, the text has a line of its own.
pub fn list_text(pages: &Pages, width: Width) -> String {
    let longest = pages.entries().iter().map(|entry| entry.code.len()).max().unwrap_or_default();
    let is_narrow = columns(width) < NARROW;
    let head = |code: &str| {
        if is_narrow {
            format!("{INDENT}{code}\n{INDENT}{INDENT}")
        } else {
            format!("{INDENT}{code:<longest$}  ")
        }
    };
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
        let before = head(&entry.code);
        let taken = before.rsplit('\n').next().map_or(0, str::len);
        let says = beginning(&says, columns(width).saturating_sub(taken));
        text.push(format!("{before}{says}").trim_end().to_owned());
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

/// Returns the codes and the sections that the entries refer to.
fn see_also(entries: &[&Entry], pages: &Pages) -> Option<String> {
    let anchors = entries.iter().flat_map(|entry| targets(&entry.remark));
    let codes = anchors.filter_map(|target| target.rsplit_once('#')).map(|(_, anchor)| anchor);
    let is_other = |code: &&str| {
        entries.iter().all(|entry| entry.code != **code && (entry.code.as_str(), *code) != WITH_SECTION)
    };
    let is_known = |code: &&str| !pages.find(code).is_empty() || pages.with_entries(code).is_some();
    let known: BTreeSet<&str> = codes.filter(is_other).filter(is_known).collect();
    let commands: Vec<_> = known.iter().map(|code| format!("osd-migrate explain {code}")).collect();
    (!commands.is_empty()).then(|| format!("See: {}", commands.join("; ")))
}

/// Returns the sections of the guides that the entries refer to, the definitions of their commands first.
fn guides(entries: &[&Entry], pages: &Pages) -> Vec<Section> {
    let links = entries.iter().flat_map(|entry| targets(&entry.remark));
    let linked = links.filter(|target| target.contains("guides/")).filter_map(|target| {
        let (path, anchor) = target.split_once('#')?;
        pages.section_at(path, anchor)
    });
    let mut found: Vec<Section> = linked.cloned().collect();
    let texts = entries.iter().map(|entry| &entry.remark).chain(found.iter().map(|section| &section.body));
    let types = |name: &str| {
        let forms = ["`", "    ", "$(", "| "].map(|before| format!("{before}{name} "));
        texts.clone().any(|text| forms.iter().any(|form| text.contains(form)))
    };
    let (hand, ceph) = (types("hand"), types("ceph"));
    if (hand || ceph)
        && let Some(definitions) = pages.section_at(DEFINITIONS.0, DEFINITIONS.1)
    {
        found.insert(0, defined(definitions, hand));
    }
    let mut seen = BTreeSet::new();
    found.retain(|section| seen.insert(section.heading));
    found
}

/// Returns the definitions without those that nothing needs: `hand` needs a pod, which takes many lines.
fn defined(definitions: &Section, hand: bool) -> Section {
    if hand {
        return definitions.clone();
    }
    let before = definitions.body.lines().take_while(|line| !line.starts_with(OF_HAND));
    let body = before.filter(|line| line.contains(FUNCTION)).collect::<Vec<_>>().join("\n");
    Section { body, ..definitions.clone() }
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
    fn list_has_each_code_once_and_its_text_next_to_it_or_below() {
        let pages = Pages::embedded();
        for columns in [40, 60, 79, 80, 120] {
            let list = list_text(&pages, Width::of(columns));
            let lines = list.lines().filter_map(|line| line.strip_prefix(INDENT));
            let (below, codes): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with(INDENT));
            let all: BTreeSet<_> = pages.entries().iter().map(|entry| entry.code.as_str()).collect();
            assert_eq!(codes.len(), all.len());
            assert_eq!(below.is_empty(), columns >= 80, "{columns}");
            let long = list.lines().find(|line| line.chars().count() > usize::from(columns).max(60));
            assert_eq!(long, None);
        }
    }

    #[test]
    fn quarantine_has_the_messages_of_its_section() {
        let text = explained("[quarantine]", None, Width::of(80));
        for part in [
            "\n\nQuarantined\n\nEvent `OsdQuarantined`",
            "\n\nAt any time\n\n- its node agent failed ... times",
            "\n- it left no report\n",
            "[history-not-written]",
            "\n\nWhat to do about each of them: docs/reference/messages.md\n\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("explain quarantined"), "{text}");
        let pages = Pages::embedded();
        let section = section_text(&pages, "quarantined", None, Width::of(80)).unwrap();
        assert!(text.contains(&section));
        let other = explained("quarantined-not-clean", None, Width::of(80));
        assert!(
            other.contains("osd-migrate explain quarantined") && !other.contains("it left no report"),
            "{other}"
        );
    }

    #[test]
    fn entry_defines_only_the_functions_that_it_types() {
        let of_ceph = explained("not-ok-to-stop", None, Width::of(80));
        assert!(of_ceph.contains("    ceph() {") && of_ceph.contains("    input() {"), "{of_ceph}");
        assert!(!of_ceph.contains("hand() {") && !of_ceph.contains("create job"), "{of_ceph}");
        let of_hand = explained("wipe-blocked-too-long", None, Width::of(80));
        assert!(of_hand.contains("    hand() {") && of_hand.contains("    ceph() {"), "{of_hand}");
    }

    #[test]
    fn alert_is_explained_with_the_names_of_the_cluster() {
        let names = Names { namespace: "ceph-a".to_owned(), ..Names::default() };
        let text = explained("OsdMigrateHalted", Some(&names), Width::of(80));
        assert!(
            text.starts_with("OsdMigrateHalted\n  A migration of OSDs halted in namespace ceph-a\n"),
            "{text}"
        );
        assert!(
            text.contains("osd-migrate -n ceph-a status") && text.contains("docs/guides/monitor.md"),
            "{text}"
        );
    }
}
