//! ceph
