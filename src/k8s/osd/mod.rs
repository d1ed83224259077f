//! Deployments of OSDs: parsed, stopped, started, written in Rook's shape, backed up.
//!
//! | module | content |
//! | --- | --- |
//! | `fields`, `daemon`, `daemon_data`, `daemon_pvcs` | readers of a Deployment |
//! | `daemons` | all Deployments of OSDs, with their pods and nodes |
//! | `osd_object`, `osd_deployment` | a Deployment as an object, and its reads and writes |
//! | `created_as` | names of the disks of OSDs when they were created |
//! | `declared_osd`, `render_osd`, `osd_containers`, `osd_env`, `osd_activation` | the Deployment of an OSD |
//! | `osd_on_pvc`, `pvc_encryption`, `pvc_from_lvm`, `pvc_parts`, `pvc_shape` | the Deployment of an OSD on a PVC |
//! | `new_on_pvc`, `rename` | that of a new OSD on a PVC, made from that of another OSD |
//! | `deploy_osd`, `admission` | the start of an OSD, and its dry run |

mod admission;
mod created_as;
pub(crate) mod daemon;
mod daemon_data;
pub(crate) mod daemon_pvcs;
pub(crate) mod daemons;
#[cfg(test)]
mod databases_on_pvc_tests;
mod declared_osd;
pub(crate) mod deploy_osd;
mod fields;
mod new_on_pvc;
mod osd_activation;
mod osd_containers;
mod osd_deployment;
mod osd_env;
mod osd_object;
mod osd_on_pvc;
mod pvc_encryption;
mod pvc_from_lvm;
mod pvc_parts;
mod pvc_shape;
mod rename;
#[cfg(test)]
mod render_new_tests;
pub(crate) mod render_osd;
#[cfg(test)]
mod rook_pvc_shapes;
#[cfg(test)]
mod rook_reads_back_tests;
#[cfg(test)]
mod wire_deploy_tests;
#[cfg(test)]
mod wire_new_pvc_tests;
#[cfg(test)]
mod wire_pvc_tests;
#[cfg(test)]
mod wire_tests;
