//! Examples below the help of each command. A line has at most 58 columns: the help fits a narrow terminal.

pub(super) const PROGRAM: &str = "\
Examples:
  osd-migrate rehearse
  osd-migrate -n rook-ceph plan";

pub(super) const REHEARSE: &str = "\
Examples:
  osd-migrate rehearse
  osd-migrate rehearse --fault kill-runner@osd.2 -v";

pub(super) const PLAN: &str = "\
Examples:
  osd-migrate -n rook-ceph plan
  osd-migrate -n rook-ceph plan --inventory
  osd-migrate -n rook-ceph plan --remove osd.5";

pub(super) const RUN: &str = "\
Examples:
  osd-migrate run --select osd.5 \\
    --confirm yes-really-migrate-osds
  osd-migrate run --skip osd.3,osd.4 --detach";

pub(super) const FOLLOW: &str = "\
Examples:
  osd-migrate -n rook-ceph follow
  osd-migrate -n rook-ceph follow osd-migrate-r5";

pub(super) const PROVISION: &str = "\
Examples:
  osd-migrate -n rook-ceph plan --inventory
  osd-migrate -n rook-ceph provision \\
    --confirm yes-really-migrate-osds";

pub(super) const STATUS: &str = "\
Examples:
  osd-migrate -n rook-ceph status
  osd-migrate -n rook-ceph status --watch
  osd-migrate -n rook-ceph status -o json";

pub(super) const REPORT: &str = "\
Examples:
  osd-migrate -n rook-ceph report
  osd-migrate -n rook-ceph report -o html";

pub(super) const PAUSE: &str = "\
Examples:
  osd-migrate -n rook-ceph pause
  osd-migrate -n rook-ceph resume";

pub(super) const CANCEL: &str = "\
Examples:
  osd-migrate -n rook-ceph cancel
  osd-migrate -n rook-ceph resume";

pub(super) const RESUME: &str = "\
Examples:
  osd-migrate -n rook-ceph resume";

pub(super) const RETRY: &str = "\
Examples:
  osd-migrate -n rook-ceph retry osd.5
  osd-migrate -n rook-ceph retry osd.5,osd.6";

pub(super) const REMOVE: &str = "\
Examples:
  osd-migrate -n rook-ceph remove osd.5
  osd-migrate -n rook-ceph remove osd.5,osd.6 \\
    --disk mark --confirm yes-really-remove-osds
  osd-migrate -n rook-ceph remove --node h3
  osd-migrate -n rook-ceph remove --undeclared";

pub(super) const KEEP: &str = "\
Examples:
  osd-migrate -n rook-ceph keep osd.5
  osd-migrate -n rook-ceph keep --node h3";

pub(super) const FENCE: &str = "\
Examples:
  osd-migrate -n rook-ceph fence
  osd-migrate -n rook-ceph fence --remove";

pub(super) const PREFLIGHT: &str = "\
Examples:
  osd-migrate -n rook-ceph preflight";

pub(super) const EXPLAIN: &str = "\
Examples:
  osd-migrate explain
  osd-migrate -n rook-ceph explain not-clean
  osd-migrate explain 12";

pub(super) const COMPLETION: &str = "\
Examples:
  source <(osd-migrate completion bash)
  osd-migrate completion fish | source";
