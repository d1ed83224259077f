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

impl PgId {
    /// Returns the PG from which splits created this PG, if its pool had this many PGs before.
    ///
    /// A split PG keeps its number without the highest bit (`pg_t::get_parent`, 16.2.15). A PG with a number
    /// below `pg_num` is its own ancestor. Returns `None` if the pool had no PGs.
    pub fn ancestor(self, pg_num: u32) -> Option<Self> {
        if pg_num == 0 {
            return None;
        }
        let mut number = self.number;
        while number >= pg_num {
            number ^= 1 << number.ilog2();
        }
        Some(Self { number, ..self })
    }
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

    #[test]
    fn ancestor_of_a_pg_is_without_the_highest_bits() {
        for (child, pg_num, parent) in [
            ("3.2b", 64, "3.2b"),
            ("3.2b", 32, "3.b"),
            ("3.6b", 32, "3.b"),
            ("3.1d", 12, "3.5"),
            ("3.1", 1, "3.0"),
        ] {
            assert_eq!(pg(child).ancestor(pg_num), Some(pg(parent)), "{child} of {pg_num}");
        }
        assert_eq!(pg("3.1").ancestor(0), None);
    }
}
