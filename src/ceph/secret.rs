//! Secret that cannot reach a log: neither `Debug` nor `Display` shows it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Key or keyring. [`Secret::expose`] is the only access to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret from its text.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text itself, for the one place that has to pass it on.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether this is a cephx key: base64 of type, time, length, and that many bytes
    /// (`CryptoKey::encode`).
    ///
    /// librados prints a key on stderr if it cannot decode the key, so it must not get such a key.
    pub(super) fn is_cephx_key(&self) -> bool {
        STANDARD.decode(&self.0).is_ok_and(|bytes| match bytes.as_slice() {
            [_, 0, _, _, _, _, _, _, _, _, low, high, key @ ..] => {
                !key.is_empty() && key.len() == usize::from(u16::from_le_bytes([*low, *high]))
            }
            _ => false,
        })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Created for this test: type 1, time 0, 16 zero bytes. Tentacle's new kind is longer and has type 2.
    const KEY: &str = "AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAA==";

    #[test]
    fn secret_is_never_printed() {
        let secret = Secret::new(KEY.to_owned());
        assert!(!format!("{secret} {secret:?} {:?}", Some(&secret)).contains("AQAA"));
        assert_eq!(secret.expose(), KEY);
    }

    #[test]
    fn cephx_key_is_recognised_only_if_complete() {
        assert!(Secret::new(KEY.to_owned()).is_cephx_key());
        let cut = "AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAA";
        for bad in ["", "zzz", "AQ==", "[client.admin]", cut, &KEY[..36]] {
            assert!(!Secret::new(bad.to_owned()).is_cephx_key(), "{bad}");
        }
    }
}
