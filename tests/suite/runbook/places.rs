//! Why places of device sets get no OSD, and how Rook is let create it.

use osd_migrate::domain::classify::PvcRefusal;
use osd_migrate::domain::places;

use super::values::{pvc, text};

/// Returns why places of device sets get no OSD.
pub(crate) fn places() -> Vec<places::Obstacle> {
    use places::Obstacle::{
        Kms, Left, NoCount, NoNode, NoPvc, NoSource, Node, NotInPlan, Pending, Portable, Pvc, SeveralPvcs,
        Store, Surplus, Unclear,
    };
    let rook = || places::LetRook::Start;
    let refused = |refusal| Pvc(refusal);
    vec![
        Unclear { what: text("device set `set1`") },
        NoCount,
        Portable(rook()),
        Kms { kms: text("vault"), rook: rook() },
        Store(text("bluestore-rdr")),
        NoSource(rook()),
        NoPvc(rook()),
        SeveralPvcs { set: text("set1"), index: 2, pvcs: vec![pvc(), text("set1-data-0def")] },
        Pending { pvc: pvc(), rook: rook() },
        refused(PvcRefusal::PvcNotBound { pvc: pvc(), phase: text("Lost") }),
        refused(PvcRefusal::PvcNoBlock { pvc: pvc() }),
        refused(PvcRefusal::PvcOnePod { pvc: pvc() }),
        refused(PvcRefusal::NoDatabasePvc {
            set: text("set1"),
            index: Some(text("2")),
            template: text("metadata"),
            why: text("WHY"),
        }),
        NoNode { pvc: pvc(), volume: text("pv-x"), nodes: vec![] },
        NoNode { pvc: pvc(), volume: text("pv-x"), nodes: vec![text("h1"), text("h2")] },
        Node { pvc: pvc(), why: text("WHY") },
        Surplus { pvc: pvc(), count: 3 },
        Left { pvc: pvc(), found: text("WHY") },
        NotInPlan { pvc: pvc() },
    ]
}

/// Returns the ways in which a person lets Rook create an OSD.
pub(crate) fn ways_to_rook() -> Vec<places::LetRook> {
    let name = || text("rook-ceph/rook-ceph-operator");
    vec![
        places::LetRook::ScaleUp(name()),
        places::LetRook::RemoveFence,
        places::LetRook::RemoveLabel,
        places::LetRook::Wait(name()),
        places::LetRook::Start,
    ]
}
