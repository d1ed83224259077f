//! `explain`: entries of the pages by their codes, offline. The pages are part of the program.
//!
//! | module | content |
//! | --- | --- |
//! | `entries` | sections and entries of the pages |
//! | `markdown` | text of a page without its marks |
//! | `text` | an entry with what belongs to it; the list of all codes |

mod entries;
mod markdown;
mod text;

pub use entries::{Entry, Pages, Section};
pub use text::{entry_text, list_text, section_text};
