//! Placement of PGs in a changed osdmap, by Ceph's own `osdmaptool`.
//!
//! The map is read from the mons, and never leaves memory. This is the only program that a runner starts; it
//! reads one file and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command as Program};

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::osd_stat;
use crate::ceph::session::Ceph;
use crate::domain::forecast::{Move, Placement};
use crate::domain::osd::{OsdId, PgId};

const OSDMAPTOOL: &str = "osdmaptool";

/// Folders in which it is looked for.
const PROGRAMS: &str = "/usr/local/bin:/usr/bin:/bin";

/// Path at which a program finds the file that is its standard input.
const STDIN: &str = "/proc/self/fd/0";

/// Limit of the two programs, which run side by side.
///
/// One takes 75 s for 10,000 OSDs with 640,000 PGs (16.2.15), and CPU time may be short.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Number of bytes of an error message of the program.
const SAID_BYTES: u64 = 4096;

impl Ceph {
    /// Computes the placement with the CRUSH weight 0 for these OSDs.
    pub async fn placement_without(&self, osds: &BTreeSet<OsdId>) -> Result<Placement, CephError> {
        let weights: Vec<String> = osds.iter().map(|osd| format!("{}:0", osd.0)).collect();
        self.placement(osds, ["--adjust-crush-weight".to_owned(), weights.join(",")]).await
    }

    /// Computes the placement after an OSD is marked out.
    ///
    /// The program takes one OSD only.
    pub async fn placement_marked_out(&self, osd: OsdId) -> Result<Placement, CephError> {
        self.placement(&[osd].into(), ["--mark-out".to_owned(), osd.0.to_string()]).await
    }

    /// Computes the placement without these OSDs, changed by these options of the program.
    async fn placement(&self, osds: &BTreeSet<OsdId>, changed: [String; 2]) -> Result<Placement, CephError> {
        let epoch = self.read(osd_stat::command(), osd_stat::parse).await?;
        let map = self.answer(&Command::mon("osd getmap").with("epoch", epoch.0)).await?;
        let computed = async {
            let now = Mapping::start(&map, &[])?;
            let then = Mapping::start(&map, &changed)?;
            differences(now, then, osds).await
        };
        let silent = || failed(format!("it did not end within {} s", LIMIT.as_secs()));
        let moves = tokio::time::timeout(LIMIT, computed).await.map_err(|_| silent())??;
        Ok(Placement { epoch, without: osds.clone(), moves })
    }
}

fn failed(why: String) -> CephError {
    CephError::Osdmaptool { why }
}

/// A program that maps all PGs of an osdmap.
struct Mapping {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Mapping {
    fn start(map: &[u8], change: &[String]) -> Result<Self, CephError> {
        let input = in_memory(map).map_err(|error| failed(format!("no file in memory: {error}")))?;
        #[expect(clippy::disallowed_methods, reason = "Ceph's own CRUSH code exists as a program only")]
        let mut program = Program::new(OSDMAPTOOL);
        let started = program
            // It needs nothing of the runner's environment, which may contain credentials.
            .env_clear()
            .env("PATH", PROGRAMS)
            .arg(STDIN)
            .arg("--clear-temp")
            .args(change)
            .arg("--test-map-pgs-dump-all")
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = started.map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                return CephError::NoOsdmaptool;
            }
            failed(format!("it did not start: {error}"))
        })?;
        let out = child.stdout.take().ok_or_else(|| failed("it has no output".to_owned()))?;
        Ok(Self { child, lines: BufReader::new(out).lines() })
    }

    /// Returns the next PG; none at the end.
    async fn next(&mut self) -> Result<Option<MappedPg>, CephError> {
        loop {
            let line = self.lines.next_line().await.map_err(|error| failed(error.to_string()))?;
            let Some(line) = line else { return self.end().await.map(|()| None) };
            if line.contains(" up (") {
                let pg = pg(&line).ok_or_else(|| failed(format!("it printed `{line}`")))?;
                return Ok(Some(pg));
            }
        }
    }

    /// Checks that the program ended without an error.
    async fn end(&mut self) -> Result<(), CephError> {
        let mut said = Vec::new();
        if let Some(out) = self.child.stderr.take() {
            out.take(SAID_BYTES).read_to_end(&mut said).await.ok();
        }
        let status = self.child.wait().await.map_err(|error| failed(error.to_string()))?;
        if status.success() {
            return Ok(());
        }
        Err(failed(format!("{status}: {}", String::from_utf8_lossy(&said).trim())))
    }
}

