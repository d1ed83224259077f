//! Arguments of `remove` and `keep`.

use clap::{ArgGroup, Args, ValueEnum};

use crate::domain::osd::OsdId;
use crate::domain::removal::DiskAfter;

/// Text that confirms a removal. It differs from that of a run: neither confirms the other.
pub const REMOVAL_CONFIRMATION: &str = "yes-really-remove-osds";

/// Arguments of `remove`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("removed").args(["osds", "node", "undeclared"]).required(true))]
pub struct RemoveArgs {
    /// OSDs to remove, as osd.12 or 12, separated by spaces or commas.
    ///
    /// If one of them can't be removed, the command requests nothing.
    #[arg(value_delimiter = ',', value_name = "OSD")]
    pub osds: Vec<OsdId>,
    /// Remove all OSDs whose Deployment is on this node, and the host in CRUSH with the last of them.
    ///
    /// If one of them can't be removed, the command requests nothing.
    #[arg(long, value_name = "NODE", conflicts_with = "keep_id")]
    pub node: Option<String>,
    /// Remove the OSDs whose disk or node the CephCluster no longer selects.
    ///
    /// A Job on each node reads the disks and changes nothing. A disk that only got another name is still
    /// selected. If nothing at all is selected, the command is refused.
    #[arg(long, conflicts_with = "keep_id")]
    pub undeclared: bool,
    /// State that the disk of a removed OSD gets.
    ///
    /// With "wipe", the disk is blank. With "mark", it is wiped and gets an empty partition table, so that
    /// neither Rook nor osd-migrate uses it, even if the CephCluster selects it. With "leave", it keeps its
    /// content, and cannot be used before a person has wiped it.
    #[arg(long, value_enum, value_name = "STATE", default_value_t = Disk::Wipe)]
    pub disk: Disk,
    /// Keep the id of a dead OSD for a new disk of its host.
    ///
    /// The slot of the OSD stays destroyed, with its place in CRUSH. The next available disk of its host
    /// becomes the OSD with the same id.
    #[arg(long)]
    pub keep_id: bool,
    /// Confirm the removal: yes-really-remove-osds.
    ///
    /// Without it, the command lists what would be removed, and requests nothing.
    // The CronJob's confirmation of runs has the id `confirm`: the Job of this command must not get it.
    #[arg(id = "confirm-removal", long = "confirm", value_name = "WORDS", value_parser = confirmation)]
    pub confirm: Option<String>,
}

/// Arguments of `keep`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("kept").args(["osds", "node"]).required(true))]
pub struct KeepArgs {
    /// OSDs to keep, as osd.12 or 12, separated by spaces or commas.
    ///
    /// If one of them has no request, the command changes nothing.
    #[arg(value_delimiter = ',', value_name = "OSD")]
    pub osds: Vec<OsdId>,
    /// Keep all OSDs that were requested with this node.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
}

/// State that the disk of a removed OSD gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Disk {
    /// Blank.
    Wipe,
    /// Wiped, with an empty partition table.
    Mark,
    /// As it is.
    Leave,
}

impl From<Disk> for DiskAfter {
    fn from(disk: Disk) -> Self {
        match disk {
            Disk::Wipe => Self::Wipe,
            Disk::Mark => Self::Mark,
            Disk::Leave => Self::Leave,
        }
    }
}

/// Accepts only the exact confirmation.
fn confirmation(words: &str) -> Result<String, String> {
    if words == REMOVAL_CONFIRMATION {
        Ok(words.to_owned())
    } else {
        Err(format!("use {REMOVAL_CONFIRMATION}"))
    }
}
