//! Command line, parsed once into domain types.
//!
//! | module | content |
//! | --- | --- |
//! | `command` | global options, the list of commands |
//! | `run` | arguments of `run` and `provision`; the policy |
//! | `look` | arguments of the commands that only show something |
//! | `remove` | arguments of `remove` and `keep` |
//! | `telemetry` | options of logs and metrics |
//! | `forward` | arguments of the Job that a command outside the cluster creates |
//! | `parse` | from the words of the command line to the arguments |
//! | `near` | tips for mistyped words |
//! | `hints` | hints for usual guesses and hidden options |
//! | `number` | numbers within a range |
//! | `times` | times within a range |
//! | `name` | names of namespaces |
//! | `examples` | examples below the help |
//! | `complete` | completion of shells and of kubectl |

mod command;
mod complete;
mod examples;
mod forward;
mod hints;
mod look;
mod name;
mod near;
mod number;
mod parse;
mod remove;
mod run;
mod telemetry;
mod times;

pub use command::{Cli, Command, NodeCommand};
pub use complete::{completing_words, completion_script};
pub use forward::forwarded;
pub use look::{
    Output, PlanArgs, PlanOutput, RehearseArgs, ReportArgs, ReportOutput, StatusArgs, StatusOutput,
};
pub use near::near;
pub use parse::parse;
pub use remove::{Disk, KeepArgs, REMOVAL_CONFIRMATION, RemoveArgs};
pub use run::{CONFIRMATION, DeploymentBy, Empty, LimitArgs, NewArgs, RequireClean, RunArgs};
pub use telemetry::{LogFormat, TelemetryArgs};

#[cfg(test)]
mod tests;
