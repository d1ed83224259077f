//! Names of namespaces: a wrong one would fail later, in the words of a client.

/// Longest name of a namespace (a label of RFC 1123).
const LONGEST: usize = 63;

/// Parses the name of a namespace.
///
/// An environment variable may be empty.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.len() <= LONGEST && text.chars().all(is_known) && !text.starts_with('-') && !text.ends_with('-') {
        Ok(text.to_owned())
    } else {
        Err(format!("use lower-case letters, digits and -, at most {LONGEST} characters"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_namespace_says_which_characters_are_right() {
        for right in ["rook-ceph", "a", "2", ""] {
            assert_eq!(namespace(right), Ok(right.to_owned()));
        }
        let long = "x".repeat(64);
        for wrong in ["Rook Ceph", "rook_ceph", "-a", "a-", "a.b", "a/b", long.as_str()] {
            let expected = "use lower-case letters, digits and -, at most 63 characters";
            assert_eq!(namespace(wrong), Err(expected.to_owned()), "{wrong}");
        }
    }
}
