//! Space on OSDs and the limits of the cluster, from `osd df`, `osd dump` and `config get`.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::osd_df;
use crate::ceph::session::Ceph;
use crate::domain::forecast::{Limits, Space};

/// Most PGs that an OSD should have; 250 by default.
const MAX_PGS: &str = "mon_max_pg_per_osd";
/// Factor of it from which on an OSD takes no other PG; 3 by default.
const HARD_RATIO: &str = "osd_max_pg_per_osd_hard_ratio";

impl Ceph {
    /// Reads the space on all OSDs.
    pub async fn space(&self) -> Result<Space, CephError> {
        let map = self.osd_map().await?;
        let (osds, most, factor) = tokio::try_join!(
            self.read(osd_df::command(), osd_df::parse_space),
            self.read(option(MAX_PGS), number),
            self.read(option(HARD_RATIO), number),
        )?;
        let limits = Limits {
            nearfull: map.nearfull_ratio,
            backfillfull: map.backfillfull_ratio,
            wanted_pgs: whole(most),
            pgs: whole(most * factor),
        };
        Ok(Space { osds, limits })
    }
}

fn option(key: &str) -> Command {
    Command::mon("config get").with("who", "osd").with("key", key)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(number: f64) -> u32 {
    number as u32
}

/// Parses a number.
///
/// The answer is a line of text, whatever format was asked for (16.2.15).
fn number(answer: &[u8]) -> serde_json::Result<f64> {
    serde_json::from_slice(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_of_osds_is_a_number_in_a_line() {
        for (text, value) in [("250\n", 250.0), ("3.000000\n", 3.0), ("3", 3.0)] {
            let read = number(text.as_bytes()).unwrap();
            assert!((read - value).abs() < f64::EPSILON, "{text}");
        }
        assert!(number(b"").is_err() && number(b"x\n").is_err());
    }
}
