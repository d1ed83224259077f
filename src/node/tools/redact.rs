//! Removal of keys from what leaves the node: commands of Ceph sometimes print keys.

/// Shortest run of base64 that is taken for a key: cephx keys have 40 characters, dm-crypt ones more.
const KEY_CHARS: usize = 36;
/// Lines of a command's output that go into an error: enough for Ceph's last complaint and ceph-volume's last
/// steps.
const LAST_LINES: usize = 8;

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')
}

/// Replaces everything in the form of a key by `<key>`.
///
/// Paths stay: they have slashes but also dots, dashes or spaces before they are that long. A key ends in `=`
/// or begins as all cephx keys do.
pub(crate) fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_base64(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_secret = word.len() >= KEY_CHARS && (word.ends_with('=') || word.contains("AQ"));
        clean.push_str(if is_secret { "<key>" } else { word });
        let next = after.find(is_base64).unwrap_or(after.len());
        let (between, following) = after.split_at(next);
        clean.push_str(between);
        rest = following;
    }
    clean
}

/// Returns the last lines with text, as one line, without keys.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    redact(&lines.get(from..).unwrap_or_default().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AQDkaCBpGd3pNBAAk0kgVbmbgP4CcbZ7pDk0Xw==";

    #[test]
    fn key_is_redacted_however_it_is_quoted() {
        for text in [
            KEY.to_owned(),
            format!("key = {KEY}\n"),
            format!("{{\"cephx_secret\":\"{KEY}\"}}"),
            format!("--add-key={KEY} --name osd.1"),
            format!("x{KEY}"),
        ] {
            let clean = redact(&text);
            assert!(clean.contains("<key>") && !clean.contains("kgVbmbgP4"), "{clean}");
        }
    }

    #[test]
    fn passphrase_of_an_encrypted_osd_is_redacted() {
        // 128 bytes in base64, as Rook writes them into the Secret.
        let key = format!("{}+/9k=", "bG9u".repeat(42));
        assert_eq!(redact(&format!("passphrase {key} x")), "passphrase <key> x");
    }

    #[test]
    fn text_without_a_key_is_not_redacted() {
        for text in [
            "Running command: /usr/bin/ceph-osd --cluster ceph --mkfs -i 0 --osd-data /var/lib/ceph/osd/ceph-0/",
            "/dev/disk/by-partuuid/f76b1738-2c9a-4244-8217-3604b053e471",
            "ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)",
            "µ-Zeichen = gut",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn output_is_reduced_to_its_last_eight_lines() {
        let text = "line\n\n".repeat(20) + "the end\n";
        assert_eq!(last_lines(&text).split(" | ").count(), 8);
        assert!(last_lines(&text).ends_with("line | the end"));
    }
}
