//! What the agents save on the node, in a folder that outlives their pods.
//!
//! | module | content |
//! | --- | --- |
//! | `lock` | one agent for each OSD |
//! | `attempts` | the sequence of agents |
//! | `issued` | the fsids that reached `osd new` |
//! | `persistence` | whether the folder outlives a restart of the node |

pub(crate) mod attempts;
pub(crate) mod issued;
pub(crate) mod lock;
pub(crate) mod persistence;
