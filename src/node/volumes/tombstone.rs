//! The tombstone of a volume whose group others share: a tag on the group. It is set before the old volume is
//! removed, and removed when the new volume exists. At every instant one of the three identifies the OSD.

use crate::domain::inspection::{NodeRequest, RecordId};
use crate::node::disk::tombstone::Tombstone;

const PREFIX: &str = "osd-migrate.tombstone=";

/// Returns the tombstone as a tag: `osd-migrate.tombstone=3:OLD:CLUSTER:RECORD`.
pub(super) fn tag(tombstone: &Tombstone) -> String {
    let Tombstone { cluster, osd, old, record } = tombstone;
    // A record's name is plain and set by osd-migrate; LVM takes no other characters.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let record: String = record.0.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    format!("{PREFIX}{}:{old}:{cluster}:{record}", osd.0)
}

/// Returns the tombstone among a group's tags that was set for the request's OSD and its old fsid.
pub(super) fn of(tags: &[String], request: &NodeRequest) -> Option<Tombstone> {
    let is_it = |tombstone: &Tombstone| {
        (tombstone.cluster, tombstone.osd, tombstone.old) == (request.cluster, request.osd, request.old)
    };
    tags.iter().filter_map(|tag| parse(tag)).find(is_it)
}

fn parse(tag: &str) -> Option<Tombstone> {
    let mut words = tag.strip_prefix(PREFIX)?.splitn(4, ':');
    Some(Tombstone {
        osd: words.next()?.parse().ok()?,
        old: words.next()?.parse().ok()?,
        cluster: words.next()?.parse().ok()?,
        record: RecordId(words.next()?.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples::request;

    #[test]
    fn tombstone_tag_on_a_vg_counts_only_for_its_own_osd_and_fsid() {
        let request = request("n1");
        let tombstone = Tombstone::of(&request);
        let ours = tag(&tombstone);
        assert_eq!(
            ours,
            "osd-migrate.tombstone=1:55ebe299-c0ce-4341-960a-ddfd22d5b5bf:5f382147-dc61-408c-ad68-8e6a2e37590b:r"
        );
        assert_eq!(of(&["x".to_owned(), ours.clone()], &request), Some(tombstone));
        let mut other = request.clone();
        other.osd.0 = 2;
        assert_eq!(of(std::slice::from_ref(&ours), &other), None);
        other = request.clone();
        other.old = "65ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap();
        assert_eq!(of(&[ours], &other), None);
        for torn in ["osd-migrate.tombstone=1", "osd-migrate.tombstone=x:y:z:r", "1:2:3:4"] {
            assert_eq!(of(&[torn.to_owned()], &request), None, "{torn}");
        }
    }
}
