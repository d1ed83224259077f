//! Drains of other nodes while an OSD is stopped.
//!
//! The runner freezes around its writes about drains, and people stop the run before the stop of its OSD.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::sim::{Around, Happening, World, example};

use super::search::Search;
use super::{explored, has_time, needs};

/// Returns what makes the run give an OSD up, or suspend it, before its stop.
fn holds_up(_: &World) -> Vec<Happening> {
    let mut menu: Vec<_> = [Around::Paused, Around::Cancelled, Around::RookPrepares, Around::MonDown]
        .map(|what| Happening::Around(what, true))
        .into();
    menu.push(Happening::Unconfirmed);
    menu
}

/// Returns a world in which Rook has created no PodDisruptionBudget: a Deployment is missing one of Rook's
/// labels (ADR 0021).
fn without_rooks() -> World {
    let mut world = example::replicated();
    world.kube.osd_pdb = None;
    world
}

fn frozen(example: fn() -> World) -> Search {
    Search::new("held up, a freeze", example, holds_up, (1, 1, 0))
}

fn frozen_late(example: fn() -> World) -> Search {
    let late = Search::new("held up, a late freeze", example, holds_up, (1, 1, 0));
    Search { freezes_late: true, ..late }
}

#[test]
fn rooks_pdb_is_restored_after_suspension_and_a_freeze() {
    explored(&frozen(example::replicated));
    explored(&frozen_late(example::replicated));
}

#[test]
fn own_pdb_is_deleted_after_suspension_and_a_freeze_or_leap() {
    explored(&frozen(without_rooks));
    explored(&frozen_late(without_rooks));
    explored(&Search::new("held up, a leap, no PDB of Rook", without_rooks, holds_up, (1, 0, 1)));
}

#[test]
fn own_pdb_may_be_rejected_at_any_time() {
    let refused = |world: &World| {
        if world.rejects_pdbs { Vec::new() } else { vec![Happening::PdbsRejected] }
    };
    explored(&Search::new("PDBs rejected, a freeze", without_rooks, refused, (1, 1, 0)));
}

#[test]
fn rooks_pdb_is_restored_after_suspension_and_a_time_leap() {
    explored(&Search::new("held up, a leap", example::replicated, holds_up, (1, 0, 1)));
}

#[test]
fn drains_need_their_guards() {
    needs(|| frozen(example::replicated), &[Guard::PdbSavedFirst, Guard::DrainsLimitedFirst]);
    needs(|| frozen(without_rooks), &[Guard::DrainsLimitedFirst]);
}

#[test]
fn drains_wider_if_there_is_time() {
    if has_time() {
        explored(&Search {
            freezes_late: true,
            ..Search::new("held up", example::replicated, holds_up, (1, 1, 1))
        });
    }
}
