//! A cluster of any size, generated from a seed: its hosts, OSDs, pools and PGs, and the faults of some of
//! them.

use std::collections::BTreeMap;

/// A release of Ceph, as its daemons print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Release {
    /// `ceph_version_short`
    pub(crate) number: &'static str,
    /// `ceph_release`
    pub(crate) name: &'static str,
    /// `ceph_version`
    pub(crate) long: &'static str,
}

pub(crate) const PACIFIC: Release = Release {
    number: "16.2.15",
    name: "pacific",
    long: "ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)",
};
pub(crate) const REEF: Release = Release {
    number: "18.2.7",
    name: "reef",
    long: "ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)",
};
pub(crate) const TENTACLE: Release = Release {
    number: "20.2.4",
    name: "tentacle",
    long: "ceph version 20.2.4 (7f793731f1b39eb4f465e960113d2363c311b964) tentacle (stable - RelWithDebInfo)",
};

/// Layout of an OSD on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layout {
    /// Filestore on ceph-disk's partitions.
    Filestore,
    /// BlueStore on a whole disk, started without ceph-volume.
    ByHand,
    /// `ceph-volume raw` on a whole disk.
    Raw,
    /// `ceph-volume raw` on a virtio disk without a serial number: Ceph knows a path and no id.
    NoSerial,
    /// `ceph-volume raw` on a multipath device.
    Multipath,
    /// `ceph-volume raw` on a dm-crypt device that the host opens (crypttab, clevis).
    HostLuks,
    /// `ceph-volume lvm`
    Lvm,
    /// `ceph-volume lvm --dmcrypt`
    LvmCrypt,
}

/// State of an OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// up and in
    Up,
    /// Down and out: the disk died, and the data is elsewhere.
    Dead,
    /// Down and in, temporarily: the node is away.
    Down,
    /// Created and never booted: the OSD has no metadata.
    NeverBooted,
}

#[derive(Debug, Clone)]
pub(crate) struct Osd {
    pub(crate) id: u32,
    pub(crate) host: usize,
    /// Number of the OSD's disk on the host.
    pub(crate) disk: u32,
    pub(crate) layout: Layout,
    pub(crate) state: State,
}

#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) rack: String,
    pub(crate) ready: bool,
    pub(crate) cordoned: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
    pub(crate) size: u32,
    pub(crate) min_size: u32,
    /// k of k+m = size; none if the pool is replicated.
    pub(crate) data_chunks: Option<u32>,
    pub(crate) pgs: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Pg {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) up: Vec<u32>,
    pub(crate) acting: Vec<u32>,
    pub(crate) objects: u64,
    pub(crate) misplaced: u64,
    pub(crate) degraded: u64,
}

/// Size of an object in bytes, as RBD creates them.
pub(crate) const OBJECT: u64 = 4 << 20;

#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(crate) release: Release,
    pub(crate) hosts: Vec<Host>,
    pub(crate) osds: Vec<Osd>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) pgs: Vec<Pg>,
    /// PG, from, to.
    pub(crate) upmaps: Vec<(String, u32, u32)>,
    /// Codes of `health`.
    pub(crate) health: Vec<&'static str>,
    pub(crate) random: Random,
}

/// A splitmix64 generator: the same numbers on each computer and with each version of each crate.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

impl Cluster {
    /// Returns hosts with `osds` OSDs each, all raw, up and in, without pools.
    pub(crate) fn new(release: Release, seed: u64, hosts: u32, osds: u32) -> Self {
        let host = |number: u32| Host {
            name: format!("storage-{number:04}"),
            rack: format!("rack-{:02}", number / 8),
            ready: true,
            cordoned: false,
        };
        let osd = |id: u32| Osd {
            id,
            host: usize::try_from(id / osds).unwrap(),
            disk: id % osds,
            layout: Layout::Raw,
            state: State::Up,
        };
        Self {
            release,
            hosts: (0..hosts).map(host).collect(),
            osds: (0..hosts * osds).map(osd).collect(),
            pools: Vec::new(),
            pgs: Vec::new(),
            upmaps: Vec::new(),
            health: Vec::new(),
            random: Random(seed),
        }
    }

    /// Sets the layout of each OSD to what `of` returns.
    #[must_use]
    pub(crate) fn layout(mut self, of: impl Fn(&Osd) -> Layout) -> Self {
        for osd in &mut self.osds {
            osd.layout = of(osd);
        }
        self
    }

    #[must_use]
    pub(crate) fn state(mut self, osds: &[u32], state: State) -> Self {
        for id in osds {
            self.osds[usize::try_from(*id).unwrap()].state = state;
        }
        self
    }

    #[must_use]
    pub(crate) fn host(mut self, number: usize, change: impl FnOnce(&mut Host)) -> Self {
        change(&mut self.hosts[number]);
        self
    }

