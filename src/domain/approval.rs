//! Approval of a plan: one line for each OSD that it would migrate or create, and a hash of the lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::osd::OsdId;

/// Hexadecimal digits of a hash: 64 bits, short enough to be read aloud. Two plans of one cluster do not
/// share it by chance.
const DIGITS: usize = 16;

/// Hash of the lines of a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanHash(String);

/// Error of a text that is not a hash of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the hash of a plan: 16 hexadecimal digits, as `plan` prints them")]
pub struct NotAHash(pub String);

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PlanHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let hash = text.trim().to_ascii_lowercase();
        let is_hash = hash.len() == DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash { Ok(Self(hash)) } else { Err(NotAHash(text.to_owned())) }
    }
}

/// Lines of a plan: what it would do to which OSDs and disks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PlanLines {
    osds: BTreeMap<OsdId, String>,
    disks: BTreeSet<String>,
}

impl PlanLines {
    /// Returns the lines of these OSDs and disks.
    ///
    /// The line of an OSD begins with its name.
    pub fn new(osds: BTreeMap<OsdId, String>, disks: BTreeSet<String>) -> Self {
        Self { osds, disks }
    }

    /// Returns the lines as stored: OSDs by number, then disks.
    pub fn text(&self) -> String {
        let lines = self.osds.values().chain(&self.disks);
        lines.flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    /// Returns the lines of a stored plan.
    pub fn parse(text: &str) -> Self {
        let mut lines = Self::default();
        for line in text.lines() {
            let first = line.split(' ').next().unwrap_or_default();
            match first.strip_prefix("osd.").and_then(|_| first.parse().ok()) {
                Some(osd) => drop(lines.osds.insert(osd, line.to_owned())),
                None => drop(lines.disks.insert(line.to_owned())),
            }
        }
        lines
    }

    /// Returns the hash of the lines.
    pub fn hash(&self) -> PlanHash {
        let first: [u8; 8] = std::array::from_fn({
            let digest = Sha256::digest(self.text());
            move |byte| digest.get(byte).copied().unwrap_or_default()
        });
        PlanHash(format!("{:016x}", u64::from_be_bytes(first)))
    }

    /// Returns whether the plan would do nothing.
    pub fn is_empty(&self) -> bool {
        self.osds.is_empty() && self.disks.is_empty()
    }

    /// Returns the line of an OSD.
    pub fn of_osd(&self, osd: OsdId) -> Option<&str> {
        self.osds.get(&osd).map(String::as_str)
    }

    /// Returns the OSDs of the plan.
    pub fn osds(&self) -> impl Iterator<Item = OsdId> {
        self.osds.keys().copied()
    }

    /// Returns whether the plan has this line of a disk.
    pub fn has_disk(&self, line: &str) -> bool {
        self.disks.contains(line)
    }
}

/// Plan that a person approved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Approval {
    /// `--approve`: the hash.
    pub hash: PlanHash,
    /// Lines with this hash. Empty until the stored plan is read.
    pub lines: PlanLines,
}

impl Approval {
    /// Returns an approval whose plan was not read yet: it approves nothing.
    pub fn unread(hash: PlanHash) -> Self {
        Self { hash, lines: PlanLines::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(osds: &[(u32, &str)], disks: &[&str]) -> PlanLines {
        PlanLines::new(
            osds.iter().map(|(osd, line)| (OsdId(*osd), (*line).to_owned())).collect(),
            disks.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn stored_plan_has_the_same_lines_and_the_same_hash() {
        let plan = lines(&[(10, "osd.10 on b"), (2, "osd.2 on a, raw")], &["disk x", "disk y"]);
        assert_eq!(plan.text(), "osd.2 on a, raw\nosd.10 on b\ndisk x\ndisk y\n");
        let read = PlanLines::parse(&plan.text());
        assert_eq!((&read, read.hash()), (&plan, plan.hash()));
        assert_eq!(plan.hash().to_string().parse(), Ok(plan.hash()));
        assert!(PlanLines::parse("").is_empty());
    }

    #[test]
    fn plan_hash_changes_with_each_line() {
        let plans = [
            lines(&[(1, "osd.1 on a")], &[]),
            lines(&[(1, "osd.1 on b")], &[]),
            lines(&[(1, "osd.1 on a"), (2, "osd.2 on a")], &[]),
            lines(&[(1, "osd.1 on a")], &["disk x"]),
            PlanLines::default(),
        ];
        let hashes: BTreeSet<_> = plans.iter().map(PlanLines::hash).collect();
        assert_eq!(hashes.len(), plans.len());
    }

    #[test]
    fn text_that_is_no_plan_hash_is_refused() {
        assert_eq!(
            " 0123456789ABCDEF\n".parse::<PlanHash>().map(|hash| hash.to_string()),
            Ok("0123456789abcdef".to_owned())
        );
        for text in
            ["", "0123456789abcde", "0123456789abcdefg", "0123456789abcdex", "yes-really-migrate-osds"]
        {
            let error = text.parse::<PlanHash>().unwrap_err().to_string();
            assert!(error.contains("16 hexadecimal digits"), "{error}");
        }
    }
}
