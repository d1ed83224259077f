//! The disk that a request is about, and its content.

pub(crate) mod content;
pub(crate) mod on_pvc;
pub(crate) mod search;
