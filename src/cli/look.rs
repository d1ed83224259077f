//! Arguments of the commands that only show something: `rehearse`, `plan`, `status`, `report`.

use clap::{Args, ValueEnum};

use super::run::RunArgs;
use crate::domain::osd::OsdRange;
use crate::rehearse::{Detail, fault};

/// Arguments of `rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArgs {
    /// Seed of the simulated durations.
    ///
    /// A seed gives the same rehearsal each time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = seed, allow_negative_numbers = true)]
    pub seed: u64,
    /// Fault to inject (--help-all lists the names).
    #[arg(long, value_name = "FAULT[@OSD]", value_parser = fault::parse, long_help = fault::help())]
    pub fault: Vec<fault::RequestedFault>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Print only the table and the summary.
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every line.
    ///
    /// By default, each OSD except the first takes one line.
    #[arg(short, long)]
    pub verbose: bool,
}

impl RehearseArgs {
    /// Returns the part of the story to print.
    pub fn detail(&self) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::None,
            (false, true) => Detail::All,
            (false, false) => Detail::Usual,
        }
    }
}

/// Parses a seed.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_error| "expected a whole number, 0 or more".to_owned())
}

/// Arguments of `plan`.
// The usual options fit a small terminal: two of `run` are less usual here.
#[derive(Debug, Args)]
#[command(mut_arg("scale_operator", |arg| arg.hide_short_help(true)))]
#[command(mut_arg("detach", |arg| arg.hide_short_help(true)))]
pub struct PlanArgs {
    /// OSDs, limits and confirmation.
    #[command(flatten)]
    pub run: RunArgs,
    /// List the disks of the nodes, too.
    ///
    /// A Job on each node reads the disks and changes nothing.
    #[arg(long)]
    pub inventory: bool,
    /// Forecast a removal: osd.1,osd.5-osd.9.
    ///
    /// Shows the PGs and bytes that would move, the expected time, and whether there is space for them.
    /// The forecast is computed by Ceph's own program for the CRUSH weight 0. Nothing is changed. The exit
    /// code is 3 if a PG finds too few OSDs, if an OSD would be too full, or if that is not known now: the
    /// code below the table says which.
    #[arg(long, value_delimiter = ',', value_name = "OSD", conflicts_with = "inventory")]
    pub remove: Vec<OsdRange>,
    /// Forecast the removal of all OSDs on this node.
    ///
    /// As --remove with the OSDs whose Deployment is on the node.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["inventory", "remove"])]
    pub remove_node: Option<String>,
    /// List OSDs that are as declared, too.
    #[arg(long)]
    pub all: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = PlanOutput::Table)]
    pub output: PlanOutput,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = StatusOutput::Table)]
    pub output: StatusOutput,
    /// Show the status again and again, until Ctrl-C.
    ///
    /// Without a terminal, the status is printed when it changes, at most once a minute.
    #[arg(short, long, conflicts_with = "output")]
    pub watch: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = ReportOutput::Text)]
    pub output: ReportOutput,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people.
    Table,
    /// JSON for programs.
    Json,
}

/// Output format of `plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanOutput {
    /// Text for people.
    Table,
    /// Text with more columns.
    Wide,
    /// JSON for programs.
    Json,
    /// YAML for programs.
    Yaml,
    /// Names of the OSDs to migrate, one a line.
    Name,
}

/// Output format of `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusOutput {
    /// Text for people.
    Table,
    /// JSON for programs.
    Json,
    /// YAML for programs.
    Yaml,
}

/// Output format of `report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportOutput {
    /// Text for people.
    Text,
    /// JSON for programs.
    Json,
    /// One HTML page.
    Html,
}
