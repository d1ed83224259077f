//! Adapter to Ceph through librados. Each command has one file with its arguments, its answer and a captured
//! sample.
//!
//! Reads are tried again if the error is transient. Acts are sent once, after the map was read again to check
//! that everything is as the act expects (P6). A call without an answer in time has an unknown outcome:
//! [`CephError::NoAnswer`].

mod all_pgs;
#[cfg(feature = "failpoint")]
mod answers;
mod auth;
mod caps;
mod command;
mod config_dump;
mod config_key_ls;
mod config_set;
mod destroy;
mod down_since;
mod erasure_code;
mod error;
mod flags;
mod fsid;
mod group_flags;
mod health;
mod librados;
mod maps;
mod numbers;
mod observe;
mod ok_to_stop;
mod osd_crush_dump;
mod osd_df;
mod osd_dump;
mod osd_map;
mod osd_metadata;
mod osd_new;
mod osd_perf;
mod osd_set;
mod osd_stat;
mod osdmaptool;
mod own_user;
mod pg_dump;
mod pg_ls_by_osd;
mod pg_stat;
mod pg_statistics;
mod pg_table;
mod pgs;
mod purge_misplaced;
mod removal;
mod restore_crush;
mod restore_upmaps;
mod safe_to_destroy;
#[cfg(test)]
mod samples;
mod secret;
mod session;
mod space;
mod versions;

#[cfg(feature = "failpoint")]
pub use answers::Answers;
pub use caps::{Needs, USER, by_hand};
pub use error::CephError;
pub use secret::Secret;
pub use session::{Ceph, Connection};
