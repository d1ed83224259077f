//! The phase table, checked over the whole product of its facts.
//!
//! Rows exclude each other, and each row is reached. A combination without a row is exactly what `is_foreign`
//! describes.

use std::collections::BTreeMap;

use super::{DaemonFact, DataFact, DiskFact, Facts, Phase, ROWS, SlotFact, phase};

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
const DATA: [DataFact; 3] = [DataFact::Stays, DataFact::ToMove, DataFact::Moved];
const DAEMONS: [DaemonFact; 4] = [DaemonFact::Gone, DaemonFact::Old, DaemonFact::New, DaemonFact::Other];

/// Returns every combination of the facts except `busy`.
fn all() -> impl Iterator<Item = Facts> {
    let enums =
        SLOTS.iter().flat_map(|slot| DISKS.iter().flat_map(|disk| DAEMONS.map(|d| (*slot, *disk, d))));
    enums.flat_map(|(slot, disk, daemon)| {
        // Four strategies; the data of an available disk stays, and that of an OSD that is removed moves.
        let kinds = (0_u32..1 << 15).filter(|bits| match bits >> 11 {
            // A dead OSD is one that is removed.
            0b1100 => true,
            strategy => strategy.count_ones() <= 1 && strategy != 0b1000,
        });
        let kinds = kinds.flat_map(|bits| DATA.map(|data| (bits, data)));
        let moves = |bits: u32, data: DataFact| match bits >> 11 {
            0b001 => data == DataFact::Stays,
            0b100 | 0b1100 => data != DataFact::Stays,
            _ => true,
        };
        kinds.filter(move |(bits, data)| moves(*bits, *data)).map(move |(bits, data)| {
            let bit = |n: u32| bits >> n & 1 == 1;
            Facts {
                new: bit(11),
                directory: bit(12),
                removal: bit(13),
                dead: bit(14),
                busy: false,
                slot,
                up: bit(0),
                stopped: bit(1),
                pod: bit(2),
                disk,
                data,
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

/// Returns whether the device has a label with an fsid that was issued to osd-migrate.
fn carries_a_claim(f: &Facts) -> bool {
    matches!(f.disk, DiskFact::Unfinished | DiskFact::Finished | DiskFact::Misplaced)
}

/// Returns whether the facts can be true together.
///
/// Each line rules out something that is impossible in a cluster, or in how facts are read from a cluster.
fn is_possible(f: &Facts) -> bool {
    let implies = |a: bool, b: bool| !a || b;
    // A daemon is up only in a slot that exists: Ceph lets no daemon boot into a destroyed or an absent slot.
    // A slot that is up is read as booted, even if noin left the mark `new` on it.
    let never_up =
        matches!(f.slot, SlotFact::Destroyed | SlotFact::Absent | SlotFact::Ours { never_booted: true });
    implies(never_up, !f.up)
        // An id that is not in the osdmap has no place in CRUSH, and nothing about it is measured.
        && implies(f.slot == SlotFact::Absent, (f.new || !f.placed) && !f.clean && !f.conforms)
        // An available disk was never an OSD, and its OSD adds itself to CRUSH; only such a disk is read as
        // blank.
        && implies(f.new, f.slot != SlotFact::Old && f.disk != DiskFact::Old && f.placed && !f.stopped)
        && implies(f.disk == DiskFact::Blank, f.new || f.directory || f.removal)
        // The disk of a dead OSD is not read.
        && implies(f.dead, f.disk == DiskFact::Old && f.proven)
        // No fsid is issued for an OSD that is removed.
        && implies(f.removal, !f.issued)
        // PGs become clean only on a daemon that is up.
        && implies(f.clean, f.up)
        // Slot and device can name the same fsid only if both name one, and of the same kind.
        && implies(f.agrees, match f.slot {
            // The OSD of a directory is not on the device that is inspected.
            SlotFact::Old => f.disk == DiskFact::Old && !f.directory,
            SlotFact::Ours { .. } => carries_a_claim(f),
            SlotFact::Other => f.disk == DiskFact::Other,
            SlotFact::Destroyed | SlotFact::Absent => false,
        })
        // The old fsid is one fsid: if slot and device are both old, they agree.
        && implies(f.slot == SlotFact::Old && f.disk == DiskFact::Old, f.agrees || f.directory)
        // A slot or a device is osd-migrate's only because of an issued fsid.
        && implies(is_ours(f) || carries_a_claim(f), f.issued)
        // Annotation and pods belong to a Deployment.
        && implies(f.daemon == DaemonFact::Gone, !f.stopped && !f.pod)
        // `wanted` means classified as recorded, which takes a Deployment, a slot that exists and a place in
        // CRUSH.
        && implies(f.wanted && !f.new, f.daemon != DaemonFact::Gone && (f.placed || f.removal))
        && implies(f.wanted && !f.new && !f.removal, !matches!(f.slot, SlotFact::Destroyed | SlotFact::Absent | SlotFact::Ours { never_booted: true }))
}

/// Returns whether an available disk is given up.
///
/// Either nothing was started with the disk and it is not available after all, or its id was assigned to
/// another OSD before more than a tombstone was written.
fn is_given_up(f: &Facts) -> bool {
    let not_begun = f.disk == DiskFact::Other && !f.issued;
    let lost_its_id = f.slot == SlotFact::Other && matches!(f.disk, DiskFact::Blank | DiskFact::Tombstone);
    f.new && (not_begun || lost_its_id)
}

/// Returns whether a directory's OSD is unchanged while its destination disk already carries something.
fn lost_its_disk(f: &Facts) -> bool {
    let is_taken = !matches!(f.disk, DiskFact::Unseen | DiskFact::Old | DiskFact::Blank);
    f.directory && f.slot == SlotFact::Old && !f.stopped && f.up && f.wanted && is_taken
}

/// Returns whether the facts describe something foreign, written independently of the rows.
fn is_foreign(f: &Facts) -> bool {
    let inspected = f.disk != DiskFact::Unseen;
    match f.slot {
        // An OSD that osd-migrate did not create has the id. (Before an inspection, the inspection comes
        // first, for the report.) (If nothing was done with an available disk yet, the disk gets another id.)
        SlotFact::Other => inspected && !is_given_up(f),
        // The old OSD serves, and is wanted. A device that is known not to carry it, or a Deployment that
        // starts another OSD, is not what was recorded. (If the OSD is not wanted or is down, nothing will
        // touch it, so nothing is reported.)
        SlotFact::Old if !f.stopped => {
            // If a directory's OSD cannot go to its disk, it goes to another disk or to none: nothing was
            // started. (Blank: that disk is available, and the directory does not contain the OSD.)
            let other_disk =
                inspected && f.disk != DiskFact::Old && (!f.directory || f.disk == DiskFact::Blank);
            let other_daemon = f.disk == DiskFact::Old && f.proven && f.daemon != DaemonFact::Old;
            (f.up || f.dead) && f.wanted && (other_disk || other_daemon)
        }
        // osd-migrate stopped the OSD, and the OSD is down. It was not destroyed, so nothing else may have
        // written to its device. (While the OSD is still stopping, nothing is done yet, so nothing is
        // reported.)
        SlotFact::Old => !f.up && !f.pod && inspected && f.disk != DiskFact::Old,
        // The OSD is removed: nothing that is on its device, or in its place, becomes another OSD.
        SlotFact::Destroyed | SlotFact::Absent if f.removal => false,
        // The slot waits for an OSD, and its device carries content that osd-migrate did not write.
        SlotFact::Destroyed => f.disk == DiskFact::Other && !is_given_up(f),
        // The id is gone. Then osd-migrate may not purge a finished OSD of another id on the device either.
        // (The id of an available disk never belonged to an OSD: only the id that was taken instead of it
        // does.)
        SlotFact::Absent => match f.disk {
            DiskFact::Other => !is_given_up(f),
            DiskFact::Misplaced => !f.new,
            DiskFact::Unseen
            | DiskFact::Old
            | DiskFact::Tombstone
            | DiskFact::Unfinished
            | DiskFact::Finished
            | DiskFact::Blank => false,
        },
        SlotFact::Ours { never_booted } => match f.disk {
            DiskFact::Unseen => false,
            DiskFact::Other | DiskFact::Misplaced => true,
            // The place in CRUSH is restored first, whatever the other facts are.
            _ if !f.placed => false,
            DiskFact::Finished if f.agrees => {
                // A Deployment starts neither the old nor the new OSD; without a key it is not inspected yet.
                f.daemon == DaemonFact::Other && (f.up || f.authed)
            }
            // The OSD booted, so a finished OSD existed, and its device does not carry it.
            DiskFact::Old
            | DiskFact::Blank
            | DiskFact::Tombstone
            | DiskFact::Unfinished
            | DiskFact::Finished => !never_booted,
        },
    }
}

#[test]
fn phase_rows_exclude_each_other_for_all_facts() {
    for facts in all() {
        let holding: Vec<Phase> =
            ROWS.iter().filter(|(_, passes)| passes(&facts)).map(|(phase, _)| *phase).collect();
        assert!(holding.len() <= 1, "{holding:?} hold for {facts:#?}");
    }
}

#[test]
fn each_phase_row_is_reached_by_possible_facts() {
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
fn foreign_phase_holds_for_exactly_the_foreign_facts() {
    for facts in all().filter(is_possible) {
        assert_eq!(phase(&facts) == Phase::Foreign, is_foreign(&facts), "{:?}: {facts:#?}", phase(&facts));
    }
}

#[test]
fn busy_node_agent_takes_precedence_over_all_facts() {
    for facts in all().filter(is_possible) {
        assert_eq!(phase(&Facts { busy: true, ..facts }), Phase::Busy);
    }
}

/// Checks what the acts that cannot be undone need, for every combination, possible or not.
///
/// Few phases lead to such acts. A fact that is read wrongly must not lead to one.
#[test]
fn dangerous_phases_hold_only_with_the_facts_they_need() {
    for f in all() {
        let needs = match phase(&f) {
            // Leads to Stop.
            Phase::Serving => {
                f.slot == SlotFact::Old
                    && (f.up || (f.dead && f.data == DataFact::Moved))
                    && f.wanted
                    && f.proven
                    && f.disk == DiskFact::Old
                    && !f.stopped
            }
            // Leads to Destroy of the old OSD.
            Phase::Stopped => {
                f.slot == SlotFact::Old && f.stopped && !f.up && !f.pod && f.proven && f.disk == DiskFact::Old
            }
            // Leads to a wipe without a new OSD, and to a purge.
            Phase::Removing => f.removal && f.slot == SlotFact::Destroyed,
            Phase::Removed => f.removal && f.slot == SlotFact::Absent,
            // Leads to a node agent that writes.
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
            // Leads to Destroy of an OSD with an issued fsid.
            Phase::Registered => {
                f.slot == (SlotFact::Ours { never_booted: true }) && !f.up && f.disk != DiskFact::Unseen
            }
            Phase::Unauthed => is_ours(&f) && !f.up && !f.authed && f.disk == DiskFact::Finished && f.agrees,
            // Leads to `osd new` on an unused id.
            Phase::Purged => f.slot == SlotFact::Absent && f.issued,
            // Leads to a new Deployment.
            Phase::Prepared => {
                is_ours(&f) && f.disk == DiskFact::Finished && f.agrees && f.daemon != DaemonFact::New
            }
            // Closes the record.
            Phase::Settled => {
                is_ours(&f) && f.up && f.clean && f.conforms && f.placed && f.daemon == DaemonFact::New
            }
            Phase::Withdrawn => {
                let is_unwritten = f.disk == DiskFact::Blank || (f.disk == DiskFact::Unseen && !f.proven);
                let not_begun = f.new && is_unwritten && !f.issued && !is_ours(&f);
                not_begun || is_given_up(&f) || (f.slot == SlotFact::Old && !f.stopped)
            }
            Phase::Busy
            | Phase::Unproven
            | Phase::Emptying
            | Phase::NotOurStop
            | Phase::Stopping
            | Phase::Unplaced
            | Phase::Gone
            | Phase::Starting
            | Phase::Settling
            | Phase::Nonconforming
            | Phase::Foreign => true,
        };
        assert!(needs, "{:?} holds for {f:#?}", phase(&f));
    }
}

/// Checks that another disk may be chosen for an OSD that serves from its directory, without quarantining it.
#[test]
fn directory_osd_is_withdrawn_if_its_disk_is_taken_before_stop() {
    for f in all().filter(is_possible).filter(lost_its_disk) {
        assert_eq!(phase(&f), Phase::Withdrawn, "{f:#?}");
    }
}

#[test]
fn osd_stopped_externally_is_not_our_stop_or_is_withdrawn() {
    for f in all().filter(|f| f.slot == SlotFact::Old && !f.up && !f.stopped) {
        let expected = if f.wanted { Phase::NotOurStop } else { Phase::Withdrawn };
        if f.dead && f.wanted {
            continue;
        }
        assert_eq!(phase(&f), expected, "{f:#?}");
    }
}

#[test]
fn committed_osd_phase_ignores_whether_the_osd_is_wanted() {
    for f in all().filter(|f| (f.slot != SlotFact::Old || f.stopped) && !f.before_new()) {
        assert_eq!(phase(&f), phase(&Facts { wanted: !f.wanted, ..f }), "{f:#?}");
    }
}

#[test]
fn uninspected_device_decides_nothing_but_an_inspection() {
    let waits = [
        Phase::Unproven,
        Phase::Stopping,
        Phase::NotOurStop,
        Phase::Withdrawn,
        // Another inspection follows, or none is needed: the OSD is gone.
        Phase::Removing,
        Phase::Removed,
        // The daemon has the device open: no inspection is needed, or possible.
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
