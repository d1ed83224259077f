//! The client: calls with a limit, counted, with errors that name verb, resource and object.

pub(crate) mod access;
pub(crate) mod call;
pub(crate) mod cause;
pub(crate) mod classify;
pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod kubeconfig;
#[cfg(test)]
mod kubeconfig_tests;
pub(crate) mod list;
mod no_proxy;
pub(crate) mod page;
pub(crate) mod server;
pub(crate) mod time;
pub(crate) mod watch;
#[cfg(test)]
mod wire_access_tests;
#[cfg(test)]
mod wire_limit_tests;
