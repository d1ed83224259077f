//! Which disks of a node are asked for.
//!
//! As Rook matches them (pkg/daemon/ceph/osd/daemon.go, `getAvailableDevices`, v1.20.6): a filter is searched for anywhere in a name
//! (`sdb` is found in `sdb1`; write `^sdb$`), partitions count like disks, and a disk that has partitions is left to them
//! (pkg/clusterd/disk.go, `DiscoverDevicesWithFilter`; the inventory says `Partitioned`). Rook takes loop devices and logical
//! volumes only where `devices` names them; here the inventory decides which devices there are at all.

use regex::Regex;

use super::wanted::Choice;
use crate::domain::inventory::{DiskSeen, NodeInventory};
use crate::domain::storage::NamedDevice;

/// What selects disks.
pub(super) enum Selector<'a> {
    Nothing,
    Named(&'a [NamedDevice]),
    Filter(Regex),
    PathFilter(Regex),
    All,
}

/// Whether a disk is asked for.
#[derive(Clone, Copy)]
pub(super) enum Selection<'a> {
    /// Nobody asks for it.
    No,
    /// Among others, by a filter or by `useAllDevices`.
    WithOthers,
    /// By an entry of `devices[]`.
    ByName(&'a NamedDevice),
}

impl<'a> Selection<'a> {
    /// The entry that names it.
    pub(super) fn by_name(self) -> Option<&'a NamedDevice> {
        match self {
            Self::ByName(device) => Some(device),
            Self::No | Self::WithOthers => None,
        }
    }
}

impl<'a> Selector<'a> {
    /// Filters are taken as regular expressions of the crate regex: RE2, as Go's, but for `\Q...\E`, `\C` and octal escapes, which are
    /// errors here. `Err` is a sentence: nothing is selected by a filter that can't be read.
    pub(super) fn new(choice: Choice<'a>) -> Result<Self, String> {
        let parse = |what: &str, filter: &str| {
            Regex::new(filter).map_err(|_| {
                format!("{what} `{filter}` is no regular expression that can be read, so it selects nothing")
            })
        };
        Ok(match choice {
            Choice::Nothing => Self::Nothing,
            Choice::Named(devices) => Self::Named(devices),
            Choice::Filter(filter) => Self::Filter(parse("deviceFilter", filter)?),
            Choice::PathFilter(filter) => Self::PathFilter(parse("devicePathFilter", filter)?),
            Choice::All => Self::All,
        })
    }

    /// Whether a disk is asked for.
    pub(super) fn asks(&self, disk: &DiskSeen) -> Selection<'a> {
        let is_asked = match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Filter(filter) => filter.is_match(&disk.name),
            // Its own path counts beside its links.
            Self::PathFilter(filter) => {
                filter.is_match(&path_of(disk)) || disk.links.iter().any(|link| filter.is_match(link))
            }
            Self::Named(devices) => {
                let entry = devices.iter().find(|device| is_named(disk, &device.name));
                return entry.map_or(Selection::No, Selection::ByName);
            }
        };
        if is_asked { Selection::WithOthers } else { Selection::No }
    }

    /// The entries of `devices[]`.
    pub(super) fn named(&self) -> &'a [NamedDevice] {
        match self {
            Self::Named(devices) => devices,
            Self::Nothing | Self::Filter(_) | Self::PathFilter(_) | Self::All => &[],
        }
    }
}

fn path_of(disk: &DiskSeen) -> String {
    format!("/dev/{}", disk.name)
}

/// Whether a name means a disk: its kernel name, `/dev/` and that, or one of the links to it, in full. A link without `/dev/`
/// (`disk/by-id/...`) is none, as in Rook.
fn is_named(disk: &DiskSeen, name: &str) -> bool {
    disk.name == name || path_of(disk) == name || disk.links.contains(name)
}

/// The disk that a name means. (Rook finds a `metadataDevice` in the same way, but beside a `deviceFilter` only one that is named by
/// its kernel name or matches the filter itself: pkg/clusterd/disk.go, `deviceMatchWithFilter`, v1.20.6. Here it is found always.)
pub(super) fn find<'a>(name: &str, inventory: &'a NodeInventory) -> Option<&'a DiskSeen> {
    inventory.disks.iter().find(|disk| is_named(disk, name))
}

/// A volume of some Ceph cluster that is mapped on the node. Rook looks at none (pkg/clusterd/disk.go, `ignoreDevice`, v1.20.6): an OSD
/// on it would wait for itself.
pub(super) fn is_rbd(disk: &DiskSeen) -> bool {
    let Some(number) = disk.name.strip_prefix("rbd") else { return false };
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == 'p')
}
