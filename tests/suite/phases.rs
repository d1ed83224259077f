//! The phase table, over the whole product of its facts.
//!
//! Rows exclude each other; each is reached; what no row claims is what the words of `is_foreign` say, and nothing else.

use std::collections::BTreeMap;

use osd_migrate::domain::phase::{DaemonFact, DiskFact, Facts, Phase, ROWS, SlotFact, phase};

const SLOTS: [SlotFact; 6] = [
    SlotFact::Old,
    SlotFact::Ours { never_booted: true },
    SlotFact::Ours { never_booted: false },
    SlotFact::Destroyed,
    SlotFact::Absent,
    SlotFact::Other,
];
const DISKS: [DiskFact; 8] = [
    DiskFact::Unseen,
    DiskFact::Old,
    DiskFact::Tombstone,
    DiskFact::Unfinished,
    DiskFact::Finished,
    DiskFact::Misplaced,
    DiskFact::Blank,
    DiskFact::Other,
];
const DAEMONS: [DaemonFact; 4] = [DaemonFact::Gone, DaemonFact::Old, DaemonFact::New, DaemonFact::Other];

/// Every combination of the facts but `busy`.
fn all() -> impl Iterator<Item = Facts> {
    let enums =
        SLOTS.iter().flat_map(|slot| DISKS.iter().flat_map(|disk| DAEMONS.map(|d| (*slot, *disk, d))));
    enums.flat_map(|(slot, disk, daemon)| {
        (0_u32..1 << 13).filter(|bits| bits >> 11 != 0b11).map(move |bits| {
            let bit = |n: u32| bits >> n & 1 == 1;
            Facts {
                new: bit(11),
                directory: bit(12),
                busy: false,
                slot,
                up: bit(0),
                stopped: bit(1),
                pod: bit(2),
                disk,
                agrees: bit(3),
                proven: bit(4),
                wanted: bit(5),
                placed: bit(6),
                authed: bit(7),
                daemon,
                issued: bit(8),
                clean: bit(9),
                conforms: bit(10),
            }
        })
    })
}

fn is_ours(f: &Facts) -> bool {
    matches!(f.slot, SlotFact::Ours { .. })
}

/// The device carries a label that one of our claims names.
fn carries_a_claim(f: &Facts) -> bool {
    matches!(f.disk, DiskFact::Unfinished | DiskFact::Finished | DiskFact::Misplaced)
}

/// Whether the facts can be true together. Each line is an impossibility of the world or of how facts are read from it.
fn is_possible(f: &Facts) -> bool {
    let implies = |a: bool, b: bool| !a || b;
    // A daemon is up only in a slot that exists: Ceph lets no daemon boot into a destroyed or an absent one, and a slot that
    // is up is read as booted, also where noin left the mark `new` on it.
    let never_up =
        matches!(f.slot, SlotFact::Destroyed | SlotFact::Absent | SlotFact::Ours { never_booted: true });
    implies(never_up, !f.up)
        // An id that is not in the map has no place, and nothing about it is measured.
        && implies(f.slot == SlotFact::Absent, (f.new || !f.placed) && !f.clean && !f.conforms)
        // A free disk was never an OSD, and puts itself into CRUSH; only such a disk is blank to us.
        && implies(f.new, f.slot != SlotFact::Old && f.disk != DiskFact::Old && f.placed && !f.stopped)
        && implies(f.disk == DiskFact::Blank, f.new || f.directory)
        // PGs settle on a daemon that is up.
        && implies(f.clean, f.up)
        // Slot and device can name the same fsid only where both name one, and the same kind of one.
        && implies(f.agrees, match f.slot {
            // A directory's OSD is not on the device that is looked at.
            SlotFact::Old => f.disk == DiskFact::Old && !f.directory,
            SlotFact::Ours { .. } => carries_a_claim(f),
            SlotFact::Other => f.disk == DiskFact::Other,
            SlotFact::Destroyed | SlotFact::Absent => false,
        })
        // The old fsid is one fsid: where slot and device are both old, they agree.
        && implies(f.slot == SlotFact::Old && f.disk == DiskFact::Old, f.agrees || f.directory)
        // A slot or a device is ours by a claim.
        && implies(is_ours(f) || carries_a_claim(f), f.issued)
        // Annotation and pods belong to a Deployment.
        && implies(f.daemon == DaemonFact::Gone, !f.stopped && !f.pod)
        // Wanted means: classified as recorded, which takes a Deployment, a slot that exists and a place in CRUSH.
        && implies(f.wanted && !f.new, f.daemon != DaemonFact::Gone && f.placed)
        && implies(f.wanted && !f.new, !matches!(f.slot, SlotFact::Destroyed | SlotFact::Absent | SlotFact::Ours { never_booted: true }))
}

