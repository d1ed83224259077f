//! `ceph osd crush add`, `set-device-class`, `osd reweight`, `osd primary-affinity`: restores what a purge
//! lost. It also sends `osd crush reweight` if the weight follows the size of another device.
//!
//! `osd reweight` clears the flag `new` of a slot that never booted (16.2.15), so that its first boot keeps
//! the reweight.

use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::ceph::session::Ceph;
use crate::ceph::{flags, osd_crush_dump, osd_dump, removal};
use crate::domain::expect::{self, Lost};
use crate::domain::observation::Slot;
use crate::domain::osd::{CrushItem, OsdId, Weight};

const NAME: &str = "osd crush add";

/// Returns the commands still to be sent, in order, or an error text if the item is elsewhere by now.
///
/// The item comes last, then its class. If both exist, everything is restored, and later external changes
/// stay.
fn missing(
    osd: OsdId,
    wanted: (&CrushItem, Option<Weight>, Weight, Weight),
    slot: &Slot,
    found: Option<&CrushItem>,
) -> Result<Vec<Command>, String> {
    let (item, former, reweight, affinity) = wanted;
    let mut commands = Vec::new();
    match expect::to_restore(item, former, found)
        .map_err(|found| format!("an item at {}", place(found).join(" ")))?
    {
        Lost::Item => {
            if slot.reweight != reweight {
                commands.push(flags::reweigh(osd, reweight));
            }
            if slot.primary_affinity != affinity {
                commands.push(weigh("osd primary-affinity", osd, affinity));
            }
            commands.push(add(osd, item));
        }
        Lost::Class => {}
        Lost::Weight => {
            return Ok(vec![removal::reweight(osd, item.weight)]);
        }
        Lost::Nothing => return Ok(commands),
    }
    if let Some(class) = &item.device_class {
        let set = Command::mon("osd crush set-device-class");
        commands.push(set.with("class", class.as_str()).with("ids", ids(osd)));
    }
    Ok(commands)
}

fn add(osd: OsdId, item: &CrushItem) -> Command {
    weigh(NAME, osd, item.weight).with("args", place(item))
}

fn weigh(name: &'static str, osd: OsdId, weight: Weight) -> Command {
    Command::mon(name).with("id", osd.0).with("weight", weight.as_decimal())
}

fn ids(osd: OsdId) -> Vec<String> {
    vec![osd.to_string()]
}

fn place(item: &CrushItem) -> Vec<String> {
    item.location.iter().map(|(kind, name)| format!("{kind}={name}")).collect()
}

impl Ceph {
    /// Returns a slot with its CRUSH item.
    pub(super) async fn slot_in_crush(&self, osd: OsdId) -> Result<Option<Slot>, CephError> {
        let Some(slot) = self.slot(osd).await? else { return Ok(None) };
        let mut crush = self.read(osd_crush_dump::command(), osd_crush_dump::parse).await?;
        Ok(Some(Slot { crush: crush.items.remove(&osd), ..slot }))
    }

    /// Restores reweight, affinity, the item and its class if the item is gone.
    ///
    /// Gives an existing item with its `former` weight the new weight.
    ///
    /// A repeated call after a crash continues. An item at another place was moved externally: nothing is
    /// sent. The id must exist.
    pub async fn restore_crush(
        &self,
        osd: OsdId,
        item: &CrushItem,
        former: Option<Weight>,
        reweight: Weight,
        primary_affinity: Weight,
    ) -> Result<(), CephError> {
        let unexpected =
            |expected: String, found: String| CephError::Unexpected { command: NAME, osd, expected, found };
        let Some(slot) = self.slot(osd).await? else {
            return Err(unexpected("a slot".to_owned(), osd_dump::describe(None)));
        };
        let crush = self.read(osd_crush_dump::command(), osd_crush_dump::parse).await?;
        let wanted = (item, former, reweight, primary_affinity);
        let commands = missing(osd, wanted, &slot, crush.items.get(&osd))
            .map_err(|found| unexpected(format!("no item, or one at {}", place(item).join(" ")), found))?;
        for command in commands {
            self.act(osd, command).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Weight = Weight(0x8000);

    fn names(
        found: Option<&CrushItem>,
        reweight: Weight,
        affinity: Weight,
    ) -> Result<Vec<&'static str>, String> {
        let slot = osd_dump::tests::fine().slots[&OsdId(1)].clone();
        let item = osd_crush_dump::tests::fine().items[&OsdId(1)].clone();
        let commands = missing(OsdId(1), (&item, None, reweight, affinity), &slot, found)?;
        Ok(commands.into_iter().map(|command| command.name).collect())
    }

    #[test]
    fn purged_osd_gets_crush_item_class_and_weights_restored() {
        let all = ["osd reweight", "osd primary-affinity", "osd crush add", "osd crush set-device-class"];
        assert_eq!(names(None, Weight(58982), HALF), Ok(all.to_vec()));
    }

    #[test]
    fn crush_restore_resumes_after_a_crash_and_is_idempotent() {
        let whole = osd_crush_dump::tests::fine().items[&OsdId(1)].clone();
        let added = CrushItem { device_class: None, ..whole.clone() };
        assert_eq!(names(Some(&added), Weight::ONE, HALF), Ok(vec!["osd crush set-device-class"]));
        assert_eq!(names(Some(&whole), Weight::ONE, HALF), Ok(vec![]), "what others changed since is theirs");
    }

    #[test]
    fn crush_item_moved_externally_is_not_replaced() {
        let moved = osd_crush_dump::tests::fine().items[&OsdId(2)].clone();
        assert_eq!(names(Some(&moved), HALF, HALF), Err("an item at host=h3 root=default".to_owned()));
    }

    #[test]
    fn crush_weight_is_replaced_only_if_it_is_the_former_one() {
        let slot = osd_dump::tests::fine().slots[&OsdId(1)].clone();
        let found = osd_crush_dump::tests::fine().items[&OsdId(1)].clone();
        let wanted = CrushItem { weight: HALF, ..found.clone() };
        let sent = |former: Option<Weight>, found: &CrushItem| {
            let commands = missing(OsdId(1), (&wanted, former, HALF, HALF), &slot, Some(found)).unwrap();
            let text = |command: &Command| command.to_c_string().into_string().unwrap();
            commands.iter().map(text).collect::<Vec<_>>()
        };
        let reweigh = sent(Some(found.weight), &found);
        assert_eq!(reweigh.len(), 1);
        assert!(reweigh[0].contains(r#""prefix":"osd crush reweight""#), "{reweigh:?}");
        assert!(
            reweigh[0].contains(r#""name":"osd.1""#) && reweigh[0].contains(r#""weight":0.5"#),
            "{reweigh:?}"
        );
        assert!(sent(Some(found.weight), &wanted).is_empty(), "done already");
        let other = Weight(found.weight.0 + 1);
        assert!(sent(Some(other), &found).is_empty(), "others set it");
        assert!(sent(None, &found).is_empty(), "no other weight is recorded");
    }

    #[test]
    fn crush_weight_is_sent_as_an_exact_decimal() {
        let item =
            CrushItem { weight: Weight(58982), ..osd_crush_dump::tests::fine().items[&OsdId(1)].clone() };
        let sent = add(OsdId(1), &item).to_c_string().into_string().unwrap();
        assert!(sent.contains(r#""weight":0.899993896484375"#), "{sent}");
        assert!(sent.contains(r#""args":["host=h2","root=default"]"#), "{sent}");
    }
}
