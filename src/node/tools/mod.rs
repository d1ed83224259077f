//! Programs that an agent runs.
//!
//! | module | content |
//! | --- | --- |
//! | `query` | the list of those that only read |
//! | `command` | how any of them is run |
//! | `redact` | keys, removed from what they print |

pub(crate) mod command;
pub(crate) mod query;
pub(crate) mod redact;
