//! Decides the next step for one OSD by its phase. With `phase/` this is the table of
//! docs/concepts/how-it-works.md.
//!
//! | file | content |
//! | --- | --- |
//! | `next` | dispatch by phase |
//! | `save`, `protect` | what all phases need: saves and quarantine; fence and flags |
//! | `proof` | the device holds the OSD of the record |
//! | `emptying` | data that moves away before the stop |
//! | `later_stop` | whether the OSD could be stopped then |
//! | `beside` | other OSDs of a batch |
//! | `down`, `stopping` | until the old OSD is destroyed |
//! | `destroyed` | until the device is wiped and the new OSD is registered |
//! | `admission` | the API server's answer about the new Deployment |
//! | `agents`, `busy_agent`, `lost_node` | node Jobs; an agent that is still at work; a node that is lost |
//! | `up`, `late` | from the new OSD to the closed record |
//! | `watch` | time-dependent steps of an OSD that is down |
//! | `restore`, `upmaps` | the old OSD, the place in CRUSH, upmaps lost by a purge |
//! | `deployment_by` | a Deployment that Rook creates |
//! | `removal` | an OSD that is removed: its disk, id and Deployment |
//! | `directory` | an OSD in a directory |
//! | `two_deployments` | an OSD with two Deployments |
//! | `foreign` | foreign objects |
//! | `left` | PGs and bytes that are left on an OSD that is emptied |

mod admission;
mod agents;
mod beside;
mod busy_agent;
mod deployment_by;
mod destroyed;
mod directory;
mod down;
mod emptying;
mod foreign;
mod late;
mod later_stop;
mod left;
mod lost_node;
mod marked_in;
mod next;
mod patience;
mod proof;
mod protect;
mod removal;
mod restore;
mod save;
mod stopping;
mod two_deployments;
mod up;
mod upmaps;
mod watch;

pub use agents::{MAX_FAILURES, SILENT_MINUTES, START_MINUTES, is_late, is_silent};
pub use destroyed::{AWAY_MINUTES, UNSAFE_MINUTES};
pub use down::{MAX_REVERTS, UNKNOWN_MINUTES};
pub use emptying::STALLED_MINUTES;
pub use later_stop::can_be_stopped_later;
pub use next::Step;
pub use patience::EMPTY_MINUTES;
pub use up::{MAX_RESTARTS, ON_FILE};
pub use upmaps::MAX_UPMAP_TRIES;
