//! A small world to start from, and the changes that the tests make to it.
//!
//! The world has six OSDs on three hosts (0, 1 on h1; 2, 3 on h2; 4, 5 on h3) and one replicated pool of size
//! 3. Each of the pool's eight PGs has one OSD of every host. osd.0 is a BlueStore created by hand, osd.2 a
//! Filestore on partitions; the others conform. Rook's operator is scaled to 0. The states that a migration
//! passes through are rungs of a ladder: `recorded`, `proven`, `intended`, `stopping`, `stopped`,
//! `destroyed`, `prepared`, `deployed`, `booted`, `filled`.

mod agent;
mod decision;
mod ids;
mod ladder;
mod observation;
mod osd;
mod world;

pub(crate) use agent::{able, evidence, job_name, label, old_content, tombstone};
pub(crate) use decision::{FINISHED, nothing_left, quarantine, word};
pub(crate) use ids::{
    BY_HAND, FILESTORE, GIB, OPERATOR, OSDS, POOL, cluster, foreign, issued_fsid, members, node_of, noon,
    old, pg_id,
};
pub(crate) use observation::{bound_pvc, encrypted, observation, prepare};
pub(crate) use osd::{MODE, metadata, pod, states};
pub(crate) use world::World;
