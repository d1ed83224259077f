//! Secret that cannot reach a log: neither `Debug` nor `Display` shows it.

use std::fmt;

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
        decode_base64(&self.0).is_some_and(|bytes| match bytes.as_slice() {
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

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=');
    if body.is_empty() || !text.len().is_multiple_of(4) || text.len() - body.len() > 2 {
        return None;
    }
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
    for symbol in body.bytes() {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            let [.., byte] = (bits >> held).to_be_bytes();
            bytes.push(byte);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
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

    #[test]
    fn base64_decoder_follows_the_standard_alphabet() {
        assert_eq!(decode_base64("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(decode_base64("aGVsbG8h"), Some(b"hello!".to_vec()));
        assert_eq!(decode_base64("+/8="), Some(vec![0xfb, 0xff]));
        assert_eq!(decode_base64("a b="), None);
    }
}
