//! Matches the disks of a node with the declared selection.
//!
//! Rook matches them the same way (pkg/daemon/ceph/osd/daemon.go, `getAvailableDevices`, v1.20.6). A filter
//! matches anywhere in a name (`sdb` is found in `sdb1`; write `^sdb$`). Partitions count like disks, and of
//! a disk with partitions only the partitions are used (pkg/clusterd/disk.go, `DiscoverDevicesWithFilter`;
//! the inventory says `Partitioned`). Rook uses loop devices and logical volumes only if `devices` names
//! them. Here the inventory decides which devices exist at all.

use std::collections::BTreeSet;

use regex::Regex;

use super::wanted::Choice;
use crate::domain::inventory::{DiskSeen, NodeInventory};
use crate::domain::storage::NamedDevice;

/// Selection of disks on a node.
pub(super) enum Selector<'a> {
    Nothing,
    Named(&'a [NamedDevice]),
    Filter(Regex),
    PathFilter(Regex),
    All,
}

/// Selection of one disk.
#[derive(Clone, Copy)]
pub(super) enum Selection<'a> {
    /// The disk is not selected.
    No,
    /// The disk is selected with others, by a filter or by `useAllDevices`.
    WithOthers,
    /// The disk is selected by an entry of `devices[]`.
    ByName(&'a NamedDevice),
}

impl<'a> Selection<'a> {
    /// Returns the entry that names the disk.
    pub(super) fn by_name(self) -> Option<&'a NamedDevice> {
        match self {
            Self::ByName(device) => Some(device),
            Self::No | Self::WithOthers => None,
        }
    }
}

impl<'a> Selector<'a> {
    /// Creates the selector of a choice.
    ///
    /// `Err` is a sentence: a filter that can't be parsed selects nothing.
    ///
    /// Filters are regular expressions of the crate regex: RE2 as in Go, except `\Q...\E`, `\C` and octal
    /// escapes, which are errors here.
    pub(super) fn new(choice: Choice<'a>) -> Result<Self, String> {
        let parse = |what: &str, filter: &str| {
            Regex::new(filter).map_err(|_| {
                format!("{what} `{filter}` is not a valid regular expression, so it selects no disks")
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

    /// Returns whether a disk is selected.
    pub(super) fn asks(&self, disk: &DiskSeen) -> Selection<'a> {
        self.selects(&disk.name, &disk.links)
    }

    /// Returns whether a disk with this kernel name and these links is selected.
    pub(super) fn selects(&self, name: &str, links: &BTreeSet<String>) -> Selection<'a> {
        let is_asked = match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Filter(filter) => filter.is_match(name),
            // The disk's own path counts like its links.
            Self::PathFilter(filter) => {
                filter.is_match(&path_of(name)) || links.iter().any(|link| filter.is_match(link))
            }
            Self::Named(devices) => {
                let entry = devices.iter().find(|device| is_named(name, links, &device.name));
                return entry.map_or(Selection::No, Selection::ByName);
            }
        };
        if is_asked { Selection::WithOthers } else { Selection::No }
    }

    /// Returns the entries of `devices[]`.
    pub(super) fn named(&self) -> &'a [NamedDevice] {
        match self {
            Self::Named(devices) => devices,
            Self::Nothing | Self::Filter(_) | Self::PathFilter(_) | Self::All => &[],
        }
    }
}

fn path_of(name: &str) -> String {
    format!("/dev/{name}")
}

/// Returns whether a name refers to a disk: its kernel name, `/dev/` and that name, or one of its links in
/// full.
///
/// A link without `/dev/` (`disk/by-id/...`) does not count, as in Rook.
fn is_named(kernel: &str, links: &BTreeSet<String>, name: &str) -> bool {
    kernel == name || path_of(kernel) == name || links.contains(name)
}

/// Returns the disk that a name refers to.
///
/// Rook finds a `metadataDevice` in the same way. But with a `deviceFilter` it finds only a device that is
/// named by its kernel name or matches the filter itself (pkg/clusterd/disk.go, `deviceMatchWithFilter`,
/// v1.20.6). Here the device is always found.
pub(super) fn find<'a>(name: &str, inventory: &'a NodeInventory) -> Option<&'a DiskSeen> {
    inventory.disks.iter().find(|disk| is_named(&disk.name, &disk.links, name))
}

/// Returns whether the disk is a volume of a Ceph cluster that is mapped on the node.
///
/// Rook ignores such disks (pkg/clusterd/disk.go, `ignoreDevice`, v1.20.6): an OSD on one would wait for
/// itself.
pub(super) fn is_rbd(disk: &DiskSeen) -> bool {
    let Some(number) = disk.name.strip_prefix("rbd") else { return false };
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == 'p')
}
