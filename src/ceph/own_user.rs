//! `client.osd-migrate`, read and created with the admin key. These are the only commands of osd-migrate that
//! its own capabilities do not cover.

use std::collections::BTreeMap;

use rustix::io::Errno;
use serde::Deserialize;

use crate::ceph::caps::{self, Needs};
use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::secret::Secret;
use crate::ceph::session::Ceph;

/// User as the mons store it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct User {
    key: Secret,
    caps: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Entity {
    key: String,
    #[serde(default)]
    caps: BTreeMap<String, String>,
}

/// Change that the user needs.
#[derive(Debug, PartialEq, Eq)]
enum UserChange {
    Nothing,
    User,
    Caps,
}

fn wanted(needs: Needs) -> BTreeMap<String, String> {
    [("mon", caps::on_mons(needs)), ("mgr", caps::on_mgr())].map(|(k, v)| (k.to_owned(), v)).into()
}

fn lack(found: Option<&User>, needs: Needs) -> UserChange {
    match found {
        None => UserChange::User,
        // Additional capabilities are removed, just as missing ones are added.
        Some(user) if user.caps != wanted(needs) => UserChange::Caps,
        Some(_) => UserChange::Nothing,
    }
}

fn get() -> Command {
    Command::mon("auth get").with("entity", caps::USER)
}

fn with_caps(name: &'static str, needs: Needs) -> Command {
    let caps: Vec<String> = wanted(needs).into_iter().flat_map(|(daemon, caps)| [daemon, caps]).collect();
    Command::mon(name).with("entity", caps::USER).with("caps", caps)
}

fn parse(answer: &[u8]) -> serde_json::Result<User> {
    let [Entity { key, caps }]: [Entity; 1] = serde_json::from_slice(answer)?;
    Ok(User { key: Secret::new(key), caps })
}

#[expect(clippy::unnecessary_wraps, reason = "as all that read an answer")]
fn nothing(_answer: &[u8]) -> serde_json::Result<()> {
    Ok(())
}

impl Ceph {
    /// Returns the key of `client.osd-migrate` if the user exists with exactly the capabilities that are
    /// needed, and the session may read it.
    ///
    /// Changes nothing.
    pub async fn own_user(&self, needs: Needs) -> Result<Option<Secret>, CephError> {
        match self.read(get(), parse).await {
            Ok(user) => Ok((lack(Some(&user), needs) == UserChange::Nothing).then_some(user.key)),
            Err(error) if matches!(error.errno(), Some(Errno::NOENT | Errno::ACCESS)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the key of `client.osd-migrate`.
    ///
    /// Creates the user if it is missing, and sets its capabilities if they differ (those of another version
    /// of this program, or of a run with other needs).
    pub async fn make_own_user(&self, needs: Needs) -> Result<Secret, CephError> {
        let found = match self.read(get(), parse).await {
            Ok(user) => Some(user),
            Err(error) if error.errno() == Some(Errno::NOENT) => None,
            Err(error) => return Err(error),
        };
        match (lack(found.as_ref(), needs), found) {
            (UserChange::Nothing, Some(user)) => return Ok(user.key),
            (UserChange::Caps, _) => self.read(with_caps("auth caps", needs), nothing).await?,
            (UserChange::User | UserChange::Nothing, _) => {
                self.read(with_caps("auth get-or-create", needs), nothing).await?;
            }
        }
        self.read(get(), parse).await.map(|user| user.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(caps: BTreeMap<String, String>) -> User {
        User { key: Secret::new("k".to_owned()), caps }
    }

    #[test]
    fn own_user_is_created_if_missing_and_gets_its_exact_caps() {
        let usual = || wanted(Needs::USUAL);
        assert_eq!(lack(None, Needs::USUAL), UserChange::User);
        assert_eq!(lack(Some(&user(usual())), Needs::USUAL), UserChange::Nothing);
        let mut more = usual();
        more.insert("osd".to_owned(), "allow *".to_owned());
        let mut less = usual();
        less.remove("mgr");
        let mut others = usual();
        others.insert("mon".to_owned(), "allow *".to_owned());
        for caps in [more, less, others, BTreeMap::new()] {
            assert_eq!(lack(Some(&user(caps.clone())), Needs::USUAL), UserChange::Caps, "{caps:?}");
        }
    }

    #[test]
    fn own_user_may_purge_only_while_a_run_needs_it() {
        let has = |needs| user(wanted(needs));
        assert_eq!(lack(Some(&has(Needs::USUAL)), Needs::PURGE), UserChange::Caps);
        assert_eq!(lack(Some(&has(Needs::PURGE)), Needs::PURGE), UserChange::Nothing);
        assert_eq!(lack(Some(&has(Needs::PURGE)), Needs::USUAL), UserChange::Caps, "it is taken away");
        let sent = |needs| with_caps("auth caps", needs).to_c_string().to_string_lossy().into_owned();
        assert!(sent(Needs::PURGE).contains("purge-actual") && !sent(Needs::USUAL).contains("purge-actual"));
    }

    #[test]
    fn own_user_caps_are_sent_as_a_flat_list() {
        for name in ["auth caps", "auth get-or-create"] {
            let sent: serde_json::Value =
                serde_json::from_slice(with_caps(name, Needs::USUAL).to_c_string().to_bytes()).unwrap();
            assert_eq!((&sent["prefix"], &sent["entity"]), (&name.into(), &caps::USER.into()));
            assert_eq!(
                sent["caps"],
                serde_json::json!(["mgr", caps::on_mgr(), "mon", caps::on_mons(Needs::USUAL)])
            );
        }
    }

    #[test]
    fn own_user_may_neither_read_nor_change_itself() {
        let with = |name| with_caps(name, Needs::PURGE);
        for command in [get(), with("auth caps"), with("auth get-or-create")] {
            assert!(!caps::tests::allow(&command), "{command:?}");
        }
    }

    #[test]
    fn own_user_key_and_caps_are_read_from_one_entity() {
        let found =
            parse(br#"[{"entity":"client.osd-migrate","key":"K","caps":{"mon":"allow r"}}]"#).unwrap();
        assert_eq!((found.key.expose(), found.caps["mon"].as_str()), ("K", "allow r"));
        assert!(!format!("{found:?}").contains("\"K\""));
        assert!(parse(b"[]").is_err());
    }
}
