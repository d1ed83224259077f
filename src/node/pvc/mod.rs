//! Devices of the PVCs that an OSD is on, and the parts of the OSD on PVCs of their own: the database
//! (template `metadata`) and the write-ahead log (template `wal`).
//!
//! | module | content |
//! | --- | --- |
//! | `device` | the device of a PVC, by the node that the bridge made |
//! | `part` | what a device for database or log carries |
//! | `inspect` | the parts of the old OSD as pieces of the evidence; the parts of the new OSD, checked |
//! | `available` | blank devices for a new OSD, at the first inspection |
//! | `hold` | the parts proven, held, wiped and encrypted during a rebuild |
//!
//! Data and parts go through the same writes: tombstone, wipe, and a LUKS header if the OSD is to be
//! encrypted. All devices are proven and held before the first write. The data gets its tombstone first. From
//! then on the old OSD is gone (`Verdict::WipeOurs`), and every state of a part in this table is cleared:
//!
//! | the agent was killed after | data | part | part is recognised by |
//! | --- | --- | --- | --- |
//! | closing a mapping | old OSD | old, or blank | its label, or its recorded LUKS header |
//! | tombstone on the data | tombstone | old, or blank | the same |
//! | tombstone on the part | tombstone | tombstone | its first sector |
//! | any byte of the wipe | tombstone | tombstone | its first sector, which the wipe spares |
//! | LUKS header on the data | header of the record | tombstone | its first sector |
//! | any byte of its header | header of the record | tombstone | its first sector, which comes last |
//! | LUKS header on the part | header of the record | header of record and role | the header's uuid |
//! | opening of mappings, mkfs in them | open | open | the uuid of its header; closed first |
//! | mkfs without encryption | tombstone, or unfinished | tombstone, or label | an issued fsid |
//! | mkfs of everything | finished | label of the same fsid | nothing is cleared: done, and checked |
//!
//! A part in any other state belongs to another owner. It stops the rebuild, also after the old OSD is gone:
//! the new OSD would overwrite it.

pub(crate) mod available;
pub(crate) mod device;
pub(crate) mod hold;
pub(crate) mod inspect;
pub(crate) mod part;
#[cfg(test)]
mod samples;
