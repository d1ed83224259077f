//! Device sets: OSDs on PersistentVolumeClaims, as declared in `spec.storage.storageClassDeviceSets`.

/// Template of the PVC for the database (pkg/operator/ceph/cluster/osd/osd.go, `bluestorePVCMetadata`, Rook
/// v1.20.6).
pub const METADATA: &str = "metadata";

/// Template of the PVC for the write-ahead log (the same file, `bluestorePVCWal`).
pub const WAL: &str = "wal";

/// Template of the PVC for the data, and what Rook takes a template without a name for.
pub const DATA: &str = "data";

/// One of `storageClassDeviceSets`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DeviceSet {
    /// `name`: label `ceph.rook.io/DeviceSet` of PVCs and Deployments.
    pub name: String,
    /// `encrypted`
    pub encrypted: bool,
    /// Names of `volumeClaimTemplates`, in the order declared.
    pub templates: Vec<String>,
    /// `count`: OSDs of the set; `None` if it is missing or is no number.
    pub count: Option<u32>,
    /// `portable`: the OSDs may run on any node on which their volumes can be used.
    pub portable: bool,
    /// Annotation `crushDeviceClass` of the template for the data.
    pub device_class: Option<String>,
}

impl DeviceSet {
    /// Returns whether the set has a template for the database (`METADATA`) or for the log (`WAL`).
    ///
    /// Rook takes the only template of a set for the one of the data, whatever its name
    /// (`createDeviceSetPVCsForIndex`, deviceSet.go, v1.20.6).
    pub fn has_template(&self, wanted: &str) -> bool {
        self.templates.len() > 1 && self.templates.iter().any(|name| name == wanted)
    }

    /// Returns the name of the template for the data, as labels of its PVCs have it.
    pub fn data_template(&self) -> &str {
        match self.templates.as_slice() {
            [only] if !only.is_empty() => only,
            _ => DATA,
        }
    }

    /// Returns the name of a template that the set declares twice.
    pub fn double_template(&self) -> Option<&str> {
        let names = || self.templates.iter().map(|name| if name.is_empty() { DATA } else { name.as_str() });
        names()
            .enumerate()
            .find(|(n, name)| names().take(*n).any(|before| before == *name))
            .map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(templates: &[&str]) -> DeviceSet {
        let templates = templates.iter().map(|name| (*name).to_owned()).collect();
        DeviceSet { templates, ..DeviceSet::default() }
    }

    #[test]
    fn only_template_of_a_device_set_is_for_the_data() {
        let has_metadata = |templates: &[&str]| set(templates).has_template(METADATA);
        assert!(has_metadata(&["data", "metadata"]) && has_metadata(&["", "metadata"]));
        assert!(!has_metadata(&["metadata"]) && !has_metadata(&["data", "wal"]));
        assert!(set(&["data", "wal"]).has_template(WAL) && !set(&["wal"]).has_template(WAL));
    }

    #[test]
    fn only_template_of_a_device_set_names_its_data() {
        assert_eq!(set(&["block"]).data_template(), "block");
        assert_eq!(set(&[""]).data_template(), "data");
        assert_eq!(set(&["", "metadata"]).data_template(), "data");
    }

    #[test]
    fn template_without_a_name_is_the_one_of_the_data() {
        assert_eq!(set(&["", "metadata"]).double_template(), None);
        assert_eq!(set(&["", "metadata", "data"]).double_template(), Some("data"));
        assert_eq!(set(&["data", "wal", "wal"]).double_template(), Some("wal"));
    }
}
