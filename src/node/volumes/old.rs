//! OSDs that `ceph-volume lvm` created. They are found by their tags. They are proven by tags, by the uuids
//! of volume and group, and by what lies within the volume.

use std::path::Path;

use crate::domain::inspection::{Content, Evidence, NodeRequest, Piece, PieceLocation, Proof};
use crate::domain::osd::{ClusterFsid, Kind, OsdFsid, OsdId, Role};
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::pieces::PieceSeen;
use crate::node::disk::devices::Disk;
use crate::node::disk::label::{self, label_on};
use crate::node::disk::parts::PART_UUID;
use crate::node::disk::table;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::legacy::files::{self, Sharing};
use crate::node::legacy::pieces;
use crate::node::tools::command::{QUICK, blocking};
use crate::node::volumes::auxiliary::location;
use crate::node::volumes::change::Change;
use crate::node::volumes::lvm::{Lv, Segment};
use crate::node::volumes::lvm_cache::{LvmCache, Physical};
use crate::node::volumes::mapped::{Mapped, opened};
use crate::node::volumes::names::{block, fsid_of_tags, osd_tag};
use crate::node::volumes::tombstone;

/// Moment at which a disk is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The disk's volumes may be opened.
    Asked,
    /// The disk is open exclusively, and its volumes stay closed.
    Held,
}

/// Examines what lies on a physical volume of LVM, as far as it concerns the OSD of the request.
pub(super) async fn examine(
    host: &Host,
    disk: &Disk,
    physical: &str,
    known: &LvmCache,
    request: &NodeRequest,
    moment: Moment,
) -> Result<DiskFinding, NodeError> {
    let (all, segments) = known.get().await?;
    let Some(physical) = Physical::of(physical, segments) else {
        return Ok(DiskFinding::other("a physical volume without a volume group", None));
    };
    let on_it: Vec<&Lv> = all.iter().filter(|lv| physical.volumes.contains(&lv.uuid)).collect();
    let is_main = |lv: &&&Lv| {
        lv.ceph.osd_fsid == Some(request.old) && matches!(lv.ceph.kind.as_deref(), Some("block" | "data"))
    };
    let mut mains = on_it.iter().filter(is_main);
    match (mains.next(), mains.next()) {
        (Some(main), None) => {
            Main { host, lv: main, physical: &physical, all, segments, request, moment }.examine(disk).await
        }
        (None, _) => Ok(gone(&physical, &on_it, request)),
        (Some(_), Some(_)) => Ok(DiskFinding::other(
            format!("several volumes for the data of OSD {}", request.old),
            Some(request.old),
        )),
    }
}

/// Returns the finding for a physical volume without the old OSD's volume.
///
/// It shows the volume that osd-migrate created in its place, the tombstone of the removed volume, or nothing
/// of the OSD.
fn gone(physical: &Physical, on_it: &[&Lv], request: &NodeRequest) -> DiskFinding {
    let of_new = |lv: &&Lv| {
        let fsid = fsid_of_tags(lv).filter(|fsid| lv.name == block(*fsid))?;
        lv.tags.contains(&osd_tag(request.osd)).then_some(fsid)
    };
    if let Some(fsid) = on_it.iter().find_map(of_new) {
        return DiskFinding::other(format!("a volume for OSD {fsid}"), Some(fsid));
    }
    if let Some(tombstone) = tombstone::of(&physical.group.tags, request) {
        let about = Some(tombstone.old);
        return DiskFinding::plain(tombstone.into_content(), about);
    }
    let (group, count) = (&physical.group.name, on_it.len());
    DiskFinding::other(format!("volume group {group} with {count} volumes, none of them this OSD's"), None)
}

/// The volume that carries the OSD's data, by its tags.
struct Main<'a> {
    host: &'a Host,
    lv: &'a Lv,
    physical: &'a Physical,
    all: &'a [Lv],
    segments: &'a [Segment],
    request: &'a NodeRequest,
    moment: Moment,
}

/// Identity of an OSD.
type Names = (OsdFsid, OsdId, ClusterFsid);

