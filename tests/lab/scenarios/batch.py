"""OSDs of one host in parallel (`--in-parallel`), after one of them alone, under a client's load, with kills.

A PG never lacks more than one replica, OSDs of one host only are down together, and all objects are equal. Then, on two
other releases of Ceph and with an erasure-coded pool, one of two OSDs in parallel does not start.
"""
import json
import random

from . import kills, sick
from .forecast import HOLE
from .replicas import Background, entries

HOST = [0, 3, 6, 9]  # OSDs of h1
# Three of twelve OSDs have about a quarter of the data.
RUN = ["run", "--confirm", "yes-really-migrate-osds", "--in-parallel", "35%", "--soak", "10s"]
HOST_OF_FOUR = [0, 4, 8, 12]  # OSDs of h1, if there are four hosts
FAILS, GOES_ON, LAST = HOST_OF_FOUR[1:]
RUN_WITH_TWO = ["run", "--confirm", "yes-really-migrate-osds", "--in-parallel", "2", "--soak", "10s", "--start-limit", "45s"]
HALTED, QUARANTINED = 10, 11


# The Job replaces a pod itself, so that it stays the same run.
KINDS = {
    "agent": kills.KINDS["agent"],
    "process": kills.KINDS["runner process"],
    "pod": kills.KINDS["runner pod"],
}


def moments(chance):
    """Returns kills while several OSDs are in progress."""
    osds, phases = HOST[1:], ["stopping", "rebuilding", "settling"]
    found = [(osd, phase, chance.uniform(0, 2), kind) for osd, phase, kind in zip(osds, phases, KINDS)]
    return chance.sample(found, 2)


class Down(Background):
    """A thread that reads which OSDs are down, and how many replicas PGs lack, several times a second."""

    def __init__(self):
        super().__init__()
        self.down, self.lacking, self.samples, self.trouble = set(), 0, 0, None

    def run(self):
        try:
            while not self.ended.wait(0.2):
                down, lacks, _ = down_and_lacking(self.session)
                self.down.add(down)
                self.lacking = max(self.lacking, lacks)
                self.samples += 1
        except Exception as why:  # noqa: BLE001 - the scenario reports it
            self.trouble = why


def down_and_lacking(session):
    """Returns the OSDs that are down, the most replicas that a PG lacks, and the PGs."""
    dump = session.read("osd dump")
    sizes = {str(pool["pool"]): pool["size"] for pool in dump["pools"]}
    pgs = entries(session.read("pg dump", "mgr", dumpcontents=["pgs"]))
    down = frozenset(slot["osd"] for slot in dump["osds"] if not slot["up"])
    return down, max(lacking(pg, sizes) for pg in pgs), pgs


def lacking(pg, sizes):
    """Returns the number of missing replicas, or chunks, of a PG."""
    pool, _ = pg["pgid"].split(".")
    return sizes.get(pool, 0) - sum(osd != HOLE for osd in pg["acting"])


def run(world):
    under_load_and_kills(world)
    for release in ("18.2", "20.2"):
        world.down_completely()
        one_does_not_start(world, release)


def under_load_and_kills(world):
    world.up(osds=12, layout=",".join(f"{osd}=bluestore-dev" for osd in HOST))
    world.lab("write", "400")
    world.lab("client", "start")
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    with Down() as watch:
        kills.spread(world, moments(random.Random(world.seed)), "batch", RUN, KINDS)
    expect_one_lacks(world, watch, HOST, 3)
    world.expect_migrated(before, fsids, HOST)
    world.expect_downs_on_one_host(epoch)
    first_alone(world)
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    world.say(f"client: {client}")
    assert client["ops"] > 100 and not client["failed"] and not client["slow"], client


def first_alone(world):
    """Checks that the first OSD was done before the second was recorded, and that the others were parallel."""
    spans = {}
    for entry in world.closed():
        spans[entry["osd"]] = (entry["milestones"][0][1], entry["milestones"][-1][1])
    (_, first_end), *others = sorted(spans.values())
    assert all(begun > first_end for begun, _ in others), spans
    overlaps = [a for a in others for b in others if a < b and b[0] < a[1]]
    world.say("; ".join(f"osd.{osd}: {begun[11:19]} to {end[11:19]}" for osd, (begun, end) in sorted(spans.items())))
    assert overlaps, f"no OSDs were in progress together: {spans}"


def expect_one_lacks(world, watch, host, most):
    """Checks that several OSDs of the host were down together, and that no PG lacked more than one replica."""
    assert not watch.trouble, f"the statistics were not read: {watch.trouble}"
    together = max(watch.down, key=len)
    world.say(f"{watch.samples} samples: at most {sorted(together)} were down together; a PG lacked {watch.lacking} replica")
    assert 2 <= len(together) <= most and together <= set(host), sorted(map(sorted, watch.down))
    assert watch.lacking == 1, f"a PG lacked {watch.lacking} replicas"


def one_does_not_start(world, release):
    """Checks that an OSD that does not start is quarantined, that the other is finished, and that no further one is stopped."""
    world.up(osds=16, hosts=4, layout=",".join(f"{osd}=bluestore-dev" for osd in HOST_OF_FOUR), release=release)
    coded_pool(world)
    world.lab("write", "200")
    before, fsids = world.shape(), world.fsids()
    sick.refuse_pods(world, FAILS)
    with Down() as watch:
        job = world.start("one-fails", RUN_WITH_TWO)
        result = world.wait_for(job, 600)
    log = world.log(job)
    expect_one_lacks(world, watch, HOST_OF_FOUR, 2)
    changed = {osd for osd, fsid in world.fsids().items() if fsid != fsids[osd]}
    assert {HOST_OF_FOUR[0], FAILS, GOES_ON} <= changed <= {*HOST_OF_FOUR}, (changed, log)
    # If the last one was stopped before the quarantine, it is finished, and only the quarantined one is left.
    assert result == ("Failed", QUARANTINED if LAST in changed else HALTED), (result, log)
    quarantine = world.records()[FAILS]["quarantine"]
    assert f"no pod of osd.{FAILS} in this namespace" in quarantine["why"], quarantine
    stops = [time for entry in world.closed() if entry["osd"] == LAST for code, time in entry["milestones"] if code == "stop"]
    assert all(time < quarantine["since"] for time in stops), (stops, quarantine, log)
    world.say(f"Ceph {release}: osd.{FAILS} is quarantined: {quarantine['why'][:200]}; recreated: {sorted(changed)}")
    sick.admit_again(world)
    world.until(f"osd.{FAILS} to be up", 300, lambda: sick.slot(world, FAILS)["up"])  # a ReplicaSet tries again later and later
    world.command("retry", f"osd.{FAILS}")
    job = world.start("again", RUN_WITH_TWO)
    assert world.wait_for(job, 600) == ("Complete", 0), world.log(job)
    world.expect_migrated(before, fsids, HOST_OF_FOUR)


def coded_pool(world):
    """Creates a pool that keeps its data if two of four hosts are lost."""
    profile = ["k=2", "m=2", "crush-failure-domain=host"]
    world.lab("ceph", "osd", "erasure-code-profile", "set", "k2m2", *profile)
    world.lab("ceph", "osd", "pool", "create", "coded", "16", "16", "erasure", "k2m2")
    world.lab("ceph", "osd", "pool", "application", "enable", "coded", "test")
    world.lab("ceph", "osd", "pool", "set", "coded", "pg_autoscale_mode", "off")
    world.lab("wait-clean", "120")
