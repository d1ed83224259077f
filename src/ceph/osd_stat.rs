//! `ceph osd stat`: the osdmap's epoch, without the map.

use serde::Deserialize;

use super::command::Command;
use crate::domain::osd::Epoch;

#[derive(Deserialize)]
struct Answer {
    epoch: Epoch,
}

pub(super) fn command() -> Command {
    Command::mon("osd stat")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<Epoch> {
    serde_json::from_slice(answer).map(|Answer { epoch }| epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_is_read() {
        let epoch = parse(include_bytes!("../../tests/suite/fixtures/ceph/16.2.15/osd-stat.json")).unwrap();
        assert_eq!(epoch, Epoch(15));
    }
}