impl Main<'_> {
    async fn examine(&self, disk: &Disk) -> Result<DiskFinding, NodeError> {
        let (lv, physical, request) = (self.lv, self.physical, self.request);
        let about = Some(request.old);
        let name = lv.named();
        let other = |what: &str| {
            Ok(DiskFinding::other(format!("volume {name} of OSD {}: {what}", request.old), about))
        };
        let (Some(whoami), Some(cluster)) = (lv.ceph.whoami, lv.cluster) else {
            return other("its tags do not contain its id and cluster");
        };
        if physical.is_spread(&lv.uuid) {
            return other("it spans several disks, which is not supported yet");
        }
        if let Some(why) = lv.snapshot(self.all) {
            return other(&why);
        }
        let names = (request.old, whoami, cluster);
        let (luks, auxiliary) = match self.within(names).await? {
            Within::Proven { luks, auxiliary } => (luks, auxiliary),
            Within::Not(what) => return other(&what),
        };
        let kind = kind_of(lv);
        let alone = physical.holds_only(&lv.uuid) && disk.parent.is_none();
        let (osd_fsid, volume, group) = (request.old, lv.uuid.clone(), physical.group_uuid.clone());
        let proof =
            Proof::Volume { format: kind, group, volume, name, alone, luks, osd_fsid, whoami, cluster };
        Ok(DiskFinding {
            proof: Some(proof),
            auxiliary,
            // Only the volume is recreated if others share its group.
            usable_bytes: (!alone).then_some(lv.size_bytes),
            ..DiskFinding::plain(Content::Osd { format: kind, osd_fsid, whoami, cluster }, about)
        })
    }

    /// Returns what the volume itself shows.
    ///
    /// The first inspection also compares the volume's content with its tags, and finds the OSD's other
    /// parts.
    async fn within(&self, names: Names) -> Result<Within, NodeError> {
        if self.moment == Moment::Held {
            // The volume is closed now. Its header was compared before, when it could be read.
            return Ok(Within::Proven {
                luks: recorded_header(self.request.evidence.as_ref()),
                auxiliary: Vec::new(),
            });
        }
        if Mapped::of_volume(self.host, self.lv).is_none() {
            Change::Activate { lv: &self.lv.named() }.done().await?;
        }
        let Some(mapped) = Mapped::of_volume(self.host, self.lv) else {
            return Ok(Within::Not("the kernel does not show it, although it is active".to_owned()));
        };
        let signature = table::signature(&mapped.node).await?;
        let luks = signature.uuid.clone().filter(|_| signature.kind.as_deref() == Some("crypto_LUKS"));
        if luks.is_some() != self.lv.ceph.encrypted {
            return Ok(Within::Not("its tags and its content disagree about its encryption".to_owned()));
        }
        if self.request.evidence.is_some() {
            return Ok(Within::Proven { luks, auxiliary: Vec::new() });
        }
        let inner = match &luks {
            None => Some(mapped.node.clone()),
            Some(_) => opened(mapped.above(self.host)).map(|open| open.node),
        };
        let Some(inner) = inner else {
            return Ok(Within::Not(
                "it is encrypted and not open, so its content cannot be read. Start its OSD first".to_owned(),
            ));
        };
        if let Some(what) = self.contradicted(&inner, names).await? {
            return Ok(Within::Not(what));
        }
        match self.auxiliary().await? {
            Ok(auxiliary) => Ok(Within::Proven { luks, auxiliary }),
            Err(what) => Ok(Within::Not(what)),
        }
    }

    /// Returns how the content of the volume differs from its tags.
    async fn contradicted(&self, node: &Path, names: Names) -> Result<Option<String>, NodeError> {
        let found = if self.lv.ceph.kind.as_deref() == Some("data") {
            let kind = table::signature(node).await?.kind.unwrap_or_default();
            let (node, scratch) = (node.to_owned(), self.host.scratch.clone());
            let read = move || files::read(&node, &kind, &scratch, Sharing::WithTheDaemon);
            let files = blocking("read", self.lv.named(), QUICK, read).await?;
            Some((files.osd_fsid, Some(files.whoami), Some(files.cluster)))
        } else {
            let label = label_on(node).await?;
            label.map(|label: label::Label| (label.osd_fsid, label.whoami, label.cluster))
        };
        Ok(match found {
            None => Some("it carries no BlueStore label".to_owned()),
            Some((fsid, whoami, cluster)) => {
                let agrees = fsid == names.0
                    && whoami.is_none_or(|id| id == names.1)
                    && cluster.is_none_or(|cluster| cluster == names.2);
                (!agrees).then(|| format!("it carries OSD {fsid}"))
            }
        })
    }

    /// Returns the OSD's other parts, each found by the uuid that the tags name; a sentence if one does not
    /// exist.
    async fn auxiliary(&self) -> Result<Result<Vec<Piece>, String>, NodeError> {
        let mut pieces = Vec::new();
        for (role, uuid) in &self.lv.ceph.auxiliary {
            let found = self.all.iter().find(|lv| lv.uuid == *uuid);
            let place = match found {
                Some(lv) => match location(lv, *role, (self.all, self.segments), self.request) {
                    Ok(place) => place,
                    Err(why) => return Ok(Err(why)),
                },
                None => match self.partition(*role, uuid).await? {
                    Ok(place) => place,
                    Err(why) => return Ok(Err(why)),
                },
            };
            pieces.push(Piece { role: *role, place });
        }
        Ok(Ok(pieces))
    }

    /// Returns the partition that is one of the OSD's parts, proven like every such part; a sentence if it
    /// can't be proven.
    async fn partition(
        &self,
        role: Role,
        part_uuid: &str,
    ) -> Result<Result<PieceLocation, String>, NodeError> {
        let Some(part) = partition(self.host, part_uuid).await? else {
            return Ok(Err(format!("its {role} {part_uuid} was not found on this node")));
        };
        if self.lv.ceph.encrypted {
            return Ok(Err(format!(
                "its {role} is an encrypted partition, {}, which is not supported yet",
                part.described()
            )));
        }
        Ok(match pieces::on_device(&part, role, self.request.old).await? {
            PieceSeen::Old => Ok(PieceLocation::Device(part.identity)),
            other @ (PieceSeen::Blank | PieceSeen::Ours | PieceSeen::Other(_) | PieceSeen::Missing) => {
                Err(format!("its {role}, the partition {}, carries {other}", part.described()))
            }
        })
    }
}

