//! Losses that an erasure code survives, by its profile.

use std::collections::BTreeMap;

/// Returns the number of chunks that can be lost, whichever they are; `None` if that is `size` - k.
///
/// It is `size` - k for the codes that are MDS. The local chunks of LRC restore only their own group, so its
/// m counts. SHEC survives the loss of any c chunks, although it has m (documentation of both plugins,
/// 16.2.15). A code that is not known counts as one that survives no loss.
pub(super) fn any_losses(profile: Option<&BTreeMap<String, String>>) -> Option<u32> {
    let number = |name: &str| profile.and_then(|profile| profile.get(name)?.parse().ok());
    match profile.and_then(|profile| profile.get("plugin")).map(String::as_str) {
        Some("jerasure" | "isa" | "clay") => None,
        Some("shec") => Some(number("c").unwrap_or(0)),
        // Layers may be declared one by one instead, in any shape.
        Some("lrc") => Some(number("m").filter(|_| number("l").is_some()).unwrap_or(0)),
        Some(_) | None => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(profile: &[(&str, &str)]) -> Option<u32> {
        let profile = profile.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        any_losses(Some(&profile.collect()))
    }

    #[test]
    fn erasure_code_that_is_not_mds_has_its_own_number_of_losses() {
        for plugin in ["jerasure", "isa", "clay"] {
            assert_eq!(of(&[("plugin", plugin), ("k", "4"), ("m", "2")]), None, "{plugin}");
        }
        let shec = |c| of(&[("plugin", "shec"), ("k", "4"), ("m", "3"), ("c", c)]);
        assert_eq!((shec("1"), shec("2")), (Some(1), Some(2)));
        let lrc = |m| of(&[("plugin", "lrc"), ("k", "4"), ("m", m), ("l", "3")]);
        assert_eq!((lrc("1"), lrc("2")), (Some(1), Some(2)));
        let layers = [("plugin", "lrc"), ("mapping", "__DD__DD"), ("layers", "[]"), ("m", "2")];
        assert_eq!(of(&layers), Some(0));
        assert_eq!(of(&[("plugin", "new"), ("k", "4"), ("m", "2")]), Some(0));
        assert_eq!((of(&[]), any_losses(None)), (Some(0), Some(0)));
    }
}
