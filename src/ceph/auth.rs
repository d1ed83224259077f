//! `ceph auth`: whether an OSD has its key, and the key for preparing OSDs. It never sends `auth ls`, whose
//! permission would allow reading every key.

use std::collections::BTreeSet;

use rustix::io::Errno;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::ceph::command::Command;
use crate::ceph::config_key_ls;
use crate::ceph::error::CephError;
use crate::ceph::secret::Secret;
use crate::ceph::session::Ceph;
use crate::domain::drift::Keys;
use crate::domain::osd::OsdId;

/// Entity that ceph-volume acts as.
const BOOTSTRAP: &str = "client.bootstrap-osd";

#[derive(Deserialize)]
struct Entity {
    key: String,
}

fn get(entity: &str) -> Command {
    Command::mon("auth get").with("entity", entity)
}

/// Returns the command that creates `client.bootstrap-osd` as Rook and cephadm create it.
fn create_bootstrap() -> Command {
    Command::mon("auth get-or-create")
        .with("entity", BOOTSTRAP)
        .with("caps", vec!["mon", "allow profile bootstrap-osd"])
}

fn remove_bootstrap() -> Command {
    Command::mon("auth rm").with("entity", BOOTSTRAP)
}

fn parse_key(answer: &[u8]) -> serde_json::Result<Secret> {
    let [entity]: [Entity; 1] = serde_json::from_slice(answer)?;
    Ok(Secret::new(entity.key))
}

/// Returns whether an answer contains an entity.
///
/// The answer also contains the key, which is not needed.
fn is_there(answer: &[u8]) -> serde_json::Result<bool> {
    serde_json::from_slice::<Vec<IgnoredAny>>(answer).map(|entities| !entities.is_empty())
}

impl Ceph {
    /// Returns whether `auth get osd.N` finds an entity.
    ///
    /// `osd destroy` deletes it, `osd new` with a key creates it.
    pub async fn has_auth(&self, osd: OsdId) -> Result<bool, CephError> {
        self.is_entity(&osd.to_string()).await
    }

    async fn is_entity(&self, entity: &str) -> Result<bool, CephError> {
        match self.read(get(entity), is_there).await {
            Err(error) if error.errno() == Some(Errno::NOENT) => Ok(false),
            found => found,
        }
    }

    /// Returns the ids without an OSD for which Ceph keeps a key, and the OSDs for which it keeps a dm-crypt
    /// key.
    pub async fn keys(&self) -> Result<Keys, CephError> {
        let map = self.osd_map().await?;
        let mut unused = BTreeSet::new();
        for osd in (0..map.max_osd).map(OsdId).filter(|osd| !map.slots.contains_key(osd)) {
            if self.has_auth(osd).await? {
                unused.insert(osd);
            }
        }
        let dmcrypt = self.read(config_key_ls::command(), config_key_ls::parse).await?;
        Ok(Keys { unused, dmcrypt })
    }

    /// Returns the key of `client.bootstrap-osd`, which must exist.
    pub async fn bootstrap_key(&self) -> Result<Secret, CephError> {
        self.read(get(BOOTSTRAP), parse_key).await
    }

    /// Returns whether `client.bootstrap-osd` exists.
    ///
    /// Rook from 1.19 on deletes it after each reconcile.
    pub async fn has_bootstrap(&self) -> Result<bool, CephError> {
        self.is_entity(BOOTSTRAP).await
    }

    /// Creates or removes `client.bootstrap-osd`.
    ///
    /// An existing one is used as it is: requesting it with other capabilities than it has is `EINVAL`
    /// (16.2.15).
    pub async fn set_bootstrap(&self, there: bool) -> Result<(), CephError> {
        if self.has_bootstrap().await? == there {
            return Ok(());
        }
        self.act(None, if there { create_bootstrap() } else { remove_bootstrap() }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer};

    #[test]
    fn auth_get_answer_of_each_release_is_parsed() {
        for release in RELEASES {
            // Keys are replaced in the samples.
            assert_eq!(parse_key(&answer(release, "auth-get")).unwrap().expose(), "XXX", "{release}");
            assert!(is_there(&answer(release, "auth-get.osd")).unwrap(), "{release}");
        }
    }

    #[test]
    fn auth_key_is_parsed_from_the_only_entity() {
        let answer =
            br#"[{"entity":"client.bootstrap-osd","key":"SECRET","caps":{"mon":"profile bootstrap-osd"}}]"#;
        assert_eq!(parse_key(answer).unwrap().expose(), "SECRET");
        assert!(parse_key(b"[]").is_err());
    }

    #[test]
    fn auth_commands_are_allowed_by_our_own_capabilities() {
        for command in [get("osd.12"), get(BOOTSTRAP), create_bootstrap(), remove_bootstrap()] {
            assert!(crate::ceph::caps::tests::allow(&command), "{command:?}");
        }
    }

    #[test]
    fn bootstrap_key_capabilities_are_a_flat_list() {
        let sent = create_bootstrap().to_c_string().into_string().unwrap();
        assert!(sent.contains(r#""caps":["mon","allow profile bootstrap-osd"]"#), "{sent}");
    }
}
