//! What agents do with the database of an OSD on a PersistentVolumeClaim of its own. No simulated OSD has its
//! log on another one.

use crate::domain::inspection::{Content, Evidence, NodeProblem, NodeRequest, Piece, PieceLocation};
use crate::domain::osd::{OsdFsid, Role};
use crate::domain::proof::pieces::{PieceSeen, part_is_to_be_cleared};
use crate::domain::proof::verdict::Verdict;
use crate::sim::world::{Effect, World};

impl World {
    /// Returns the PVC for the database of a request, and the disk behind it.
    pub(super) fn part_of(&self, request: &NodeRequest) -> Option<(String, String)> {
        let pvc = request.pvcs.as_ref()?.db.as_ref()?;
        Some((pvc.clone(), self.pvcs.disks.get(pvc)?.clone()))
    }

    /// Returns the store whose database is on a disk.
    pub fn database_on(&self, disk: &str) -> Option<OsdFsid> {
        self.databases.iter().find(|(_, on)| *on == disk).map(|(fsid, _)| *fsid)
    }

    /// Returns what an agent finds on the disk for the database.
    pub(super) fn part_seen(&self, request: &NodeRequest, disk: &str) -> PieceSeen {
        match (self.database_on(disk), self.disks.get(disk)) {
            (_, None) => PieceSeen::Missing,
            (Some(fsid), Some(_)) if fsid == request.old => PieceSeen::Old,
            (Some(fsid), Some(_)) if self.issued_written(request).contains(&fsid) => PieceSeen::Ours,
            (Some(fsid), Some(_)) => PieceSeen::Other(format!("the database of OSD {fsid}")),
            (None, Some(found)) if found.content == Content::Blank => PieceSeen::Blank,
            (None, Some(found)) => PieceSeen::Other(found.content.to_string()),
        }
    }

    /// Returns the database of the old OSD, by the first inspection; an error if anything else is there.
    pub(super) fn part_proven(&self, request: &NodeRequest) -> Result<Vec<Piece>, String> {
        let Some((name, disk)) = self.part_of(request) else { return Ok(Vec::new()) };
        let seen = self.part_seen(request, &disk);
        match (seen, self.disks.get(&disk)) {
            (PieceSeen::Blank, _) => Ok(Vec::new()),
            (PieceSeen::Old, Some(found)) => {
                let is_encrypted = self.pvcs.stores.contains_key(&request.old);
                let luks = is_encrypted.then(|| format!("header-{disk}"));
                let place = PieceLocation::Pvc { name, device: found.identity.clone(), luks };
                Ok(vec![Piece { role: Role::Db, place }])
            }
            (seen, _) => Err(format!("PVC {name} carries {seen}")),
        }
    }

    /// Adds the database of the old OSD to the evidence, or returns why nothing is proven.
    pub(super) fn with_part(&self, request: &NodeRequest, evidence: Evidence) -> Result<Evidence, Content> {
        if request.evidence.is_some() {
            return Ok(evidence);
        }
        let auxiliary = self.part_proven(request).map_err(|what| Content::Other { what })?;
        Ok(Evidence { auxiliary, ..evidence })
    }

    /// Proves the disk for the database, and opens it exclusively.
    pub(super) fn open_part(
        &mut self,
        job: &str,
        request: &NodeRequest,
        verdict: &Verdict,
    ) -> Result<(), NodeProblem> {
        let Some((pvc, disk)) = self.part_of(request) else { return Ok(()) };
        self.close_mappings(request, &disk)?;
        let seen = self.part_seen(request, &disk);
        part_is_to_be_cleared(Role::Db, &pvc, verdict, &seen).map_err(NodeProblem::Refused)?;
        let in_use = || NodeProblem::Failed("the disk for its database is in use".to_owned());
        let found = self.disks.get_mut(&disk).filter(|disk| disk.held_by.is_none()).ok_or_else(in_use)?;
        if seen != PieceSeen::Blank {
            found.held_by = Some(job.to_owned());
        }
        Ok(())
    }

    /// Clears the disk for the database, after the data was wiped; `None` if there is nothing to clear.
    pub(super) fn clear_part(&mut self, job: &str, request: &NodeRequest) -> Option<Vec<Effect>> {
        let (_, disk) = self.part_of(request)?;
        let part = self.database_on(&disk);
        let found = self.disks.get_mut(&disk).filter(|found| found.held_by.as_deref() == Some(job))?;
        let was = std::mem::replace(&mut found.content, Content::Blank);
        (found.proof, found.held_by) = (None, None);
        if let Some(fsid) = part {
            self.databases.remove(&fsid);
        }
        Some(vec![Effect::PartCleared { disk, was, part, osd: request.osd }])
    }

    /// Lets mkfs create the database; ceph-volume refuses a disk that is not blank.
    pub(super) fn create_part(&mut self, request: &NodeRequest, fsid: OsdFsid) -> Result<(), NodeProblem> {
        let Some((_, disk)) = self.part_of(request) else { return Ok(()) };
        let is_held = self.disks.get(&disk).is_none_or(|found| found.held_by.is_some());
        if is_held || self.part_seen(request, &disk) != PieceSeen::Blank {
            return Err(NodeProblem::Failed("the disk for its database is not blank".to_owned()));
        }
        self.databases.insert(fsid, disk);
        Ok(())
    }

    /// Closes the mappings of a new OSD.
    pub(super) fn close_new(&mut self, request: &NodeRequest, disk: &str) {
        self.pvcs.open.remove(disk);
        if let Some((_, part)) = self.part_of(request) {
            self.pvcs.open.remove(&part);
        }
    }

    /// Returns whether the new OSD has its database where the request says.
    pub(super) fn has_part(&self, request: &NodeRequest, fsid: Option<OsdFsid>) -> bool {
        self.part_of(request).is_none_or(|(_, disk)| fsid.is_some() && self.database_on(&disk) == fsid)
    }
}