/// A free disk of which nothing comes: nothing was begun with it and it is not free after all, or its id was given to another
/// before more than a tombstone was written.
fn is_given_up(f: &Facts) -> bool {
    let not_begun = f.disk == DiskFact::Other && !f.issued;
    let lost_its_id = f.slot == SlotFact::Other && matches!(f.disk, DiskFact::Blank | DiskFact::Tombstone);
    f.new && (not_begun || lost_its_id)
}

/// A directory's OSD, as it was, and something on the disk that it was to go to.
fn lost_its_disk(f: &Facts) -> bool {
    let is_taken = !matches!(f.disk, DiskFact::Unseen | DiskFact::Old | DiskFact::Blank);
    f.directory && f.slot == SlotFact::Old && !f.stopped && f.up && f.wanted && is_taken
}

/// What makes a thing foreign, in words and code, written without a look at the rows.
fn is_foreign(f: &Facts) -> bool {
    let looked = f.disk != DiskFact::Unseen;
    match f.slot {
        // Somebody else's OSD has the id. (Not looked at yet: it is looked at first, for the report.)
        // (Nothing was done with a free disk yet: it gets another id.)
        SlotFact::Other => looked && !is_given_up(f),
        // The old OSD serves, and is wanted: a device that is known not to carry it, or a Deployment that starts another
        // one, is not what was recorded. (Not wanted, or down: nobody is going to touch it, so nothing is said.)
        SlotFact::Old if !f.stopped => {
            // Where a directory's OSD was to go and can't, it goes elsewhere, or nowhere: nothing was begun. (Blank: that disk is
            // free, and the directory does not hold the OSD.)
            let other_disk = looked && f.disk != DiskFact::Old && (!f.directory || f.disk == DiskFact::Blank);
            let other_daemon = f.disk == DiskFact::Old && f.proven && f.daemon != DaemonFact::Old;
            f.up && f.wanted && (other_disk || other_daemon)
        }
        // We stopped it and it rests: it was not destroyed, so nobody may have put anything on its device.
        // (Still going down: nothing is done yet, so nothing is said.)
        SlotFact::Old => !f.up && !f.pod && looked && f.disk != DiskFact::Old,
        // The slot waits for an OSD, and its device carries what we did not put there.
        SlotFact::Destroyed => f.disk == DiskFact::Other && !is_given_up(f),
        // The id is gone. Then a finished OSD of another id on our device is nobody's to purge either.
        // (A free disk's id never was anybody's: the id that was taken instead of it is.)
        SlotFact::Absent => match f.disk {
            DiskFact::Other => !is_given_up(f),
            disk => disk == DiskFact::Misplaced && !f.new,
        },
        SlotFact::Ours { never_booted } => match f.disk {
            DiskFact::Unseen => false,
            DiskFact::Other | DiskFact::Misplaced => true,
            // Its place is put back first, whatever else there is.
            _ if !f.placed => false,
            DiskFact::Finished if f.agrees => {
                // A Deployment starts neither the old nor the new OSD; without a key it is not looked at yet.
                f.daemon == DaemonFact::Other && (f.up || f.authed)
            }
            // It booted, so a finished OSD was there, and its device does not carry it.
            DiskFact::Old
            | DiskFact::Blank
            | DiskFact::Tombstone
            | DiskFact::Unfinished
            | DiskFact::Finished => !never_booted,
        },
    }
}

#[test]
fn at_most_one_row_holds_for_every_combination() {
    for facts in all() {
        let holding: Vec<Phase> =
            ROWS.iter().filter(|(_, passes)| passes(&facts)).map(|(phase, _)| *phase).collect();
        assert!(holding.len() <= 1, "{holding:?} hold for {facts:#?}");
    }
}

#[test]
fn every_row_is_reached_by_something_possible() {
    let mut reached: BTreeMap<Phase, u32> = ROWS.iter().map(|(phase, _)| (*phase, 0)).collect();
    for facts in all().filter(is_possible) {
        for (phase, _) in ROWS.iter().filter(|(_, passes)| passes(&facts)) {
            *reached.get_mut(phase).unwrap() += 1;
        }
    }
    let unreached: Vec<_> = reached.iter().filter(|(_, count)| **count == 0).collect();
    assert!(unreached.is_empty(), "{unreached:?}");
    assert_eq!(reached.len(), ROWS.len(), "a phase has two rows");
}

#[test]
fn what_no_row_claims_is_foreign_and_nothing_else_is() {
    for facts in all().filter(is_possible) {
        assert_eq!(phase(&facts) == Phase::Foreign, is_foreign(&facts), "{:?}: {facts:#?}", phase(&facts));
    }
}

