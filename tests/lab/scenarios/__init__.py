"""What is tried on the lab, one file each."""

NAMESPACE = "rook-ceph"
