//! OSDs that need another disk, of which this run knows that their node has none.

use super::nodes::{self, KnownDisks};
use super::{database, directory_disk};
use crate::domain::classify;
use crate::domain::gate::Reason;
use crate::domain::osd::{Kind, OsdId};
use crate::domain::view::View;

/// Returns whether this run knows that no disk of the node can take the OSD, or its database.
///
/// Such an OSD is refused. Ceph is not asked about it: it is asked about few OSDs at a time, and the others
/// would wait for its answer.
pub(super) fn lacks_its_disk(osd: OsdId, view: View<'_>) -> bool {
    let class = view.slot(osd).map(|slot| classify::class_of(osd, slot, view.seen));
    let in_directory = class.and_then(|class| class.migrates()).is_some_and(Kind::in_directory);
    let needs_one = in_directory || classify::database_of(osd, view.seen).is_some();
    let Some(node) = view.node_of(osd).filter(|_| needs_one) else { return false };
    match nodes::known(node, view) {
        KnownDisks::Next(_) => false,
        KnownDisks::Never(_) | KnownDisks::Done(_) => true,
        KnownDisks::Disks(..) if in_directory => {
            matches!(directory_disk::known_disk(osd, view), Some(Err(Reason::NeedsDevice { .. })))
        }
        KnownDisks::Disks(_, inventory) => database::given(osd, node, inventory, view).is_err(),
    }
}
