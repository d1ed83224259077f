//! `plan`: the OSDs that a run migrates in parallel.

use crate::domain::in_parallel::InParallel;

/// Returns how many OSDs may be in progress together, and what that means for their data; none if it is one.
///
/// `most`: OSDs of one host that the setting allows together.
pub fn in_parallel_text(in_parallel: InParallel, most: usize) -> Option<String> {
    let share = match in_parallel {
        InParallel::Count(_) => String::new(),
        InParallel::Percent(percent) => format!(", which together have at most {percent} % of the data"),
    };
    (most > 1).then(|| {
        format!(
            "In parallel: up to {most} OSDs of a host{share}. Their PGs lack a replica at the same time. The first OSD \
             of each kind is migrated alone."
        )
    })
}

/// Returns the setting for `plan -o json`: a number, or a text with a percentage.
pub fn in_parallel_json(in_parallel: InParallel) -> serde_json::Value {
    match in_parallel {
        InParallel::Count(count) => count.into(),
        InParallel::Percent(_) => in_parallel.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_names_the_osds_in_parallel_if_there_are_several() {
        let five = InParallel::Percent(5);
        assert_eq!((in_parallel_text(InParallel::ONE, 1), in_parallel_text(five, 1)), (None, None));
        let said = in_parallel_text(InParallel::Count(3), 3).unwrap();
        assert!(said.starts_with("In parallel: up to 3 OSDs of a host. "), "{said}");
        let said = in_parallel_text(five, 12).unwrap();
        assert!(
            said.starts_with("In parallel: up to 12 OSDs of a host, which together have at most 5 %"),
            "{said}"
        );
        assert_eq!((in_parallel_json(InParallel::Count(3)), in_parallel_json(five)), (3.into(), "5%".into()));
    }
}
