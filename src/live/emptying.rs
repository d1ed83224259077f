//! Whether an OSD can be emptied: asked before it is recorded, and again right before it is marked out.

use std::collections::BTreeSet;

use crate::ceph::CephError;
use crate::domain::act::DataPrecondition;
use crate::domain::expect;
use crate::domain::forecast::{Placement, forecast};
use crate::domain::observation::{self, Emptiable};
use crate::domain::osd::OsdId;
use crate::domain::policy::Accepted;
use crate::live::adapter::Live;
use crate::ports::{Failure, passing};

impl Live {
    /// Asks Ceph where the data of an OSD would go if the OSD were marked out.
    pub(super) async fn emptiable(
        &mut self,
        osd: OsdId,
        ceph: &observation::Ceph,
    ) -> Result<Emptiable, Failure> {
        let placement = self.session().await?.placement_marked_out(osd).await;
        self.judged(placement, ceph).await
    }

    /// Asks Ceph where the data of these OSDs would go if they had CRUSH weight 0.
    pub(super) async fn removable(
        &mut self,
        osds: &BTreeSet<OsdId>,
        ceph: &observation::Ceph,
    ) -> Result<Emptiable, Failure> {
        let placement = self.session().await?.placement_without(osds).await;
        self.judged(placement, ceph).await
    }

    /// Judges a placement by the space on the OSDs.
    async fn judged(
        &mut self,
        placement: Result<Placement, CephError>,
        ceph: &observation::Ceph,
    ) -> Result<Emptiable, Failure> {
        let placement = match placement {
            // Without the program, the other OSDs are migrated all the same.
            Err(error @ CephError::NoOsdmaptool) => return Ok(Emptiable::No(error.to_string())),
            Err(error @ CephError::Osdmaptool { .. }) => return Ok(Emptiable::Unknown(error.to_string())),
            answer => self.reopen(answer)?,
        };
        let space = self.session().await?.space().await;
        let space = self.reopen(space)?;
        Ok(forecast(&placement, &space, ceph).emptiable())
    }

    /// Checks before an OSD is marked out, or these OSDs get CRUSH weight 0, that the PGs allow it, and that
    /// the data finds a place.
    ///
    /// A runner may have been frozen since the decision.
    pub(super) async fn expect_place(
        &mut self,
        osd: OsdId,
        weightless: Option<&BTreeSet<OsdId>>,
        accepted: &Accepted,
    ) -> Result<(), Failure> {
        let ceph = self.clean_for(osd, accepted).await?;
        let answer = match weightless {
            None => self.emptiable(osd, &ceph).await?,
            Some(osds) => self.removable(osds, &ceph).await?,
        };
        dropped_if(osd, answer)
    }

    /// Returns an observation of Ceph in which the PGs allow that data moves away from an OSD.
    async fn clean_for(&mut self, osd: OsdId, accepted: &Accepted) -> Result<observation::Ceph, Failure> {
        let ceph = self.observe_ceph().await?;
        let allows = DataPrecondition::CleanFor { osd, accepted: accepted.clone() };
        match expect::precondition(&allows, &ceph) {
            Ok(()) => Ok(ceph),
            Err(reason) => Err(kept(osd, &reason.to_string())),
        }
    }
}

fn dropped_if(osd: OsdId, answer: Emptiable) -> Result<(), Failure> {
    match answer {
        Emptiable::Yes { .. } => Ok(()),
        Emptiable::No(why) | Emptiable::Unknown(why) => Err(kept(osd, &why)),
    }
}

fn kept(osd: OsdId, why: &str) -> Failure {
    passing(format!("the data of {osd} was not moved away: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_moved_only_if_the_second_answer_is_yes() {
        let osd = OsdId(3);
        assert!(dropped_if(osd, Emptiable::Yes { moved_bytes: 1, fullest: None }).is_ok());
        for answer in [Emptiable::No("full".to_owned()), Emptiable::Unknown("full".to_owned())] {
            let failure = dropped_if(osd, answer).unwrap_err();
            assert_eq!(failure.message, "the data of osd.3 was not moved away: full [not-done]");
        }
    }
}
