//! Numbers in Ceph's answers that are no counts, or no numbers at all.
//!
//! Ceph up to 18.2.4 and 19.2.6 prints a float without a value as `inf` or `nan`: for example `osd dump` the
//! `read_balance` of a pool with few PGs beside many OSDs, such as `.mgr`
//! (<https://github.com/ceph/ceph/pull/60061>, <https://github.com/ceph/ceph/pull/60063>).

/// Words that stand for a number, as C++ prints them.
const WORDS: [&[u8]; 4] = [b"inf", b"-inf", b"nan", b"-nan"];

/// Returns a counter, which is below zero for a moment while Ceph corrects it, or if Ceph estimates a part of
/// it.
pub(super) fn above_zero(counter: i64) -> u64 {
    u64::try_from(counter).unwrap_or_default()
}

/// Parses an answer, and once more with `null` in place of such numbers if it is no JSON.
pub(super) fn parsed<T>(
    answer: &[u8],
    parse: impl Fn(&[u8]) -> serde_json::Result<T>,
) -> serde_json::Result<T> {
    parse(answer).or_else(|error| match without(answer) {
        Some(text) => parse(&text),
        None => Err(error),
    })
}

/// Returns the text with `null` in place of numbers without a value; `None` if it has none.
fn without(text: &[u8]) -> Option<Vec<u8>> {
    // An answer that is no JSON for another reason may have hundreds of MB: it is not copied.
    if !text.windows(3).any(|part| matches!(part, b"inf" | b"nan")) {
        return None;
    }
    let mut replaced = Vec::with_capacity(text.len());
    let (mut rest, mut is_string, mut has_any) = (text, false, false);
    while let [first, after @ ..] = rest {
        let word = WORDS.into_iter().find(|word| !is_string && rest.starts_with(word));
        if let Some(word) = word {
            replaced.extend_from_slice(b"null");
            has_any = true;
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        replaced.push(*first);
        rest = after;
        match first {
            b'"' => is_string = !is_string,
            // The character after it never ends the string.
            b'\\' => {
                replaced.extend(rest.first());
                rest = rest.get(1..).unwrap_or_default();
            }
            _ => {}
        }
    }
    has_any.then_some(replaced)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> serde_json::Result<Value> {
        parsed(text.as_bytes(), |answer| serde_json::from_slice(answer))
    }

    #[test]
    fn number_without_a_value_is_null() {
        let text = r#"{"read_balance":{"score_acting":inf,"raw":-inf,"avg":nan,"of":[-nan,1.5]}}"#;
        let balance = json!({"score_acting": null, "raw": null, "avg": null, "of": [null, 1.5]});
        assert_eq!(read(text).unwrap(), json!({ "read_balance": balance }));
    }

    #[test]
    fn words_in_strings_stay() {
        let text = r#"{"pool_name":"inf, \"nan\": -inf \\","size":inf}"#;
        assert_eq!(read(text).unwrap(), json!({"pool_name": r#"inf, "nan": -inf \"#, "size": null}));
    }

    #[test]
    fn answer_that_is_no_json_is_refused_as_before() {
        for text in ["", "dumped all", "{\"a\":1", "{\"a\":info}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
