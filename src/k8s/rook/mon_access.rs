//! Address of the mons and the key for them, from the objects that Rook maintains for that.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::domain::osd::ClusterFsid;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;

const ENDPOINTS: &str = "rook-ceph-mon-endpoints";
const SECRET: &str = "rook-ceph-mon";
/// Port of the mons for version 2 of Ceph's protocol.
const MSGR2: u16 = 3300;

/// A key: of a cephx user, or of an encrypted volume.
///
/// It is never shown: neither `Debug` nor `Display` of a type that contains it prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Wraps a key.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// Returns the key itself, for librados, a keyring or a Secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(...)")
    }
}

/// Everything that a client of Ceph needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonAccess {
    /// `mon_host` as librados takes it.
    pub mon_host: String,
    /// fsid of the cluster.
    pub fsid: ClusterFsid,
    /// Entity: `client.admin`.
    pub user: String,
    /// Key of the entity.
    pub key: Key,
    /// Secret that contains user and key.
    pub secret: String,
    /// True if the Secret is Rook's own, with the key that may create others.
    pub of_rook: bool,
}

impl K8s {
    /// Reads the address of the mons and the key: that of the named Secret, else Rook's own.
    ///
    /// Both are read again at every connect, because mons move and keys are rotated.
    pub async fn mon_access(&self) -> Result<MonAccess, K8sError> {
        let of_rook = self.place.ceph_secret.is_none();
        let secret = self.place.ceph_secret.clone().unwrap_or_else(|| SECRET.to_owned());
        let secrets = self.kind::<Secret>();
        let (mon_host, found) = tokio::try_join!(self.mon_host(), secrets.get(&secret))?;
        let data = found.data.unwrap_or_default().into_iter().map(|(k, v)| (k, v.0)).collect();
        let credentials = if of_rook { of_rooks(&data) } else { of_ours(&data) };
        let (fsid, user, key) =
            credentials.map_err(|why| K8sError::Malformed { what: format!("secret/{secret}"), why })?;
        Ok(MonAccess { mon_host, fsid, user, key, secret, of_rook })
    }

    /// Returns `mon_host` as librados and ceph-volume take it.
    pub async fn mon_host(&self) -> Result<String, K8sError> {
        let endpoints = self.kind::<ConfigMap>().get(ENDPOINTS).await?;
        let mons = endpoints.data.unwrap_or_default().remove("data").unwrap_or_default();
        mon_host(&mons).map_err(|why| K8sError::Malformed { what: format!("configmap/{ENDPOINTS}"), why })
    }
}

/// Converts Rook's `a=10.0.0.1:6789,b=[fd00::1]:3300` to `mon_host`.
///
/// Rook writes the v1 port if a mon has both, and the v2 port if it has v2 only. As in Rook's own `mon_host`,
/// v2 comes first, and librados then uses v2 alone (pkg/daemon/ceph/client/config.go,
/// `PopulateMonHostMembers`, 1.4-1.20). In v1, a client accepts what the mon chooses, also no authentication.
fn mon_host(endpoints: &str) -> Result<String, String> {
    let mons: Vec<_> = endpoints.split(',').map(str::trim).filter(|m| !m.is_empty()).collect();
    if mons.is_empty() {
        return Err("its key `data` contains no mon".to_owned());
    }
    mons.into_iter().map(one_mon).collect::<Result<Vec<_>, _>>().map(|mons| mons.join(","))
}

fn one_mon(mon: &str) -> Result<String, String> {
    let unreadable = || format!("`{}` is not name=IP:port", mon.escape_debug());
    let address = mon.split_once('=').ok_or_else(unreadable)?.1;
    let (host, port) = address.rsplit_once(':').ok_or_else(unreadable)?;
    let port: u16 = port.parse().map_err(|_| unreadable())?;
    // Rook writes addresses only, and librados takes no name here. Other text would reach the agent's
    // ceph.conf, as lines of their own.
    let ip: IpAddr = host.trim_start_matches('[').trim_end_matches(']').parse().map_err(|_| unreadable())?;
    let v2 = SocketAddr::new(ip, MSGR2);
    Ok(if port == MSGR2 {
        format!("[v2:{v2}]")
    } else {
        format!("[v2:{v2},v1:{}]", SocketAddr::new(ip, port))
    })
}

type Credentials = (ClusterFsid, String, Key);

/// Returns a text of a Secret, if it is not empty.
fn text<'a>(data: &'a BTreeMap<String, Vec<u8>>, key: &str) -> Option<&'a str> {
    let text = data.get(key).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn fsid(data: &BTreeMap<String, Vec<u8>>) -> Result<ClusterFsid, String> {
    text(data, "fsid").ok_or("it has no key `fsid`")?.parse::<ClusterFsid>().map_err(|e| e.to_string())
}

fn entity(user: &str) -> String {
    if user.contains('.') { user.to_owned() } else { format!("client.{user}") }
}

