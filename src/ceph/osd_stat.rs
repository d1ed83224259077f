//! `ceph osd stat`: the osdmap's epoch, without the map.

use serde::Deserialize;

use crate::ceph::command::Command;
use crate::domain::osd::Epoch;

#[derive(Deserialize)]
struct OsdStat {
    epoch: Epoch,
}

pub(super) fn command() -> Command {
    Command::mon("osd stat")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<Epoch> {
    serde_json::from_slice(answer).map(|OsdStat { epoch }| epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::answer;

    #[test]
    fn osd_stat_epoch_is_read_in_each_release() {
        for (release, epoch) in [("16.2.15", 15), ("18.2.7", 22), ("20.2.4", 27)] {
            assert_eq!(parse(&answer(release, "osd-stat")).unwrap(), Epoch(epoch), "{release}");
        }
    }
}
