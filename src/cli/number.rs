//! Numbers within a range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Returns a parser of numbers within a range, whose error names the range and the unit in words.
pub(super) fn number<T>(
    range: RangeInclusive<T>,
    unit: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text: &str| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected {} to {} {unit}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_out_of_range_names_the_range_and_the_unit() {
        let minutes = number(10..=43200_u32, "minutes");
        assert_eq!((minutes("10"), minutes("43200")), (Ok(10), Ok(43200)));
        for wrong in ["9", "43201", "-1", "ten", ""] {
            assert_eq!(minutes(wrong), Err("expected 10 to 43200 minutes".to_owned()), "{wrong}");
        }
    }
}
