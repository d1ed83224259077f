//! Events of a run as data, with their sentences: the log, `status`, Kubernetes events and the rehearsal
//! use the same ones.

mod acts;
mod event;
mod figures;
mod history;
mod news;
mod progress;
mod reporter;
mod saves;
mod spans;
mod summary;

pub use event::{Event, Said};
pub use figures::{Figures, Osds};
pub use history::{history_not_written, observed};
pub use news::{News, Repeats, Stalls};
pub use progress::{RunProgress, backfill_text, moving, with_detail};
pub use reporter::Reporter;
pub use spans::{RunSpans, Span, trace_id};
