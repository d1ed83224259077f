//! Everything that is changed for the duration of a migration, and restored afterwards (P9).
//!
//! Each change has the same shape, one step an iteration: `change` saves the former value in the ledger and
//! then changes the cluster, `restore` restores the cluster and then clears the entry. A crash between two of
//! these steps is an ordinary state.
//!
//! A runner that was frozen between its read of the ledger and its write may change the cluster after the
//! entry was cleared. So the last entry stays, and `restore` recognises such a late change by it; or the
//! write is refused, because it expects the ledger by which it was decided (ADR 0011).
//!
//! | change | former value | late writers |
//! | --- | --- | --- |
//! | `fence`, `owner_fence` | `run.fence`: there was none | `run.last_fence` |
//! | `operator` | `run.operator`: its replicas and generation | `run.last_operator` |
//! | `drains` | `run.pdb`: its limit and generation | `run.last_pdb` |
//! | `scrub` | `run.scrub`: which of the flags were unset | refused |
//! | `recovery` | `run.recovery`: which of the options had no value | refused |
//! | `bootstrap` | `run.bootstrap`: there was no key | refused, or left to Rook |
//! | `flags` | `former_flags` of the record | refused |
//! | `marked_out` | `reweight` of the record | refused |
//!
//! Only the creation of client.bootstrap-osd can be late unnoticed: Ceph does not compare the ledger with it.
//! A Rook that deletes the key (from 1.19 on) does so after its next reconcile.
//!
//! Which rule asks for a restore is in `plan::RULES` and `plan::AFTERWARDS`; the flags, the fence and the
//! in-weight are also restored as soon as the new OSD is up.

pub(super) mod bootstrap;
pub(super) mod drains;
pub(super) mod fence;
pub(super) mod flags;
mod list;
pub(super) mod marked_out;
pub(super) mod operator;
pub(super) mod owner_fence;
pub(super) mod recovery;
pub(super) mod scrub;
mod while_data_moves;

pub use drains::INTENT_MINUTES;
pub use list::{ALL, Temporary};
