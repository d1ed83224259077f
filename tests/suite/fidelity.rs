//! The simulated cluster, compared with a real one.
//!
//! The test plays `fixtures/fidelity/*.txt` and compares each answer with the committed one.
//! `tests/lab/scenarios/fidelity.py` plays the same lines on real Ceph, so both equal one committed truth.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::{CrushItem, Epoch, OsdFsid, OsdId, PgId, Upmap, Weight};
use osd_migrate::sim::example::{self, Kind, PoolShape, Shape};
use osd_migrate::sim::{Happening, MonError, World};

/// Ids of the lab's OSDs: on a host those with the same remainder by 3.
///
/// An example counts host by host.
const IDS: [u32; 6] = [0, 2, 4, 1, 3, 5];

#[test]
fn simulated_cluster_answers_as_ceph_16_does() {
    let scripts = [
        ("slot.txt", include_str!("fixtures/fidelity/slot.txt")),
        ("removal.txt", include_str!("fixtures/fidelity/removal.txt")),
    ];
    let (mut checks, mut wrong) = (0, String::new());
    for (name, text) in scripts {
        let mut player = Player::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (step, written) = line.split_once(" = ").unwrap_or((line, "ok"));
            let found = player.play(step);
            checks += 1;
            if found != written.trim() {
                writeln!(wrong, "{name}:{}: `{step}`: written `{written}`, found `{found}`", number + 1)
                    .unwrap();
            }
            player.check();
        }
    }
    assert!(wrong.is_empty(), "answers of the simulated cluster are not as written:\n{wrong}");
    assert!(checks >= 40, "only {checks} checks");
}

struct Player {
    world: World,
    /// Fsids by their letters.
    letters: BTreeMap<String, OsdFsid>,
    states: BTreeSet<String>,
    /// PGs that still count on an OSD in a report created while it was down.
    lied: Vec<PgId>,
}

fn id(text: &str) -> OsdId {
    let number: u32 = text.parse().unwrap();
    OsdId(IDS.get(number as usize).copied().unwrap_or(number))
}

/// Returns the script's number of an OSD.
fn number(osd: OsdId) -> u32 {
    IDS.iter().position(|id| *id == osd.0).map_or(osd.0, |at| u32::try_from(at).unwrap())
}

fn said(result: Result<(), MonError>) -> String {
    result.map_or_else(|error| error.to_string().split(':').next().unwrap().to_owned(), |()| "ok".to_owned())
}

fn yes(is_yes: bool) -> String {
    if is_yes { "yes" } else { "no" }.to_owned()
}

