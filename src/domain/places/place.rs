//! A place of a device set, and what it becomes.

use std::fmt;

use super::Obstacle;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{Layout, NodeName, OsdId};

/// Place of a device set that has no OSD: an index of the set.
///
/// Indices with the same obstacle share a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the device set.
    pub set: String,
    /// Indices in the set, in their order; none if the obstacle is the set itself.
    pub indices: Vec<u32>,
    /// Future of the place.
    pub found: Found,
}

/// Future of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The PVCs become an OSD, if their devices are blank.
    Available(Box<AvailablePvcs>),
    /// A record turns its PVC into an OSD, or uses it for one.
    InProgress {
        /// PVC of the data
        pvc: String,
        /// OSD of the record
        osd: OsdId,
    },
    /// It gets no OSD.
    Obstructed(Obstacle),
}

/// PVCs that become an OSD.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AvailablePvcs {
    /// PVCs of the OSD.
    pub pvcs: PerPvc<String>,
    /// Node of their PersistentVolumes.
    pub node: NodeName,
    /// Layout of the OSD.
    pub layout: Layout,
    /// CRUSH device class, if the set declares one.
    pub device_class: Option<String>,
    /// uid of the PersistentVolume of the data, which says which device a person approves.
    pub volume_uid: String,
}

impl Place {
    /// Returns the PVCs that become an OSD.
    pub fn available(&self) -> Option<&AvailablePvcs> {
        match &self.found {
            Found::Available(available) => Some(available),
            Found::InProgress { .. } | Found::Obstructed(_) => None,
        }
    }

    /// Returns why the place gets no OSD.
    pub fn obstacle(&self) -> Option<&Obstacle> {
        match &self.found {
            Found::Obstructed(obstacle) => Some(obstacle),
            Found::Available(_) | Found::InProgress { .. } => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indices = self.indices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let at = match self.indices.len() {
            0 => String::new(),
            1 => format!(", index {indices}"),
            _ => format!(", indices {indices}"),
        };
        write!(f, "device set `{}`{at}: {}", self.set, self.found)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Available(available) => write!(f, "{available}"),
            Self::InProgress { pvc, osd } => write!(f, "PVC {pvc} is used by {osd}, which is in progress"),
            Self::Obstructed(obstacle) => write!(f, "{obstacle} [{}]", obstacle.code()),
        }
    }
}

impl fmt::Display for AvailablePvcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pvcs, node, layout, .. } = self;
        write!(f, "PVC {} on node {node} becomes an OSD, {layout}", pvcs.data)?;
        if let Some(db) = &pvcs.db {
            write!(f, ", with its database on PVC {db}")?;
        }
        if let Some(wal) = &pvcs.wal {
            write!(f, ", with its log on PVC {wal}")?;
        }
        let devices = if pvcs.others().next().is_some() { "the devices are" } else { "the device is" };
        write!(f, ", if {devices} blank")
    }
}
