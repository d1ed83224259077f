//! Rook's objects: the CephCluster and its fence, the operator, the mons' addresses, PodDisruptionBudgets,
//! rotations of keys, other daemons of Ceph on a node.

pub(crate) mod ceph_cluster;
mod cluster_status;
mod daemons_of_node;
mod key_rotation;
mod locate;
pub(crate) mod mon_access;
pub(crate) mod operator;
pub(crate) mod pdbs;
mod storage;
#[cfg(test)]
mod wire_fence_tests;
#[cfg(test)]
mod wire_locate_tests;
