//! Command line, parsed once into domain types.
//!
//! | module | content |
//! | --- | --- |
//! | `command` | global options, the list of commands |
//! | `run` | arguments of `run` and `provision`; the policy |
//! | `look` | arguments of the commands that only show something |
//! | `forward` | arguments of the Job that a command outside the cluster creates |

mod command;
mod forward;
mod look;
mod run;

pub use command::{Cli, Command, NodeCommand};
pub use forward::forwarded;
pub use look::{
    Output, PlanArgs, PlanOutput, RehearseArgs, ReportArgs, ReportOutput, StatusArgs, StatusOutput,
};
pub use run::{CONFIRMATION, DeploymentBy, LimitArgs, NewArgs, RequireClean, RunArgs};

#[cfg(test)]
mod tests;
