//! The output of `rehearse`.

use osd_migrate::layout::Width;
use osd_migrate::rehearse::fault::{self, RequestedFault};
use osd_migrate::rehearse::{self, Detail, Rehearsal};
use osd_migrate::run::End;

use crate::support::build::nothing_left;

fn rehearsed(faults: &[&str]) -> Rehearsal {
    let asked: Vec<RequestedFault> = faults.iter().map(|name| fault::parse(name).unwrap()).collect();
    rehearse::rehearse(1, &asked, 16 << 30)
}

fn finished(rehearsal: &Rehearsal) -> bool {
    matches!(&rehearsal.end, Some(Ok(End::Finished(summary))) if *summary == nothing_left())
}

#[test]
fn rehearsal_preserves_all_ids_and_copies_each_byte_once() {
    let rehearsal = rehearsed(&[]);
    assert!(finished(&rehearsal), "{:?}", rehearsal.end);
    let text = rehearse::text(&rehearsal, Detail::All, Width::Unknown);
    assert!(text.contains("finished: 5 of 5 OSDs migrated"), "{text}");
    assert_eq!(text.matches("  new   same").count(), 5, "{text}");
    let usual = rehearse::text(&rehearsal, Detail::Usual, Width::Unknown);
    assert!(usual.lines().count() <= 45, "one OSD in full, the others in one line each:\n{usual}");
    assert_eq!(usual.matches("is as declared").count(), 5, "{usual}");
    assert!(!text.contains("OTHER") && !text.contains("did not stop it"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "too long: {line}");
    }
    let refilled: u64 = rehearsal
        .before
        .ceph
        .slots
        .iter()
        .filter(|(osd, slot)| rehearsal.after.ceph.slots[osd].fsid != slot.fsid)
        .filter_map(|(_, slot)| slot.used_bytes)
        .sum();
    assert_eq!(rehearsal.copied, refilled);
    let json = rehearse::json(&rehearsal);
    assert_eq!(json["summary"]["migrated"], 5);
    assert_eq!(json["osds"].as_array().unwrap().len(), 12);
}

#[test]
fn rehearsal_faults_all_strike_and_end_in_finish_or_halt() {
    for name in fault::names() {
        let rehearsal = rehearsed(&[&format!("{name}@osd.2")]);
        assert_eq!(rehearsal.struck, [format!("{name}@osd.2")], "{name} found no occasion");
        let text = rehearse::text(&rehearsal, Detail::All, Width::Unknown);
        assert!(!text.contains("did not stop it"), "{name}: {text}");
        let row = text.lines().find(|line| line.starts_with(" osd.2 ")).unwrap();
        assert_eq!(row.contains(" new "), !row.contains(" gone "), "{name}: {row}");
        match name {
            "swapped-disk" | "purged" => {
                assert!(matches!(&rehearsal.end, Some(Ok(End::Halted(_)))), "{name}: {text}");
            }
            _ => {
                assert!(finished(&rehearsal), "{name}: {text}");
                assert!(!text.contains("OTHER"), "{name}: {text}");
            }
        }
    }
}

#[test]
fn unknown_rehearsal_fault_or_osd_lists_the_valid_ones() {
    assert!(fault::parse("nonsense").is_err_and(|why| why.contains("kill-runner, agent-dies")));
    assert!(fault::parse("kill-runner@osd.1").is_err_and(|why| why.contains("osd.0, osd.2")));
    assert!(fault::parse("kill-runner@9").is_ok());
    assert!(fault::names().all(|name| fault::help().contains(name)));
}
