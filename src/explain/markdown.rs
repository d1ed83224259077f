//! Text of a page without its marks: a terminal shows no links and no anchors.

use crate::layout::{Width, wrapped};

/// Columns that wrapped text takes on a wide terminal, and in a file.
const READABLE: usize = 100;

/// Returns the columns of wrapped text.
pub(super) fn columns(width: Width) -> usize {
    width.columns().min(READABLE)
}

/// Returns a paragraph without its marks; code keeps its backticks.
pub(super) fn plain(paragraph: &str) -> String {
    let mut text = String::new();
    let mut rest = paragraph;
    while let Some((before, label, _, after)) = link(rest) {
        text.push_str(before);
        text.push_str(label);
        rest = after;
    }
    text.push_str(rest);
    text.replace("\\*", "*").replace("\\<", "<").replace("**", "")
}

/// Returns the targets of the links of a text.
pub(super) fn targets(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, _, target, after)) = link(rest) {
        found.push(target);
        rest = after;
    }
    found
}

/// Splits a text at its first link: the text before it, its label, its target, the text after it.
fn link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (label, rest) = text.split_once("](")?;
    let (before, label) = label.rsplit_once('[')?;
    let (target, after) = rest.split_once(')')?;
    Some((before, label, target, after))
}

/// Returns the lines of a section: paragraphs and list items wrapped, code and tables as they are.
///
/// `named` puts the names of a cluster into a text.
pub(super) fn lines(body: &str, width: Width, named: &dyn Fn(&str) -> String) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in body.lines().chain([""]) {
        let is_code = line.starts_with("    ") || line.starts_with('|');
        if (is_code || line.is_empty() || line.starts_with("- ")) && !paragraph.is_empty() {
            blocks.push(wrapped_paragraph(&named(&paragraph.join(" ")), width));
            paragraph.clear();
        }
        if is_code || line.is_empty() {
            blocks.push(named(line));
        } else if !line.trim().starts_with("<a id=") && !line.trim().starts_with("- <a id=") {
            paragraph.push(line.trim());
        }
    }
    blocks.join("\n").trim_matches('\n').to_owned()
}

fn wrapped_paragraph(text: &str, width: Width) -> String {
    let rest = if text.starts_with("- ") { "  " } else { "" };
    wrapped(&plain(text), columns(width), "", rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_emphasis_are_removed_and_code_stays() {
        let text = "**Never** type `a [b]`: [restore\nthe slot](../x.md#restore) or [`down`](#down) \\<x>";
        assert_eq!(plain(text), "Never type `a [b]`: restore\nthe slot or `down` <x>");
        assert_eq!(targets(text), ["../x.md#restore", "#down"]);
    }

    #[test]
    fn code_of_a_section_is_not_wrapped() {
        let code = format!("    ceph {}", "x ".repeat(60));
        let body = format!("\nOne\ntwo.\n\n{code}\n\n- an item\n  of two lines\n- another\n");
        let expected = format!("One two.\n\n{code}\n\n- an item of two lines\n- another");
        assert_eq!(lines(&body, Width::of(80), &str::to_owned), expected);
    }
}
