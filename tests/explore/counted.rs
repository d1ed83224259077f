//! What `build/growth` counts, and for which size of a cluster.

/// Returns the number of OSDs of the cluster that `build/growth` or `build/makespan` asks for.
///
/// # Panics
///
/// If `GROWTH_OSDS` is not set, or is not a number: then it was neither of them that started the test.
#[expect(clippy::disallowed_methods, reason = "the caller of this process chooses the size")]
pub fn osds() -> usize {
    let osds = std::env::var("GROWTH_OSDS").unwrap_or_else(|why| panic!("GROWTH_OSDS: {why}"));
    osds.parse().unwrap_or_else(|why| panic!("GROWTH_OSDS {osds}: {why}"))
}

/// Calls a function, whose instructions `build/growth` counts.
///
/// The script knows this function by its name: it counts between its begin and its end.
#[inline(never)]
pub fn counted_by_growth<T>(work: impl FnOnce() -> T) -> T {
    std::hint::black_box(work())
}
