//! Differences of an OSD from its declaration.

use std::collections::BTreeSet;

use super::class::Difference;
use super::target::Target;
use crate::domain::observation::Metadata;
use crate::domain::osd::Kind;

/// Returns the differences of an OSD in a supported format from its declaration.
///
/// Raw or LVM makes no difference, and neither do place and size of a database that is on another device
/// already. Rook starts all of them, and no data is moved for that.
pub(super) fn differences(kind: Kind, metadata: &Metadata, wanted: &Target) -> BTreeSet<Difference> {
    let layout = &wanted.layout;
    let store = (metadata.store != layout.store)
        .then(|| Difference::Store(metadata.store.clone(), layout.store.clone()));
    let encryption = match (kind.is_encrypted(), layout.encrypted) {
        (false, true) => Some(Difference::ToBeEncrypted),
        (true, false) => Some(Difference::ToBePlain),
        (true, true) | (false, false) => None,
    };
    let asked = wanted.database.as_ref().filter(|_| !metadata.dedicated_db);
    let database = asked.map(|asked| Difference::DatabaseElsewhere(asked.device.clone()));
    store.into_iter().chain(encryption).chain(database).collect()
}
