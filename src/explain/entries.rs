//! Sections and entries of the pages.

/// Pages with entries, and the guides that entries refer to, by their paths in the repository.
const PAGES: [(&str, &str); 5] = [
    ("docs/reference/messages.md", include_str!("../../docs/reference/messages.md")),
    ("docs/reference/exit-codes.md", include_str!("../../docs/reference/exit-codes.md")),
    ("docs/reference/events.md", include_str!("../../docs/reference/events.md")),
    ("docs/guides/recover-by-hand.md", include_str!("../../docs/guides/recover-by-hand.md")),
    ("docs/guides/recover-the-ledger.md", include_str!("../../docs/guides/recover-the-ledger.md")),
];

/// Number of pages whose entries have codes: the guides only belong to them.
const WITH_CODES: usize = 3;

/// Alerts of the chart, whose names are codes, too.
const ALERTS: (&str, &str) =
    ("charts/osd-migrate/files/alerts.yaml", include_str!("../../charts/osd-migrate/files/alerts.yaml"));

/// Text above the alerts.
const OF_ALERTS: &str =
    "Alerts of the chart for Prometheus. When each of them fires: docs/guides/monitor.md.";

/// Section of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Path of the page.
    pub path: &'static str,
    /// Heading.
    pub heading: &'static str,
    /// Level of the heading: 1 is the title of the page.
    pub level: usize,
    /// Lines below the heading, up to the next heading of any level.
    pub body: String,
}

/// Entry of a page: a list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Code of the message, the event or the exit.
    pub code: String,
    /// Message, if the entry quotes one.
    pub message: Option<String>,
    /// Remark: why the message comes, and what to do.
    pub remark: String,
    /// Index of the section.
    section: usize,
}

/// The pages, parsed.
#[derive(Debug, Clone)]
pub struct Pages {
    sections: Vec<Section>,
    entries: Vec<Entry>,
}

impl Pages {
    /// Returns the pages of this program.
    pub fn embedded() -> Self {
        let mut pages = Self { sections: Vec::new(), entries: Vec::new() };
        for (at, (path, text)) in PAGES.into_iter().enumerate() {
            let sections = sections(path, text);
            for section in sections {
                if at < WITH_CODES {
                    let number = pages.sections.len();
                    pages.entries.extend(items(&section.body).iter().filter_map(|item| entry(item, number)));
                }
                pages.sections.push(section);
            }
        }
        pages.entries.extend(alerts(ALERTS.1, pages.sections.len()));
        let (path, heading, body) = (ALERTS.0, "Alerts", OF_ALERTS.to_owned());
        pages.sections.push(Section { path, heading, level: 2, body });
        pages
    }

    /// Returns all entries in their order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entries of a code, in any case and with or without the brackets of a message.
    pub fn find(&self, code: &str) -> Vec<&Entry> {
        let code = code.trim().trim_start_matches('[').trim_end_matches(']');
        self.entries.iter().filter(|entry| entry.code.eq_ignore_ascii_case(code)).collect()
    }

    /// Returns the section of an entry, after the sections that contain it.
    pub fn sections_of(&self, entry: &Entry) -> Vec<&Section> {
        let Some(own) = self.sections.get(entry.section) else { return Vec::new() };
        let (mut found, mut level) = (vec![own], own.level);
        for section in self.sections.iter().take(entry.section).rev().filter(|section| section.level > 1) {
            if section.path == own.path && section.level < level {
                level = section.level;
                found.insert(0, section);
            }
        }
        found
    }

    /// Returns a section that has entries, and its subsections.
    pub fn with_entries(&self, anchor: &str) -> Option<Vec<&Section>> {
        let anchor = anchor.trim().to_lowercase();
        let is_it = |section: &&Section| section.level > 1 && slug(section.heading) == anchor;
        let mut from = self.sections.iter().skip_while(|section| !is_it(section));
        let own = from.next()?;
        let below = from.take_while(|section| section.path == own.path && section.level > own.level);
        let all: Vec<&Section> = std::iter::once(own).chain(below).collect();
        all.iter().any(|section| !section.messages().is_empty()).then_some(all)
    }

