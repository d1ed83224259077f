//! PersistentVolumeClaim of a recorded OSD.

use serde::{Deserialize, Serialize};

use crate::domain::observation::Pvc;

/// PVC of an OSD, with what identifies its device: names can be used again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordedPvc {
    /// Name of the PVC.
    pub name: String,
    /// uid of the PVC.
    pub uid: String,
    /// Name of its PersistentVolume.
    pub volume: String,
    /// uid of its PersistentVolume.
    pub volume_uid: String,
}

impl RecordedPvc {
    /// Returns the record of a PVC; `None` if it is not bound to an existing PersistentVolume.
    pub fn of(name: &str, pvc: &Pvc) -> Option<Self> {
        let volume = pvc.volume.as_ref()?;
        Some(Self {
            name: name.to_owned(),
            uid: pvc.uid.clone(),
            volume: volume.name.clone(),
            volume_uid: volume.uid.clone()?,
        })
    }

    /// Returns whether an observed PVC is the recorded one, on the recorded PersistentVolume.
    pub fn is(&self, pvc: &Pvc) -> bool {
        Self::of(&self.name, pvc).as_ref() == Some(self)
    }
}