    #[must_use]
    pub(crate) fn health(mut self, codes: &[&'static str]) -> Self {
        self.health.extend(codes);
        self
    }

    /// Adds a pool whose copies are on different hosts, on OSDs that are in.
    ///
    /// Copies on OSDs that are down are missing.
    #[must_use]
    pub(crate) fn pool(self, pool: Pool) -> Self {
        self.pool_on(pool, |_| true)
    }

    /// Adds a pool on the OSDs that `is_one` chooses, as a rule with a device class does.
    #[must_use]
    pub(crate) fn pool_on(mut self, pool: Pool, is_one: impl Fn(&Osd) -> bool) -> Self {
        let mut by_host: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for osd in self.osds.iter().filter(|osd| is_one(osd)) {
            if matches!(osd.state, State::Up | State::Down) {
                by_host.entry(osd.host).or_default().push(osd.id);
            }
        }
        let by_host: Vec<Vec<u32>> = by_host.into_values().collect();
        let size = usize::try_from(pool.size).unwrap();
        assert!(by_host.len() >= size, "too few hosts for {}", pool.name);
        for number in 0..pool.pgs {
            let mut hosts: Vec<usize> = (0..by_host.len()).collect();
            let mut up = Vec::new();
            for place in 0..size {
                let other = place + self.random.below(hosts.len() - place);
                hosts.swap(place, other);
                let osds = &by_host[hosts[place]];
                up.push(osds[self.random.below(osds.len())]);
            }
            let objects = 900 + self.random.next() % 200;
            up.retain(|osd| self.osds[usize::try_from(*osd).unwrap()].state == State::Up);
            let missing = u64::from(pool.size) - up.len() as u64;
            let state = if missing > 0 { "active+undersized+degraded" } else { "active+clean" };
            self.pgs.push(Pg {
                id: format!("{}.{number:x}", pool.id),
                state: state.to_owned(),
                acting: up.clone(),
                up,
                objects,
                misplaced: 0,
                degraded: missing * objects,
            });
        }
        self.pools.push(pool);
        self
    }

    /// Marks every `each`-th clean PG as scrubbing: one deep, one not.
    #[must_use]
    pub(crate) fn scrubbing(mut self, each: usize) -> Self {
        let clean = self.pgs.iter_mut().filter(|pg| pg.state == "active+clean");
        for (number, pg) in clean.step_by(each).enumerate() {
            let deep = if number % 2 == 0 { "+deep" } else { "" };
            pg.state = format!("active+clean+scrubbing{deep}");
        }
        self
    }

    /// Adds a balancer in progress: of every `each`-th PG an upmap moves a copy to another OSD of the same
    /// host.
    ///
    /// One of these PGs is backfilling; the others wait.
    #[must_use]
    pub(crate) fn balancing(mut self, each: usize) -> Self {
        let numbers: Vec<usize> = (0..self.pgs.len()).step_by(each).collect();
        for (number, at) in numbers.into_iter().enumerate() {
            let pg = &self.pgs[at];
            let from = pg.up[0];
            let host = self.osds[usize::try_from(from).unwrap()].host;
            let is_available = |osd: &&Osd| osd.host == host && osd.id != from && osd.state == State::Up;
            let Some(to) = self.osds.iter().find(is_available).map(|osd| osd.id) else { continue };
            let pg = &mut self.pgs[at];
            pg.up[0] = to;
            let word = if number % 4 == 0 { "backfilling" } else { "backfill_wait" };
            pg.state = format!("active+remapped+{word}");
            pg.misplaced = pg.objects / 2;
            self.upmaps.push((pg.id.clone(), from, to));
        }
        self
    }

    pub(crate) fn host_of(&self, osd: &Osd) -> &Host {
        &self.hosts[osd.host]
    }
}

/// Returns the fsid of an OSD.
pub(crate) fn fsid(osd: u32) -> String {
    format!("{osd:08x}-5ca1-4e00-8000-0000c0ffee00")
}

/// Fsid of the cluster.
pub(crate) const CLUSTER: &str = "c0a9b5e2-5ca1-4e00-8000-00000c0ffee0";

impl Osd {
    /// Returns the kernel's name of the disk below the OSD.
    pub(crate) fn kernel_name(&self) -> String {
        if self.layout == Layout::NoSerial {
            return format!("vd{}", letters(self.disk + 1));
        }
        format!("sd{}", letters(self.disk + 1)) // sda is the host's system
    }

    pub(crate) fn has_metadata(&self) -> bool {
        self.state != State::NeverBooted
    }
}

/// Returns `a`..`z`, `aa`..., the letters by which the kernel counts disks.
fn letters(number: u32) -> String {
    let letter = |n: u32| char::from(b'a' + u8::try_from(n % 26).unwrap());
    if number < 26 {
        letter(number).to_string()
    } else {
        format!("{}{}", letter(number / 26 - 1), letter(number))
    }
}
