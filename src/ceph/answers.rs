//! Complete answers of Ceph, parsed as an observation parses them. They are for tests with generated clusters
//! (test builds only).

use crate::ceph::maps::Maps;
use crate::ceph::observe::{Parsed, join};
use crate::ceph::{config_key_ls, health, osd_crush_dump, osd_df, osd_dump, osd_metadata, pg_dump, versions};
use crate::domain::observation;

/// Answers to the commands of one observation, each as JSON.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// `osd dump`
    pub osd_dump: Vec<u8>,
    /// `osd crush dump`
    pub osd_crush_dump: Vec<u8>,
    /// `osd metadata`
    pub osd_metadata: Vec<u8>,
    /// `health`
    pub health: Vec<u8>,
    /// `versions`
    pub versions: Vec<u8>,
    /// `osd df`
    pub osd_df: Vec<u8>,
    /// `pg dump pgs`
    pub pg_dump: Vec<u8>,
    /// `config-key ls`
    pub config_key_ls: Vec<u8>,
}

impl Answers {
    /// Returns what an observation of this cluster contains.
    pub fn seen(&self) -> serde_json::Result<observation::Ceph> {
        Ok(join(Parsed {
            maps: Maps {
                map: osd_dump::parse(&self.osd_dump)?.into(),
                crush: osd_crush_dump::parse(&self.osd_crush_dump)?.into(),
            },
            metadata: osd_metadata::parse(&self.osd_metadata)?,
            health: health::parse(&self.health)?,
            releases: versions::parse(&self.versions)?,
            used: osd_df::parse(&self.osd_df)?,
            pgs: pg_dump::parse(&self.pg_dump)?.into(),
            encrypted: config_key_ls::parse(&self.config_key_ls)?,
        }))
    }
}