/// Formats a weight: five digits distinguish any two weights, since Ceph counts in parts of 65536.
fn weight(weight: Weight) -> String {
    let text = format!("{:.5}", f64::from(weight.0) / 65_536.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parses a weight as Ceph does, which cuts off what is less than a part.
fn parsed(text: &str) -> Weight {
    let whole = Weight::from_decimal(text.parse().unwrap());
    let is_more = f64::from(whole.0) / 65_536.0 > text.parse().unwrap();
    Weight(whole.0 - u32::from(is_more))
}

impl Player {
    fn new() -> Self {
        let pool = PoolShape { pgs: 12, size: 3, min_size: 2, data_chunks: None, gib: 1 };
        let shape = Shape { hosts: vec![vec![Kind::Raw; 2]; 3], pools: vec![pool], disk_gib: 6 };
        let mut world = shape.world();
        for slot in world.ceph.slots.values_mut() {
            slot.reweight = Weight::ONE;
        }
        // Without weight, an OSD is replaced by the other one on its host.
        for placement in world.placements.values_mut() {
            placement.spare = placement.home.iter().map(|osd| OsdId(osd.0 ^ 1)).collect();
        }
        let letters = (0..6).map(|osd| (format!("old-{osd}"), example::fsid(id(&osd.to_string()), 0)));
        Self { letters: letters.collect(), world, states: BTreeSet::new(), lied: Vec::new() }
    }

    fn fsid(&mut self, letter: &str) -> OsdFsid {
        let next = u32::try_from(self.letters.len()).unwrap();
        *self.letters.entry(letter.to_owned()).or_insert_with(|| example::fsid(OsdId(77), next))
    }

    fn play(&mut self, step: &str) -> String {
        let words: Vec<&str> = step.split_whitespace().collect();
        let ok = "ok".to_owned();
        match words[..] {
            ["look", what, ref rest @ ..] => return self.observe(what, rest),
            ["destroy", osd] => return said(self.world.osd_destroy(id(osd))),
            ["new", letter, osd] => {
                let fsid = self.fsid(letter);
                return said(self.world.osd_new(fsid, id(osd), true));
            }
            ["register", letter, osd] => {
                let fsid = self.fsid(letter);
                return said(self.world.osd_new(fsid, id(osd), false));
            }
            ["new-anywhere", letter] => {
                let fsid = self.fsid(letter);
                return format!("osd.{}", number(self.world.osd_new_anywhere(fsid)));
            }
            ["purge", osd] => return said(self.world.osd_purge(id(osd))),
            ["crush-rm", host] => return said(self.world.crush_rm(host)),
            ["crush-reweight", osd, to] => self.world.crush_reweight(id(osd), parsed(to)),
            ["purge-new", osd] => return said(self.world.osd_purge_new(id(osd))),
            ["set-group", flags, osd] => self.flags(flags, osd, true),
            ["unset-group", flags, osd] => self.flags(flags, osd, false),
            ["reweight", osd, to] => self.world.osd_reweight(id(osd), parsed(to)),
            ["affinity", osd, to] => self.world.primary_affinity(id(osd), parsed(to)),
            ["out", osd] => self.world.osd_out(id(osd)),
            ["mark-in", osd] => self.world.osd_in(id(osd)),
            ["crush-add", osd, to] => {
                let class = self.item(id(osd)).and_then(|item| item.device_class);
                self.place(id(osd), parsed(to), class);
            }
            ["set-class", osd, class] => {
                let weight = self.item(id(osd)).unwrap().weight;
                self.place(id(osd), weight, Some(class.to_owned()));
            }
            ["upmap", from, to] => {
                let (from, to) = (id(from), id(to));
                let held = |pg: &&PgId| self.world.up_set(pg).contains(&from);
                let pg = *self.world.placements.keys().find(held).unwrap();
                self.world.ceph.upmaps.push(Upmap { pg, mappings: vec![(from, to)] });
            }
            ["ok-to-stop", ref osds @ ..] => {
                let osds = osds.iter().map(|osd| id(osd)).collect();
                return yes(self.world.ok_to_stop(&osds).ok);
            }
            ["safe-to-destroy", osd] => return yes(self.world.safe_to_destroy(id(osd))),
            ["stop", osd] => self.world.osd_down(id(osd)),
            ["boot" | "start", osd] => {
                let store = self.letters[&format!("old-{osd}")];
                let up = self.world.osd_boot(id(osd), store);
                return if up { "up" } else { "turned-away" }.to_owned();
            }
            ["hear", _] => self.progress(|what| matches!(what, Happening::PgReports(_) | Happening::Peer(_))),
            ["settle"] => self.progress(|what| {
                matches!(what, Happening::PgReports(_) | Happening::Peer(_) | Happening::Fill(..))
            }),
            _ => panic!("no such step: {step}"),
        }
        ok
    }

    fn flags(&mut self, flags: &str, osd: &str, on: bool) {
        let named = |flag| flags.split(',').any(|word| word == flag).then_some(on);
        self.world.osd_flags(id(osd), named("noout"), named("noin"));
    }

    fn item(&self, osd: OsdId) -> Option<CrushItem> {
        self.world.ceph.slots.get(&osd)?.crush.clone()
    }

    fn place(&mut self, osd: OsdId, weight: Weight, device_class: Option<String>) {
        let location = [("root", "default".to_owned()), ("host", host(osd))];
        let location = location.map(|(kind, name)| (kind.to_owned(), name)).into();
        self.world.crush_add(osd, &CrushItem { location, weight, device_class });
    }

    fn progress(&mut self, is_meant: fn(&Happening) -> bool) {
        while let Some(next) = self.world.progress().into_iter().find(is_meant) {
            self.world.happen(&next);
            self.check();
        }
    }

    /// Asserts what must be true after every step.
    fn check(&mut self) {
        let World { ceph, marked_new, .. } = &self.world;
        for (id, pg) in &ceph.pgs {
            self.states.extend(pg.state.iter().cloned());
            // The slot of an id that was purged and re-registered has no epoch.
            let is_down =
                |osd: &OsdId| ceph.slots.get(osd).filter(|slot| !slot.up && slot.down_at > Epoch(0));
            let mut down = pg.acting.iter().filter_map(is_down);
            if down.any(|slot| pg.reported_epoch >= slot.down_at) {
                self.lied.push(*id);
            }
        }
        for (osd, slot) in &ceph.slots {
            // As `ceph::osd_dump` reads the same facts from real answers.
            let never_up = !slot.up && (marked_new.contains(osd) || slot.up_from == Epoch(0));
            let read = if never_up { SlotState::New } else { SlotState::Exists };
            assert!(slot.state == SlotState::Destroyed || slot.state == read, "{osd} is {:?}", slot.state);
        }
    }

    fn observe(&mut self, what: &str, rest: &[&str]) -> String {
        match (what, rest) {
            ("slot", [osd]) => self.slot(id(osd)),
            ("auth", [osd]) => {
                let has_key = self.world.ceph.auth.get(&id(osd)).copied().unwrap_or(false);
                if has_key { "ok" } else { "ENOENT" }.to_owned()
            }
            ("crush", [osd]) => self.item(id(osd)).map_or_else(
                || "none".to_owned(),
                |item| {
                    let at = &item.location["host"];
                    let at = if *at == host(id(osd)) { "its-host" } else { at };
                    let class = item.device_class.as_deref().unwrap_or("no-class");
                    format!("{at} {} {class}", weight(item.weight))
                },
            ),
            ("host", [name]) => self.items_of(name).to_owned(),
            ("upmaps", [osd]) => {
                let mappings = self.world.ceph.upmaps.iter().flat_map(|upmap| &upmap.mappings);
                let of = mappings.filter(|(from, to)| [*from, *to].contains(&id(osd)));
                let pairs: Vec<String> =
                    of.map(|(from, to)| format!("{}>{}", number(*from), number(*to))).collect();
                if pairs.is_empty() { "none".to_owned() } else { pairs.join(" ") }
            }
            ("statistics", []) => match self.lied.first() {
                None => "epochs-tell".to_owned(),
                Some(pg) => format!("a report too young: {pg}"),
            },
            ("states", known) => {
                let other: Vec<&str> =
                    self.states.iter().map(String::as_str).filter(|state| !known.contains(state)).collect();
                if other.is_empty() { "none-else".to_owned() } else { other.join(" ") }
            }
            _ => panic!("no such look: {what}"),
        }
    }

    fn items_of(&self, name: &str) -> &'static str {
        let is_on = |item: &CrushItem| item.host().is_some_and(|host| host == name);
        let has_items = self.world.ceph.slots.values().any(|slot| slot.crush.as_ref().is_some_and(is_on));
        match (has_items, self.world.ceph.empty_hosts.contains(name)) {
            (true, _) => "items",
            (false, true) => "empty",
            (false, false) => "none",
        }
    }

    fn slot(&self, osd: OsdId) -> String {
        let Some(slot) = self.world.ceph.slots.get(&osd) else { return "absent".to_owned() };
        let letter =
            |fsid: OsdFsid| self.letters.iter().find(|(_, known)| **known == fsid).unwrap().0.clone();
        let mut states = match slot.state {
            SlotState::Destroyed => "destroyed+exists".to_owned(),
            SlotState::New | SlotState::Exists => "exists".to_owned(),
        };
        if self.world.marked_new.contains(&osd) {
            states.push_str("+new");
        }
        let mut facts = vec![
            states,
            slot.fsid.map_or("none".to_owned(), letter),
            if slot.up { "up" } else { "down" }.to_owned(),
            if slot.is_in { "in" } else { "out" }.to_owned(),
            weight(slot.reweight),
            weight(slot.primary_affinity),
        ];
        let flags = [(slot.noout, "noout"), (slot.noin, "noin"), (slot.up_from == Epoch(0), "never-up")];
        facts.extend(flags.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.to_owned()));
        facts.join(" ")
    }
}

/// Returns the host of an OSD in the example: two on each.
fn host(osd: OsdId) -> String {
    format!("h{}", osd.0 / 2 + 1)
}
