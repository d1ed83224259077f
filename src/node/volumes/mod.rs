//! OSDs on logical volumes: the volumes that an agent creates, finds again and removes.
//!
//! The agent creates the volumes, not ceph-volume. Volumes of ceph-volume have no name or tag of osd-migrate
//! until seconds later: if ceph-volume is killed in between, it leaves a volume on a shared disk without
//! a sign of its OSD. Here everything is named after the new OSD's fsid, which is recorded as issued before
//! anything is created:
//!
//! | object | name |
//! | --- | --- |
//! | physical volume of the data | uuid = the fsid, so that a bare signature identifies the OSD |
//! | its volume group | `ceph-FSID`, of that disk alone |
//! | its volume | `osd-block-FSID` |
//! | volume of the database, of the log | `osd-db-FSID`, `osd-wal-FSID` |
//!
//! The volumes of the database and of the log get their tags in the same step. They are in a volume group
//! that other OSDs of this cluster share. Foreign volumes in that group are never touched: only volumes with
//! the tags of this OSD and one of its issued fsids.
//!
//! Existing OSDs on volumes and under dm-crypt are also found (`old`, `crypt`) and removed (`removal`) here.
//! So is the encryption of new OSDs on PVCs (`luks`).
//! If the group of the old volume is not the OSD's alone, only the volume is recreated, in the same group.
//! The new volume then has the tags above and is identified by them alone.

pub(crate) mod auxiliary;
mod change;
pub(crate) mod crypt;
pub(crate) mod databases;
pub(crate) mod hidden;
pub(crate) mod luks;
mod lvm;
pub(crate) mod lvm_cache;
pub(crate) mod make;
mod mapped;
pub(crate) mod names;
pub(crate) mod old;
pub(crate) mod removal;
pub(crate) mod seen;
pub(crate) mod stack;
mod tombstone;
pub(crate) mod within;