#[test]
fn a_node_agent_at_work_goes_before_everything() {
    for facts in all().filter(is_possible) {
        assert_eq!(phase(&Facts { busy: true, ..facts }), Phase::Busy);
    }
}

/// The acts that can't be taken back hang on few phases. What they need is asked of every combination, possible or not:
/// a fact that is read wrongly must not open the way.
#[test]
fn the_dangerous_phases_have_what_they_need_even_where_facts_contradict_each_other() {
    for f in all() {
        let needs = match phase(&f) {
            // leads to Stop
            Phase::Serving => {
                f.slot == SlotFact::Old
                    && f.up
                    && f.wanted
                    && f.proven
                    && f.disk == DiskFact::Old
                    && !f.stopped
            }
            // leads to Destroy of the old OSD
            Phase::Stopped => {
                f.slot == SlotFact::Old && f.stopped && !f.up && !f.pod && f.proven && f.disk == DiskFact::Old
            }
            // lead to a node agent that writes
            Phase::Undone => f.slot == SlotFact::Destroyed && f.placed,
            Phase::Destroyed => {
                let id_is_free = f.slot == SlotFact::Destroyed
                    || (f.new && f.slot == SlotFact::Absent && !f.issued && f.disk != DiskFact::Old);
                let blank_is_wanted =
                    f.disk != DiskFact::Blank || f.directory || (f.new && (f.wanted || f.issued));
                id_is_free && blank_is_wanted && f.placed
            }
            Phase::Misplaced => {
                let waits = f.slot == SlotFact::Destroyed || (f.new && f.slot == SlotFact::Absent);
                waits && f.placed && f.disk == DiskFact::Misplaced
            }
            // lead to Destroy of a claim
            Phase::Registered => {
                f.slot == (SlotFact::Ours { never_booted: true }) && !f.up && f.disk != DiskFact::Unseen
            }
            Phase::Unauthed => is_ours(&f) && !f.up && !f.authed && f.disk == DiskFact::Finished && f.agrees,
            // leads to `osd new` on a free id
            Phase::Purged => f.slot == SlotFact::Absent && f.issued,
            // leads to a new Deployment
            Phase::Prepared => {
                is_ours(&f) && f.disk == DiskFact::Finished && f.agrees && f.daemon != DaemonFact::New
            }
            // closes the record
            Phase::Settled => {
                is_ours(&f) && f.up && f.clean && f.conforms && f.placed && f.daemon == DaemonFact::New
            }
            Phase::Withdrawn => {
                let not_begun = f.new && f.disk == DiskFact::Blank && !f.issued && !is_ours(&f);
                not_begun || is_given_up(&f) || (f.slot == SlotFact::Old && !f.stopped)
            }
            _ => true,
        };
        assert!(needs, "{:?} holds for {f:#?}", phase(&f));
    }
}

/// It serves from its directory: another disk may be chosen for it, and nothing is left alone for that.
#[test]
fn an_osd_in_a_directory_is_given_up_where_its_disk_is_not_free_and_nothing_was_begun() {
    for f in all().filter(is_possible).filter(lost_its_disk) {
        assert_eq!(phase(&f), Phase::Withdrawn, "{f:#?}");
    }
}

#[test]
fn an_osd_that_others_took_down_is_left_to_them() {
    for f in all().filter(|f| f.slot == SlotFact::Old && !f.up && !f.stopped) {
        let expected = if f.wanted { Phase::NotOurStop } else { Phase::Withdrawn };
        assert_eq!(phase(&f), expected, "{f:#?}");
    }
}

#[test]
fn past_stop_it_is_no_longer_asked_what_is_wanted() {
    for f in all().filter(|f| (f.slot != SlotFact::Old || f.stopped) && !f.before_new()) {
        assert_eq!(phase(&f), phase(&Facts { wanted: !f.wanted, ..f }), "{f:#?}");
    }
}

#[test]
fn a_device_that_was_not_looked_at_decides_nothing_but_a_look() {
    let waits = [
        Phase::Unproven,
        Phase::Stopping,
        Phase::NotOurStop,
        Phase::Withdrawn,
        // Its daemon holds the device: no look is needed, or possible.
        Phase::Settling,
        Phase::Settled,
        Phase::Nonconforming,
        Phase::Unplaced,
    ];
    for f in all().filter(|f| f.disk == DiskFact::Unseen).filter(is_possible) {
        assert!(waits.contains(&phase(&f)), "{:?}: {f:#?}", phase(&f));
        if phase(&f) == Phase::Unplaced {
            assert!(f.up, "{f:#?}");
        }
    }
}