/// Returns a file in memory with this content.
///
/// The program opens it by a path, and so reads it from its beginning.
fn in_memory(content: &[u8]) -> std::io::Result<Stdio> {
    let mut file = File::from(memfd_create("osdmap", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    Ok(file.into())
}

/// A PG, as the program maps it.
#[derive(Debug, PartialEq, Eq)]
struct MappedPg {
    id: PgId,
    /// OSDs that CRUSH chooses.
    raw: BTreeSet<OsdId>,
    /// OSDs that should hold the PG: upmaps applied, OSDs that are down left out.
    up: BTreeSet<OsdId>,
}

impl MappedPg {
    /// Returns the up set that the mons will compute.
    ///
    /// They drop an upmap that names an OSD with the CRUSH weight 0. The program keeps it, and would leave
    /// the PG on the OSD (16.2.15). For an OSD that it marks out, it drops the upmap itself.
    fn up_without(self, osds: &BTreeSet<OsdId>) -> BTreeSet<OsdId> {
        if self.up.is_disjoint(osds) { self.up } else { self.raw }
    }
}

/// Returns the PGs whose up sets differ, and those that stay on one of these OSDs.
///
/// Both programs print all PGs in the same order.
async fn differences(
    mut now: Mapping,
    mut then: Mapping,
    without: &BTreeSet<OsdId>,
) -> Result<BTreeMap<PgId, Move>, CephError> {
    let mut moves = BTreeMap::new();
    let mut any = false;
    loop {
        match (now.next().await?, then.next().await?) {
            (Some(now), Some(then)) if now.id == then.id => {
                any = true;
                let then = then.up_without(without);
                if is_concerned(&now.up, &then, without) {
                    moves.insert(now.id, Move { now: now.up, then });
                }
            }
            (None, None) if any => return Ok(moves),
            (None, None) => return Err(failed("it printed no PG".to_owned())),
            (Some(_), _) | (None, Some(_)) => return Err(failed("it printed other PGs".to_owned())),
        }
    }
}

/// Returns whether an up set changes, or does not although it has an OSD that leaves.
fn is_concerned(now: &BTreeSet<OsdId>, then: &BTreeSet<OsdId>, without: &BTreeSet<OsdId>) -> bool {
    now != then || !then.is_disjoint(without)
}

/// Returns a PG from a line: `2.1f raw ([1,2], p1) up ([1,2], p1) acting ([1,2], p1)`.
fn pg(line: &str) -> Option<MappedPg> {
    let (id, rest) = line.split_once(" raw (")?;
    let (raw, up) = rest.split_once(" up (")?;
    Some(MappedPg { id: id.trim().parse().ok()?, raw: osds(raw)?, up: osds(up)? })
}

/// Returns the OSDs of a list that a text begins with: `[1,2], p1)`.
///
/// A hole of an erasure coded PG is `NONE` or 2147483647, which no OSD has.
pub(super) fn osds(text: &str) -> Option<BTreeSet<OsdId>> {
    let (list, _) = text.strip_prefix('[')?.split_once(']')?;
    let is_hole = |osd: &&str| matches!(*osd, "NONE" | "2147483647");
    let osds = list.split(',').filter(|osd| !osd.is_empty() && !is_hole(osd));
    osds.map(|osd| osd.parse().map(OsdId).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(osds: &[u32]) -> BTreeSet<OsdId> {
        osds.iter().copied().map(OsdId).collect()
    }

    #[test]
    fn up_set_is_read_without_holes() {
        let read = |line: &str| pg(line).map(|pg| (pg.id.to_string(), pg.up));
        let line = "2.1f raw ([5,0,3], p5) up ([5,3], p5) acting ([5,3], p5)";
        assert_eq!(read(line), Some(("2.1f".to_owned(), set(&[3, 5]))));
        for hole in ["NONE", "2147483647"] {
            let line = format!("3.0 raw ([1], p1) up ([{hole},1], p1) acting ([1], p1)");
            assert_eq!(read(&line), Some(("3.0".to_owned(), set(&[1]))), "{hole}");
        }
        let none = "1.0 raw ([], p-1) up ([], p-1) acting ([], p-1)";
        assert_eq!(read(none), Some(("1.0".to_owned(), set(&[]))));
        assert_eq!(read("1.0 raw ([], p-1) up ([x], p-1) acting ([], p-1)"), None);
    }

    #[test]
    fn pg_that_stays_on_an_osd_that_leaves_is_concerned() {
        let stays = |up: &[u32]| is_concerned(&set(up), &set(up), &set(&[3]));
        assert!(stays(&[1, 3]) && !stays(&[1, 2]));
        assert!(is_concerned(&set(&[1, 3]), &set(&[1, 2]), &set(&[3])));
    }

    #[test]
    fn upmap_onto_an_osd_that_leaves_is_dropped() {
        let mapped = || pg("1.0 raw ([1,2], p1) up ([1,3], p1) acting ([1,3], p1)").unwrap();
        assert_eq!(mapped().up_without(&set(&[3])), set(&[1, 2]));
        assert_eq!(mapped().up_without(&set(&[2])), set(&[1, 3]));
    }
}