    /// Returns the section to which a link of another page leads.
    pub fn section_at(&self, path: &str, anchor: &str) -> Option<&Section> {
        let file = path.rsplit('/').next().unwrap_or(path);
        let is_it = |section: &&Section| {
            section.path.rsplit('/').next() == Some(file) && slug(section.heading) == anchor
        };
        self.sections.iter().find(is_it)
    }
}

impl Section {
    /// Returns the messages of its entries, each with its code if it has one.
    pub fn messages(&self) -> Vec<String> {
        let quoted = |item: &str| {
            let message = item.strip_prefix('*').filter(|rest| !rest.starts_with('*'))?;
            Some(unescaped(italics(message)?.0))
        };
        let coded = |Entry { code, message, .. }| {
            message.map_or_else(|| code.clone(), |text| format!("{text} [{code}]"))
        };
        items(&self.body)
            .iter()
            .filter_map(|item| entry(item, 0).map(coded).or_else(|| quoted(item)))
            .collect()
    }
}

/// Splits a page at its headings.
fn sections(path: &'static str, text: &'static str) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    for line in text.lines() {
        let level = line.chars().take_while(|c| *c == '#').count();
        if let Some(heading) = line.get(level..).and_then(|rest| rest.strip_prefix(' ')).filter(|_| level > 0)
        {
            found.push(Section { path, heading, level, body: String::new() });
        } else if let Some(section) = found.last_mut() {
            section.body.push_str(line);
            section.body.push('\n');
        }
    }
    found
}

/// Returns the list items of a section, each as one line.
fn items(body: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in body.lines() {
        if let Some(item) = line.strip_prefix("- ") {
            items.push(item.to_owned());
            is_open = true;
        } else if let Some(item) = items.last_mut().filter(|_| is_open && line.starts_with("  ")) {
            item.push(' ');
            item.push_str(line.trim());
        } else {
            is_open = false;
        }
    }
    items
}

/// Parses a list item: the anchor, the code in bold, the message in italics, the remark.
fn entry(item: &str, section: usize) -> Option<Entry> {
    let item = item.strip_prefix("<a id=").and_then(|rest| rest.split_once("</a> ")).map_or(item, |(_, i)| i);
    let (code, rest) = item.strip_prefix("**`")?.split_once("`**")?;
    let rest = rest.trim();
    let (message, remark) = match rest.strip_prefix('*').filter(|rest| !rest.starts_with('*')) {
        Some(rest) => italics(rest)?,
        None => ("", rest),
    };
    Some(Entry {
        code: code.to_owned(),
        message: Some(unescaped(message)).filter(|message| !message.is_empty()),
        remark: remark.trim().to_owned(),
        section,
    })
}

/// Parses the rules of Prometheus: the names of the alerts, their summaries and their descriptions.
///
/// The function only supports the YAML of this one file: the summary in one line, the description at the end.
fn alerts(rules: &str, section: usize) -> impl Iterator<Item = Entry> {
    let text = |yaml: &str| {
        let words = yaml.split_whitespace().filter(|word| *word != ">-").collect::<Vec<_>>().join(" ");
        let parts = words
            .trim_matches('\'')
            .split("{{ ")
            .map(|part| part.split_once(" }}").map_or(part, |(_, rest)| rest));
        parts.collect::<Vec<_>>().join("...").replace("namespace rook-ceph", "namespace NAMESPACE")
    };
    rules.split("- alert: ").skip(1).filter_map(move |alert| {
        let (code, rest) = alert.split_once('\n')?;
        let (_, rest) = rest.split_once(" summary: ")?;
        let (summary, description) = rest.split_once(" description: ")?;
        Some(Entry {
            code: code.to_owned(),
            message: Some(text(summary)),
            remark: text(description),
            section,
        })
    })
}

