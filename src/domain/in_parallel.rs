//! How many OSDs of one host may be migrated in parallel: a number, or a share of the data.

use std::fmt;
use std::str::FromStr;

/// Most OSDs that a run has in progress together, as [`MAX_OPEN`](crate::domain::ledger::MAX_OPEN).
const MOST: u32 = 64;

/// How many OSDs of one host may be migrated in parallel (`--in-parallel`), one at least.
///
/// Number or percentage, as `maxUnavailable` in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InParallel {
    /// So many.
    Count(u32),
    /// As many as together have at most so many percent of the data of the cluster.
    ///
    /// While they are stopped, so much of the data lacks a replica.
    Percent(u8),
}

impl InParallel {
    /// One OSD after the other.
    pub const ONE: Self = Self::Count(1);

    /// Returns whether several OSDs may be migrated in parallel, in a cluster that is large enough.
    pub fn allows_several(self) -> bool {
        self != Self::ONE
    }

    /// Returns whether so many OSDs may be in progress together.
    ///
    /// `bytes`: what they have, and what all OSDs have; `None` if that is unknown of one of them.
    pub fn allows(self, osds: usize, bytes: Option<(u64, u64)>) -> bool {
        match self {
            _ if osds <= 1 => true,
            Self::Count(most) => u32::try_from(osds).is_ok_and(|osds| osds <= most),
            Self::Percent(percent) => bytes.is_some_and(|(of_these, of_all)| {
                u128::from(of_these) * 100 <= u128::from(of_all) * u128::from(percent)
            }),
        }
    }
}

impl Default for InParallel {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for InParallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The text is neither a number of OSDs nor a percentage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a number of OSDs from 1 to {MOST}, or a share of the data from 1% to 100%")]
pub struct NotInParallel;

impl FromStr for InParallel {
    type Err = NotInParallel;

    fn from_str(text: &str) -> Result<Self, NotInParallel> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let found = match text.strip_suffix('%') {
            Some(percent) if is_number(percent) => percent.parse().ok().map(Self::Percent),
            None if is_number(text) => text.parse().ok().map(Self::Count),
            Some(_) | None => None,
        };
        let is_in_range = |found: &Self| match found {
            Self::Count(count) => (1..=MOST).contains(count),
            Self::Percent(percent) => (1..=100).contains(percent),
        };
        found.filter(is_in_range).ok_or(NotInParallel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ledger::MAX_OPEN;

    #[test]
    fn in_parallel_is_read_as_a_number_or_as_a_percentage() {
        assert_eq!("3".parse(), Ok(InParallel::Count(3)));
        assert_eq!("5%".parse(), Ok(InParallel::Percent(5)));
        assert_eq!(InParallel::Percent(5).to_string().parse(), Ok(InParallel::Percent(5)));
        for wrong in ["", "0", "65", "-1", "+1", "0%", "101%", "300%", "%", "5 %", "auto", "1.5%"] {
            assert_eq!(wrong.parse::<InParallel>(), Err(NotInParallel), "{wrong}");
        }
        assert_eq!(MOST as usize, MAX_OPEN);
    }

    #[test]
    fn percentage_limits_the_data_of_the_osds_in_parallel() {
        let five = InParallel::Percent(5);
        assert!(five.allows(1, None) && five.allows(1, Some((90, 100))), "one OSD is always allowed");
        assert!(five.allows(2, Some((5, 100))) && !five.allows(2, Some((6, 100))));
        assert!(!five.allows(2, None), "what is unknown allows nothing");
        assert!(five.allows(30, Some((u64::MAX / 20, u64::MAX))));
        assert!(InParallel::Count(2).allows(2, None) && !InParallel::Count(2).allows(3, Some((0, 1))));
    }
}
