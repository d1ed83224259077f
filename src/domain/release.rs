//! Releases of Ceph, by the version that a daemon reports.

/// Returns the numbers of a version: 16, 2, 15 for `ceph version 16.2.15 (618f4408) pacific (stable)`.
///
/// A part that is no number counts as 0.
pub fn numbers(ceph_version: &str) -> Option<(u32, u32, u32)> {
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let number = ceph_version.split_whitespace().find(is_number)?;
    let mut parts = number.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    Some((parts.next().unwrap_or(0), parts.next().unwrap_or(0), parts.next().unwrap_or(0)))
}