fn unescaped(message: &str) -> String {
    message.replace("\\<", "<").replace("\\*", "*")
}

/// Splits a text at the asterisk that ends the italics; an escaped asterisk has a backslash.
fn italics(rest: &str) -> Option<(&str, &str)> {
    let is_end = |at: &usize| !rest.get(..*at).is_some_and(|before| before.ends_with('\\'));
    let end = rest.match_indices('*').map(|(at, _)| at).find(is_end)?;
    Some((rest.get(..end)?, rest.get(end + 1..)?))
}

/// Returns the anchor of a heading, as GitHub forms it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\nIntro.\n\n## Waits\n\nA wait.\n\n### Of OSDs\n\n- <a id=\"down\"></a>\n  \
        **`down`** *osd.5 is \\<down>: see\n  ceph \\* x*\n  Start it.\n\n  Not this.\n- **`down`** *another*\n  \
        The same.\n- *no code*\n  x\n- **`OsdStopped`** Normal. Stopped.\n";

    fn parsed() -> Pages {
        let sections = sections("page.md", PAGE);
        let entries = sections
            .iter()
            .enumerate()
            .flat_map(|(at, section)| {
                items(&section.body).iter().filter_map(|item| entry(item, at)).collect::<Vec<_>>()
            })
            .collect();
        Pages { sections, entries }
    }

    #[test]
    fn entries_have_code_message_and_remark() {
        let pages = parsed();
        let found = pages.find("[DOWN]");
        let text: Vec<_> =
            found.iter().map(|entry| (entry.message.as_deref(), entry.remark.as_str())).collect();
        assert_eq!(
            text,
            [(Some("osd.5 is <down>: see ceph * x"), "Start it."), (Some("another"), "The same.")]
        );
        assert_eq!(pages.find("osdstopped")[0].message, None);
        assert_eq!(pages.find("osdstopped")[0].remark, "Normal. Stopped.");
        assert!(pages.find("dow").is_empty());
    }

    #[test]
    fn entry_belongs_to_its_section_and_those_around_it() {
        let pages = parsed();
        let headings: Vec<_> =
            pages.sections_of(&pages.entries()[0]).iter().map(|section| section.heading).collect();
        assert_eq!(headings, ["Waits", "Of OSDs"]);
        assert_eq!(pages.section_at("../x/page.md", "of-osds").map(|section| section.level), Some(3));
        assert_eq!(pages.section_at("page.md", "none"), None);
    }

    #[test]
    fn section_has_the_messages_of_its_entries_and_its_subsections() {
        let pages = parsed();
        let found = pages.with_entries("Waits").unwrap();
        let headings: Vec<_> = found.iter().map(|section| section.heading).collect();
        assert_eq!(headings, ["Waits", "Of OSDs"]);
        assert_eq!(found[0].messages(), [""; 0]);
        let down = "osd.5 is <down>: see ceph * x [down]";
        assert_eq!(found[1].messages(), [down, "another [down]", "no code", "OsdStopped"]);
        assert_eq!(pages.with_entries("page"), None);
        assert_eq!(pages.with_entries("down"), None);
    }

    #[test]
    fn alert_has_its_summary_and_its_description() {
        let rules = "- alert: A\n  annotations:\n    summary: 'Down in namespace rook-ceph: {{ $value }}'\n    \
            description: >-\n      One.\n      -l name={{ $labels.name }}\n- alert: B\n  expr: x\n";
        let found: Vec<_> = alerts(rules, 0).map(|entry| (entry.code, entry.message, entry.remark)).collect();
        let summary = "Down in namespace NAMESPACE: ...".to_owned();
        assert_eq!(found, [("A".to_owned(), Some(summary), "One. -l name=...".to_owned())]);
    }

    #[test]
    fn anchor_of_a_heading_is_that_of_github() {
        assert_eq!(slug("Restore Rook's operator"), "restore-rooks-operator");
    }
}
