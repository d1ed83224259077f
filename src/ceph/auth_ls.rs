//! `ceph auth ls`: who has a key. Names only; the keys in the answer are not kept.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::command::Command;
use super::{Ceph, CephError, config_key_ls};
use crate::domain::drift::Keys;

#[derive(Deserialize)]
struct Dump {
    auth_dump: Vec<Entity>,
}

#[derive(Deserialize)]
struct Entity {
    entity: String,
}

fn command() -> Command {
    Command::mon("auth ls")
}

fn parse(answer: &[u8]) -> serde_json::Result<BTreeSet<String>> {
    let dump: Dump = serde_json::from_slice(answer)?;
    Ok(dump.auth_dump.into_iter().map(|entity| entity.entity).collect())
}

impl Ceph {
    /// Whose keys the mons keep.
    pub async fn keys(&self) -> Result<Keys, CephError> {
        let (entities, dmcrypt) = tokio::try_join!(
            self.read(command(), parse),
            self.read(config_key_ls::command(), config_key_ls::parse),
        )?;
        Ok(Keys { entities, dmcrypt })
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::answer;
    use super::*;

    #[test]
    fn names_of_daemons_clients_and_of_the_lockboxes_of_encrypted_osds() {
        let found = parse(&answer("16.2.15", "auth-ls")).unwrap();
        for entity in ["osd.0", "client.admin", "client.bootstrap-osd", "mgr.x"] {
            assert!(found.contains(entity), "{entity}: {found:?}");
        }
        assert!(found.iter().any(|entity| entity.starts_with("client.osd-lockbox.")), "{found:?}");
        assert!(parse(b"{}").is_err());
    }
}
