"""Scenarios of the lab, one file each."""

NAMESPACE = "rook-ceph"
