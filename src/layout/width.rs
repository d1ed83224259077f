//! Columns of the output.

/// Columns of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Width {
    /// The output goes into a file or a pipe: tables have 120 columns, and sentences are not wrapped.
    #[default]
    Unknown,
    /// The output goes to a terminal of this width, or a person has set the width.
    Columns(u16),
}

/// Narrowest and widest output. A terminal that says less or more is not one for people to read.
const LIMITS: (u16, u16) = (40, 200);

/// Columns of a table in a file or a pipe, as of kubectl's tables.
const OF_A_FILE: u16 = 120;

impl Width {
    /// Returns a width within the limits.
    pub fn of(columns: u16) -> Self {
        Self::Columns(columns.clamp(LIMITS.0, LIMITS.1))
    }

    /// Parses the environment variable COLUMNS.
    pub fn parse(columns: &str) -> Option<Self> {
        columns.trim().parse().ok().filter(|columns| *columns > 0).map(Self::of)
    }

    /// Returns the columns of a terminal, if they are known.
    pub fn known(self) -> Option<u16> {
        match self {
            Self::Unknown => None,
            Self::Columns(columns) => Some(columns),
        }
    }

    /// Returns the columns that a table may take.
    pub fn columns(self) -> usize {
        match self {
            Self::Unknown => usize::from(OF_A_FILE),
            Self::Columns(columns) => usize::from(columns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_has_limits_and_ignores_what_is_no_number() {
        assert_eq!(Width::parse("80"), Some(Width::Columns(80)));
        assert_eq!(Width::parse(" 7 "), Some(Width::Columns(40)));
        assert_eq!(Width::parse("1000"), Some(Width::Columns(200)));
        for wrong in ["", "0", "-5", "wide", "99999999"] {
            assert_eq!(Width::parse(wrong), None, "{wrong}");
        }
    }
}
