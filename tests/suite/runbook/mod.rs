//! `docs/reference/messages.md` has an entry for every message of the program that a person has to act on, in
//! the program's own words, and no entry for anything else. Exit codes, events and phases have pages of their
//! own.
//!
//! Entries are list items: the key (a code, or a variant) in bold, then the sentence in italics. If the
//! sentence is long, `...` stands for a part of it. Values that the code can create are asked for their
//! texts; for the rest the sources are read.

mod by_hand;
mod entries;
mod messages;
mod places;
mod quotes;
mod sources;
mod texts;
mod values;

pub(crate) use entries::{PAGES, remarks};
pub(crate) use places::places;
pub(crate) use quotes::is_quoted;
pub(crate) use sources::{block, literals, read, root, variants};
pub(crate) use values::{coded, findings, halts, reasons, refusals, rejections, unreadable, waits};
