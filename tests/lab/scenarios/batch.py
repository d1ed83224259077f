"""OSDs of one host in parallel (`--in-parallel 3`), after one of them alone, under a client's load, with kills.

A PG never lacks more than one replica, OSDs of one host only are down together, and all objects are equal.
"""
import json
import random

from . import kills
from .replicas import Background

HOST = [0, 3, 6, 9]  # OSDs of h1
RUN = ["run", "--confirm", "yes-really-migrate-osds", "--in-parallel", "3", "--soak", "10s"]


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
                slots = self.session.read("osd dump")["osds"]
                self.down.add(frozenset(slot["osd"] for slot in slots if not slot["up"]))
                stats = self.session.read("pg dump", "mgr", dumpcontents=["pgs"])
                pgs = stats["pg_stats"] if isinstance(stats, dict) else stats
                self.lacking = max(self.lacking, *(3 - len(pg["acting"]) for pg in pgs))
                self.samples += 1
        except Exception as why:  # noqa: BLE001 - the scenario reports it
            self.trouble = why


def run(world):
    world.up(osds=12, layout=",".join(f"{osd}=bluestore-dev" for osd in HOST))
    world.lab("write", "400")
    world.lab("client", "start")
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    with Down() as watch:
        kills.spread(world, moments(random.Random(world.seed)), "batch", RUN, KINDS)
    assert not watch.trouble, f"the statistics were not read: {watch.trouble}"
    together = max(watch.down, key=len)
    world.say(f"{watch.samples} samples: at most {sorted(together)} were down together; a PG lacked {watch.lacking} replica")
    assert 2 <= len(together) <= 3 and together <= set(HOST), sorted(map(sorted, watch.down))
    assert watch.lacking == 1, f"a PG lacked {watch.lacking} replicas"
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
