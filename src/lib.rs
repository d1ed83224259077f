//! osd-migrate: brings every OSD of a Ceph cluster on Kubernetes to the storage its owner declared.
pub mod ceph;
pub mod domain;
pub mod k8s;
pub mod node;