/// Reads Rook's Secret `rook-ceph-mon`.
fn of_rooks(data: &BTreeMap<String, Vec<u8>>) -> Result<Credentials, String> {
    let key = text(data, "ceph-secret").or_else(|| text(data, "admin-secret"));
    let key = key.ok_or("it has neither key `ceph-secret` nor `admin-secret`")?;
    // A Secret with `admin-secret` alone is from Rook before 1.4, which knew no other user.
    Ok((fsid(data)?, entity(text(data, "ceph-username").unwrap_or("client.admin")), Key::new(key)))
}

/// Reads a Secret that the owner created: user and key as in Rook's Secrets for CSI, and the cluster's fsid.
fn of_ours(data: &BTreeMap<String, Vec<u8>>) -> Result<Credentials, String> {
    let key = text(data, "userKey").ok_or("it has no key `userKey`")?;
    Ok((fsid(data)?, entity(text(data, "userID").ok_or("it has no key `userID`")?), Key::new(key)))
}

/// Returns the environment variables by which Ceph's tools reach the mons.
pub(crate) fn mons() -> [Value; 2] {
    [
        json!({"name": "ROOK_CEPH_MON_HOST", "valueFrom": {"secretKeyRef": {"name": "rook-ceph-config", "key": "mon_host"}}}),
        // This variable comes after the one that it names: Kubernetes expands only earlier ones.
        json!({"name": "CEPH_ARGS", "value": "-m $(ROOK_CEPH_MON_HOST)"}),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mon_endpoint_yields_v2_and_v1_addresses_by_its_port() {
        assert_eq!(mon_host("a=10.0.0.1:6789").unwrap(), "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]");
        assert_eq!(
            mon_host("a=10.0.0.1:3300, c=10.0.0.3:3300").unwrap(),
            "[v2:10.0.0.1:3300],[v2:10.0.0.3:3300]"
        );
        assert_eq!(mon_host("b=[fd00::1]:6789").unwrap(), "[v2:[fd00::1]:3300,v1:[fd00::1]:6789]");
        assert_eq!(mon_host("a=10.0.0.1:6790").unwrap(), "[v2:10.0.0.1:3300,v1:10.0.0.1:6790]");
    }

    #[test]
    fn mon_endpoint_that_is_incomplete_is_an_error() {
        for bad in ["", " ,", "a", "a=", "10.0.0.1:6789", "a=10.0.0.1", "a=10.0.0.1:", "a=:6789"] {
            assert!(mon_host(bad).is_err(), "{bad}");
        }
        assert!(mon_host("a=10.0.0.1:99999").is_err());
    }

    #[test]
    fn mon_endpoint_that_is_no_address_never_reaches_ceph_conf() {
        for bad in ["a=mon:6789", "a=10.0.0.1 x:6789", "a=10.0.0.1\nauth_client_required = none\n:6789"] {
            let why = mon_host(bad).unwrap_err();
            assert!(why.ends_with("is not name=IP:port") && !why.contains('\n'), "{why}");
        }
    }

    fn data(entries: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        entries.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect()
    }

    const FSID: (&str, &str) = ("fsid", "6a1b2c3d-0000-4000-8000-000000000001");

    #[test]
    fn rooks_ceph_key_is_found_under_its_current_and_old_name() {
        let now = data(&[
            FSID,
            ("ceph-username", "client.admin"),
            ("ceph-secret", "AQ=="),
            ("admin-secret", "old"),
        ]);
        let (fsid, user, key) = of_rooks(&now).unwrap();
        assert_eq!(
            (fsid.to_string().as_str(), user.as_str(), key.reveal()),
            (FSID.1, "client.admin", "AQ==")
        );
        let (_, user, key) = of_rooks(&data(&[FSID, ("admin-secret", "old\n")])).unwrap();
        assert_eq!((user.as_str(), key.reveal()), ("client.admin", "old"));
        assert!(of_rooks(&data(&[FSID])).is_err());
        assert!(of_rooks(&data(&[("ceph-secret", "k")])).is_err());
    }

    #[test]
    fn own_secret_is_read_or_refused_with_its_missing_entry() {
        let whole = [FSID, ("userID", "osd-migrate"), ("userKey", "AQ==\n")];
        let (fsid, user, key) = of_ours(&data(&whole)).unwrap();
        assert_eq!(
            (fsid.to_string().as_str(), user.as_str(), key.reveal()),
            (FSID.1, "client.osd-migrate", "AQ==")
        );
        for missing in 0..whole.len() {
            let mut part = whole.to_vec();
            let (key, _) = part.remove(missing);
            assert!(of_ours(&data(&part)).is_err_and(|why| why.contains(key)), "{key}");
        }
    }

    #[test]
    fn mon_access_never_prints_its_key() {
        let access = MonAccess {
            mon_host: String::new(),
            fsid: FSID.1.parse().unwrap(),
            user: "client.admin".to_owned(),
            key: Key::new("AQsecret=="),
            secret: SECRET.to_owned(),
            of_rook: true,
        };
        assert!(!format!("{access:?}").contains("AQsecret"), "{access:?}");
    }
}
