//! The client: calls with a limit, counted, with errors that name verb, resource and object.

pub(crate) mod access;
pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod time;
#[cfg(test)]
mod wire_limit_tests;
