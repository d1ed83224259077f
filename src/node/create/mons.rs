//! The few commands that a node may send to the mons with the bootstrap-osd key.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;

use serde::Deserialize;

use crate::domain::inspection::NodeRequest;
use crate::domain::osd::{OsdFsid, OsdId};
use crate::node::disk::label::Key;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::tools::command::{CommandOutput, MONS, run};

/// User whose key is on the node.
const USER: &str = "client.bootstrap-osd";
/// Seconds that `ceph` tries to reach a mon: an election takes five to fifteen.
const CONNECT_SECS: &str = "15";

/// Status of the slots, in the words of `osd tree`: `up`, `down`, `destroyed`.
pub(crate) type Slots = BTreeMap<OsdId, String>;

/// Writes Ceph's configuration unless the pod brought one.
///
/// Refuses a configuration of another cluster.
pub(crate) fn configure(host: &Host, request: &NodeRequest) -> Result<(), NodeError> {
    let path = &host.ceph_conf;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(NodeError::io("create folder", folder))?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o644).open(path) {
        Ok(mut file) => {
            // By default, Ceph's tools also accept a mon that refuses cephx: it may be a false one.
            let text = format!(
                "[global]\nfsid = {}\nmon_host = {}\nauth_client_required = cephx\n\n[{USER}]\nkeyring = {}\n",
                request.cluster,
                request.mon_host,
                host.keyring.display()
            );
            file.write_all(text.as_bytes()).map_err(NodeError::io("write", path))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = std::fs::read_to_string(path).map_err(NodeError::io("read", path))?;
            match fsid_of(&text) {
                Some(fsid) if fsid != request.cluster.to_string() => Err(NodeError::Refused(format!(
                    "{} is of cluster {fsid}, expected {}",
                    path.display(),
                    request.cluster
                ))),
                Some(_) | None => Ok(()),
            }
        }
        Err(error) => Err(NodeError::io("create", path)(error)),
    }
}

/// Returns the slots.
///
/// The answer shows that the key is accepted, and which slots are destroyed.
pub(crate) async fn slots(host: &Host) -> Result<Slots, NodeError> {
    let answer = ceph(host, &["osd", "tree", "-f", "json"], None).await?;
    parse(&answer.stdout)
        .map_err(|error| NodeError::Unreadable { subject: answer.command, why: error.to_string() })
}

fn parse(tree: &str) -> serde_json::Result<Slots> {
    let Tree { nodes, outside } = serde_json::from_str(tree)?;
    let osds = nodes.into_iter().chain(outside).filter(|node| node.kind == "osd");
    Ok(osds.filter_map(|osd| Some((OsdId(u32::try_from(osd.id).ok()?), osd.status))).collect())
}

/// Re-registers an OSD: `osd new` with a known fsid and the disk's own key restores a destroyed slot.
///
/// The command is idempotent.
pub(crate) async fn osd_new(host: &Host, fsid: OsdFsid, osd: OsdId, key: &Key) -> Result<(), NodeError> {
    let (fsid, id) = (fsid.to_string(), osd.0.to_string());
    ceph(host, &["osd", "new", &fsid, &id, "-i", "-"], Some(&key.to_secrets())).await.map(drop)
}

async fn ceph(host: &Host, words: &[&str], stdin: Option<&[u8]>) -> Result<CommandOutput, NodeError> {
    let keyring = host.keyring.display().to_string();
    let mut args = vec!["--name", USER, "--keyring", &keyring, "--connect-timeout", CONNECT_SECS];
    args.extend(words);
    run("ceph", &args, stdin, MONS).await?.good()
}

fn fsid_of(conf: &str) -> Option<String> {
    conf.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "fsid").then(|| value.trim().to_owned())
    })
}

#[derive(Deserialize)]
struct Tree {
    nodes: Vec<TreeNode>,
    /// OSDs outside CRUSH.
    #[serde(rename = "stray")]
    outside: Vec<TreeNode>,
}

#[derive(Deserialize)]
struct TreeNode {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples::{RELEASES, said};

    #[test]
    fn slot_states_are_parsed_from_osd_tree() {
        for release in RELEASES {
            let slots = parse(&said(release, "osd-tree.json")).unwrap();
            let expected =
                (0..9).map(|osd| (OsdId(osd), if osd == 8 { "destroyed" } else { "up" }.to_owned()));
            assert_eq!(slots, expected.collect(), "{release}");
        }
    }

    #[test]
    fn destroyed_osd_outside_crush_has_its_slot() {
        let tree = r#"{"nodes": [], "stray": [{"id": 3, "type": "osd", "status": "destroyed"}]}"#;
        assert_eq!(parse(tree).unwrap(), [(OsdId(3), "destroyed".to_owned())].into());
    }

    #[test]
    fn cluster_fsid_is_read_from_ceph_conf() {
        assert_eq!(fsid_of("[global]\n fsid = abc \nmon_host=x").as_deref(), Some("abc"));
        assert_eq!(fsid_of("[global]\nmon_host = x"), None);
    }
}
