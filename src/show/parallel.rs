//! `plan`: the OSDs that a run migrates in parallel.

/// Returns how many OSDs may be in progress together, and what that means for their data; none if it is one.
pub fn in_parallel_text(in_parallel: u32) -> Option<String> {
    (in_parallel > 1).then(|| {
        format!(
            "In parallel: up to {in_parallel} OSDs of a host. Their PGs lack a replica at the same time. The first OSD \
             of each kind is migrated alone."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_names_the_osds_in_parallel_if_there_are_several() {
        assert_eq!(in_parallel_text(1), None);
        assert!(in_parallel_text(3).unwrap().starts_with("In parallel: up to 3 OSDs of a host."));
    }
}
