//! Names of one OSD in a Deployment, replaced by those of another. Pure.

use serde_json::Value;

use crate::domain::osd::OsdId;

/// Field whose text contains no name of an OSD, but may look like one (`ceph-16`).
const IMAGE: &str = "image";
/// Variable with the same.
const IMAGE_VARIABLE: &str = "CONTAINER_IMAGE";
/// Fields with names of nodes and of other objects, which may look like those of an OSD (`ceph-osd-3`).
const OF_OTHERS: [&str; 6] =
    ["affinity", "configMap", "imagePullSecrets", "nodeSelector", "tolerations", "topologySpreadConstraints"];
/// Variable with the id (pkg/operator/ceph/cluster/osd/spec.go, v1.20.6).
const ID_VARIABLE: &str = "ROOK_OSD_ID";
/// Options of Ceph's programs whose value is the id.
const ID_OPTIONS: [&str; 3] = ["--id", "-i", "--osd-id"];

/// Texts that end with the id of an OSD: its folder, its sockets and logs, its objects.
const BEFORE_ID: [&str; 3] = ["/ceph-", "osd.", "osd-"];

/// Replacements for the names of an OSD.
pub(super) struct Renames {
    /// Names and what replaces them, the longest names first.
    names: Vec<(String, String)>,
    from: OsdId,
    to: OsdId,
}

impl Renames {
    /// Creates the replacements: names of PVCs and the fsid, and the id.
    pub(super) fn new(mut names: Vec<(String, String)>, from: OsdId, to: OsdId) -> Self {
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self { names, from, to }
    }

    /// Replaces the names in all texts of a value.
    pub(super) fn apply(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(list) => {
                self.option_values(list);
                for item in list {
                    self.apply(item);
                }
            }
            Value::Object(object) => {
                let name = object.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                for (key, item) in object.iter_mut() {
                    match (key.as_str(), name.as_str()) {
                        (IMAGE, _) | ("value", IMAGE_VARIABLE) => {}
                        (key, _) if OF_OTHERS.contains(&key) => {}
                        ("value", ID_VARIABLE) => *item = Value::String(self.to.0.to_string()),
                        (_, _) => self.apply(item),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces the id behind an option.
    fn option_values(&self, words: &mut [Value]) {
        let from = self.from.0.to_string();
        for at in 1..words.len() {
            let is_option =
                words.get(at - 1).and_then(Value::as_str).is_some_and(|w| ID_OPTIONS.contains(&w));
            if let Some(word) = words.get_mut(at).filter(|word| is_option && word.as_str() == Some(&from)) {
                *word = Value::String(self.to.0.to_string());
            }
        }
    }

    fn text(&self, text: &str) -> String {
        let (from, to) = (format!("ceph-{}", self.from.0), format!("ceph-{}", self.to.0));
        // The `subPath` of the folder of the OSD.
        if text == from {
            return to;
        }
        let named = self.named(text);
        BEFORE_ID.iter().fold(named, |text, before| self.numbered(&text, before))
    }

    /// Replaces the names in one pass, so that a name is not replaced within a replacement.
    fn named(&self, text: &str) -> String {
        let (mut new, mut rest) = (String::new(), text);
        while let Some(first) = rest.chars().next() {
            let found = self.names.iter().find(|(name, _)| rest.starts_with(name.as_str()));
            if let Some((name, with)) = found.filter(|_| !new.ends_with(|c: char| c.is_ascii_alphanumeric()))
            {
                new.push_str(with);
                rest = rest.get(name.len()..).unwrap_or_default();
            } else {
                new.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
        new
    }

    /// Replaces the id behind a text, unless it is the beginning of a longer number or name.
    fn numbered(&self, text: &str, before: &str) -> String {
        let from = format!("{before}{}", self.from.0);
        let (mut new, mut done) = (String::new(), 0);
        for (at, _) in text.match_indices(&from) {
            let end = at + from.len();
            let next = text.get(end..).and_then(|rest| rest.chars().next());
            if next.is_some_and(|c| c.is_ascii_alphanumeric()) {
                continue;
            }
            new.push_str(text.get(done..at).unwrap_or_default());
            new.push_str(before);
            new.push_str(&self.to.0.to_string());
            done = end;
        }
        new.push_str(text.get(done..).unwrap_or_default());
        new
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn renamed(mut value: Value) -> Value {
        let names =
            [("set1-data-0a", "set1-data-1x"), ("set1-data-0ab", "set1-data-1y"), ("aaaa-bbbb", "cccc-dddd")];
        let names = names.map(|(from, to)| (from.to_owned(), to.to_owned())).into();
        Renames::new(names, OsdId(3), OsdId(12)).apply(&mut value);
        value
    }

    #[test]
    fn names_of_an_osd_are_replaced_wherever_rook_writes_them() {
        for (before, after) in [
            ("/mnt/set1-data-0a", "/mnt/set1-data-1x"),
            ("/dev/mapper/set1-data-0ab-block-dmcrypt", "/dev/mapper/set1-data-1y-block-dmcrypt"),
            ("rook-ceph-osd-encryption-key-set1-data-0a", "rook-ceph-osd-encryption-key-set1-data-1x"),
            ("/var/lib/ceph/osd/ceph-3/block", "/var/lib/ceph/osd/ceph-12/block"),
            ("ceph-3", "ceph-12"),
            (
                "ceph --admin-daemon /run/ceph/ceph-osd.3.asok status",
                "ceph --admin-daemon /run/ceph/ceph-osd.12.asok status",
            ),
            ("OSD_UUID=aaaa-bbbb", "OSD_UUID=cccc-dddd"),
        ] {
            assert_eq!(renamed(json!(before)), json!(after));
        }
        let args = json!(["--foreground", "--id", "3", "--fsid", "3", "--default-log"]);
        assert_eq!(renamed(args), json!(["--foreground", "--id", "12", "--fsid", "3", "--default-log"]));
        let env =
            json!([{"name": "ROOK_OSD_ID", "value": "3"}, {"name": "ROOK_OSDS_PER_DEVICE", "value": "3"}]);
        let expected =
            json!([{"name": "ROOK_OSD_ID", "value": "12"}, {"name": "ROOK_OSDS_PER_DEVICE", "value": "3"}]);
        assert_eq!(renamed(env), expected);
    }

    #[test]
    fn names_of_nodes_and_configmaps_stay() {
        let pod = json!({
            "affinity": {"nodeAffinity": {"values": ["ceph-osd-3", "ceph-osd-4"]}},
            "nodeSelector": {"kubernetes.io/hostname": "ceph-3"},
            "volumes": [{"name": "rook-config-override", "configMap": {"name": "rook-config-override-ceph-osd-3"}}],
        });
        assert_eq!(renamed(pod.clone()), pod);
    }

    #[test]
    fn names_of_other_objects_stay() {
        for text in [
            "/var/lib/ceph/osd/ceph-31/block",
            "osd.30",
            "rook-ceph-osd-34",
            "xset1-data-0a",
            "quay.io/ceph/ceph:v3",
        ] {
            assert_eq!(renamed(json!(text)), json!(text));
        }
        let container = json!({"name": "osd", "image": "registry/ceph-3/osd.3", "env": [{"name": "CONTAINER_IMAGE", "value": "registry/ceph-3"}]});
        assert_eq!(renamed(container.clone()), container);
    }
}
