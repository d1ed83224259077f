//! `report`: what was done to each OSD, as text, as JSON, and as a page.
//!
//! | file | content |
//! | --- | --- |
//! | `content` | what is shown |
//! | `words` | words and times that the text and the page share |
//! | `text`, `json`, `html` | the three forms |
//! | `chart` | bars of the page |

mod chart;
mod content;
mod html;
mod json;
mod text;
mod words;

pub use content::Report;
pub use html::report_html;
pub use json::report_json;
pub use text::report_text;
