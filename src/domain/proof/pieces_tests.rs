use super::*;
use crate::domain::osd::{DeviceIdentity, Role};

fn piece(role: Role, part: &str) -> Piece {
    let identity = DeviceIdentity {
        by_id: [].into(),
        by_path: [].into(),
        serial: None,
        wwn: Some(part.to_owned()),
        size_bytes: 7,
    };
    Piece { role, place: PieceLocation::Device(identity) }
}

#[test]
fn changed_auxiliary_device_stops_only_the_wipe_of_the_old() {
    let other = || PieceSeen::Other("a signature of xfs".to_owned());
    let decided =
        |verdict: Verdict, seen: PieceSeen| piece_is_to_be_cleared(&piece(Role::Db, "p"), &verdict, &seen);
    for (verdict, seen, cleared) in [
        (Verdict::WipeOld, PieceSeen::Old, true),
        (Verdict::WipeOld, PieceSeen::Blank, false),
        (Verdict::WipeOurs, PieceSeen::Old, true),
        (Verdict::WipeOurs, PieceSeen::Blank, false),
        (Verdict::WipeOurs, other(), false),
        (Verdict::WipeOurs, PieceSeen::Missing, false),
    ] {
        assert_eq!(decided(verdict, seen), Ok(cleared));
    }
    let why = decided(Verdict::WipeOld, other()).unwrap_err();
    assert!(why.contains("block.db") && why.ends_with("found a signature of xfs"), "{why}");
    assert!(decided(Verdict::WipeOld, PieceSeen::Missing).unwrap_err().contains("no such device"));
    for verdict in [Verdict::Done, Verdict::TakeAvailable, Verdict::Refuse(String::new())] {
        assert!(decided(verdict, PieceSeen::Old).is_err(), "parts are cleared only for a wipe");
    }
}

#[test]
fn auxiliary_device_that_is_not_recorded_is_named() {
    let recorded = [piece(Role::Db, "p"), piece(Role::Wal, "q")];
    assert_eq!(pieces_are_recorded(&recorded, &recorded[1..]), Ok(()));
    for other in [piece(Role::Db, "q"), piece(Role::Wal, "p"), piece(Role::Journal, "p")] {
        let why = pieces_are_recorded(&recorded, std::slice::from_ref(&other)).unwrap_err();
        assert!(why.starts_with(&format!("its {} is on", other.role)), "{why}");
    }
}

#[test]
fn device_of_a_pvc_is_cleared_only_of_parts_of_this_osd() {
    let decided = |verdict: Verdict, seen: &PieceSeen| {
        part_is_to_be_cleared(Role::Db, "set1-metadata-0b", &verdict, seen)
    };
    let ours = || [Verdict::WipeOurs, Verdict::WipeMisplaced(crate::domain::osd::OsdId(9))];
    for verdict in ours().into_iter().chain([Verdict::WipeOld]) {
        assert_eq!(decided(verdict.clone(), &PieceSeen::Old), Ok(true));
        assert_eq!(decided(verdict.clone(), &PieceSeen::Blank), Ok(false));
        for other in [PieceSeen::Other("a signature of xfs".to_owned()), PieceSeen::Missing] {
            let why = decided(verdict.clone(), &other).unwrap_err();
            assert!(why.contains("PVC set1-metadata-0b") && why.ends_with(&other.to_string()), "{why}");
        }
    }
    for verdict in ours() {
        assert_eq!(decided(verdict, &PieceSeen::Ours), Ok(true));
    }
    // While the old OSD is whole, nothing of a new one can be there.
    assert!(decided(Verdict::WipeOld, &PieceSeen::Ours).is_err());
}
