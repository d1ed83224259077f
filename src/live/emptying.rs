//! Whether an OSD can be emptied: asked before it is recorded, and again right before it is marked out.

use crate::ceph::CephError;
use crate::domain::act::DataPrecondition;
use crate::domain::expect;
use crate::domain::forecast::forecast;
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
        let placement = match self.session().await?.placement_marked_out(osd).await {
            // Without the program, the other OSDs are migrated all the same.
            Err(error @ CephError::NoOsdmaptool) => return Ok(Emptiable::No(error.to_string())),
            Err(error @ CephError::Osdmaptool { .. }) => return Ok(Emptiable::Unknown(error.to_string())),
            answer => self.reopen(answer)?,
        };
        let space = self.session().await?.space().await;
        let space = self.reopen(space)?;
        Ok(forecast(&placement, &space, ceph).emptiable())
    }

    /// Checks right before an OSD is marked out that the PGs allow it, and that its data finds a place.
    ///
    /// A runner may have been frozen since the decision.
    pub(super) async fn expect_emptiable(&mut self, osd: OsdId, accepted: &Accepted) -> Result<(), Failure> {
        let ceph = self.observe_ceph().await?;
        let refused = |why: String| passing(format!("{osd} was not marked out: {why}"));
        let allows = DataPrecondition::CleanFor { osd, accepted: accepted.clone() };
        expect::precondition(&allows, &ceph).map_err(|reason| refused(reason.to_string()))?;
        match self.emptiable(osd, &ceph).await? {
            Emptiable::Yes { .. } => Ok(()),
            Emptiable::No(why) | Emptiable::Unknown(why) => Err(refused(why)),
        }
    }
}