enum Within {
    Proven {
        luks: Option<String>,
        auxiliary: Vec<Piece>,
    },
    /// The reason against a proof.
    Not(String),
}

fn kind_of(lv: &Lv) -> Kind {
    match (lv.ceph.kind.as_deref(), lv.ceph.encrypted) {
        (Some("data"), _) => Kind::FilestoreLvm,
        (_, true) => Kind::LvmCrypt,
        (_, false) => Kind::Lvm,
    }
}

fn recorded_header(evidence: Option<&Evidence>) -> Option<String> {
    match evidence.map(|evidence| &evidence.proof) {
        Some(Proof::Volume { luks, .. }) => luks.clone(),
        Some(_) | None => None,
    }
}

/// Returns the partition with that unique id.
async fn partition(host: &Host, part_uuid: &str) -> Result<Option<Disk>, NodeError> {
    let wanted = format!("{PART_UUID}{}", part_uuid.to_ascii_lowercase());
    let devices = pieces::devices(host).await?;
    Ok(devices.into_iter().find(|device| device.identity.wwn.as_deref() == Some(wanted.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::disk::tombstone::Tombstone;
    use crate::node::samples::request;
    use crate::node::volumes::lvm::{CephTags, Group};
    use crate::node::volumes::names::{cluster_tag, fsid_tag};

    fn lv(name: &str, tags: &[String]) -> Lv {
        Lv {
            origin: None,
            layout: String::new(),
            group: "both".into(),
            group_uuid: "G".into(),
            name: name.into(),
            uuid: name.into(),
            size_bytes: 1,
            tags: tags.to_vec(),
            cluster: None,
            ceph: CephTags::default(),
        }
    }

    fn physical(tags: &[String]) -> Physical {
        let segment = Segment {
            device: "/dev/sdb".into(),
            physical: "P".into(),
            group: Group { name: "both".into(), tags: tags.to_vec() },
            group_uuid: "G".into(),
            volume: None,
        };
        Physical::of("P", &[segment]).unwrap()
    }

    /// Checks that at every instant between the old volume and the finished new one, something identifies the
    /// OSD.
    #[test]
    fn removed_lv_is_identified_by_its_tombstone_or_the_new_lv() {
        let request = request("n1");
        let tombstone = [tombstone::tag(&Tombstone::of(&request))];
        let new: OsdFsid = "99999999-0000-4000-8000-000000000000".parse().unwrap();
        let of_new = [osd_tag(request.osd), fsid_tag(new), cluster_tag(request.cluster)];
        let neighbour = lv("data-7", &[]);
        let examine = gone(&physical(&tombstone), &[&neighbour], &request);
        assert_eq!(examine.content, Tombstone::of(&request).into_content());
        let volume_of_new = lv(&block(new), &of_new);
        for tags in [&tombstone[..], &[]] {
            let examine = gone(&physical(tags), &[&neighbour, &volume_of_new], &request);
            assert_eq!((examine.about, examine.proof), (Some(new), None), "{tags:?}");
        }
        // Another OSD's volume in the same group, or a volume with a changed name: osd-migrate does not judge
        // it.
        let mut other = request.clone();
        other.osd = OsdId(9);
        for (request, volume) in [(&other, &volume_of_new), (&request, &lv("osd-block-x", &of_new))] {
            let examine = gone(&physical(&[]), &[&neighbour, volume], request);
            assert!(
                matches!(examine.content, Content::Other { .. }) && examine.about.is_none(),
                "{examine:?}"
            );
        }
    }

    #[test]
    fn lv_kind_is_read_from_its_tags() {
        let with = |kind: &str, encrypted: bool| {
            let ceph = CephTags { kind: Some(kind.to_owned()), encrypted, ..CephTags::default() };
            kind_of(&Lv { ceph, ..lv("x", &[]) })
        };
        assert_eq!(with("block", false), Kind::Lvm);
        assert_eq!(with("block", true), Kind::LvmCrypt);
        assert_eq!((with("data", false), with("data", true)), (Kind::FilestoreLvm, Kind::FilestoreLvm));
    }
}
