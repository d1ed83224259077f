//! Names of placement groups.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A placement group; Ceph prints it as `2.1f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PgId {
    /// Id of the pool.
    pub pool: u64,
    /// Number in the pool, printed in hexadecimal digits.
    pub number: u32,
}

impl fmt::Display for PgId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:x}", self.pool, self.number)
    }
}

/// Error: the input is not a PG.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a PG, such as 2.1f")]
pub struct NotAPg(pub String);

impl FromStr for PgId {
    type Err = NotAPg;

    fn from_str(text: &str) -> Result<Self, NotAPg> {
        // Both parsers accept a leading plus sign; a PG has none.
        let parts = text.split_once('.').filter(|_| !text.contains('+'));
        parts
            .and_then(|(pool, number)| {
                Some(Self { pool: pool.parse().ok()?, number: u32::from_str_radix(number, 16).ok()? })
            })
            .ok_or_else(|| NotAPg(text.to_owned()))
    }
}

impl TryFrom<String> for PgId {
    type Error = NotAPg;

    fn try_from(text: String) -> Result<Self, NotAPg> {
        text.parse()
    }
}

impl From<PgId> for String {
    fn from(pg: PgId) -> Self {
        pg.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pg(text: &str) -> PgId {
        text.parse().unwrap()
    }

    #[test]
    fn pg_is_parsed_and_printed_as_ceph_prints_it() {
        for text in ["1.0", "12.1f", "2.ffff"] {
            assert_eq!(pg(text).to_string(), text);
        }
        assert_eq!(pg("12.1f"), PgId { pool: 12, number: 0x1f });
        for bad in ["", "1", "1.", ".1", "1.x", "1.+2", "+1.2", "1.2s0", "-1.0"] {
            assert_eq!(bad.parse::<PgId>(), Err(NotAPg(bad.to_owned())));
        }
    }

    #[test]
    fn pgs_are_in_the_sequence_of_their_numbers() {
        let mut pgs = ["10.0", "2.10", "2.9", "2.a"].map(pg);
        pgs.sort();
        assert_eq!(pgs.map(|pg| pg.to_string()), ["2.9", "2.a", "2.10", "10.0"]);
    }
}
