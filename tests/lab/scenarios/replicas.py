"""What Ceph reports about the replicas of all PGs while an OSD is emptied, stopped and filled again."""

import threading
import time
from collections import namedtuple

from .sessions import Ceph

# `names`: PGs that name the OSD in their up or acting set. `held`: bytes of those that it serves.
# `lacking`: PGs that lack a replica, with their states. `clean`: whether all PGs are active+clean.
# `down`: OSDs that exist and are down. `safe`: answer of `osd safe-to-destroy`.
Sample = namedtuple("Sample", "at up is_in weight names held lacking clean down safe")
# Slot of an id that is purged.
ABSENT = {"up": 0, "in": 0, "weight": 0}
# The statistics of PGs lag behind by up to 7 s.
STATISTICS = 8


class Background(threading.Thread):
    """A thread with a session of its own, which runs during a `with`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.session, self.ended = Ceph(), threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join(30)
        self.session.close()


class Watch(Background):
    """A thread that reads the osdmap and the statistics of the PGs several times a second, in a `with`."""

    def __init__(self, osd, pause=0.2):
        super().__init__()
        self.osd, self.pause = osd, pause
        self.samples, self.trouble, self.began = [], None, time.monotonic()
        self.moved = 0  # bytes that Ceph wrote to other OSDs by backfill and recovery
        self.recovered = {}  # PG -> its counter of these bytes, who reported it, and the highest one reported
        pools = self.session.read("osd dump")["pools"]
        self.chunks = {pool["pool"]: self.data_chunks(pool) for pool in pools}

    def data_chunks(self, pool):
        """Returns into how many parts an object of the pool is divided."""
        profile = pool["erasure_code_profile"]
        return int(self.session.read("osd erasure-code-profile get", name=profile)["k"]) if profile else 1

    def run(self):
        try:
            while not self.ended.wait(self.pause):
                self.samples.append(self.sample())
        except Exception as why:  # noqa: BLE001 - the scenario reports it
            self.trouble = why

    def sample(self):
        slots = {slot["osd"]: slot for slot in self.session.read("osd dump")["osds"]}
        slot = slots.get(self.osd, ABSENT)
        # The question before the statistics: a PG that names the OSD now also named it then, or came later.
        status, answer, _ = self.session.send("mgr", "osd safe-to-destroy", ids=[str(self.osd)])
        pgs = entries(self.session.read("pg dump", "mgr", dumpcontents=["pgs"]))
        names = {pg["pgid"]: pg for pg in pgs if self.osd in pg["up"] + pg["acting"]}
        held = sum(self.part(pg, "num_bytes") for pg in names.values() if self.osd in pg["acting"])
        self.count_moved(pgs)
        return Sample(
            at=time.monotonic() - self.began,
            up=bool(slot["up"]),
            is_in=bool(slot["in"]),
            weight=slot["weight"],
            names=set(names),
            held=held,
            lacking={pg["pgid"]: pg["state"] for pg in pgs if lacks(pg)},
            clean={pg["state"] for pg in pgs} == {"active+clean"},
            down={osd for osd, slot in slots.items() if not slot["up"]},
            safe=not status and self.osd in answer["safe_to_destroy"],
        )

    def part(self, pg, counter):
        return pg["stat_sum"][counter] // self.chunks.get(int(pg["pgid"].split(".")[0]), 1)

    def count_moved(self, pgs):
        """Adds what the counters gained. Another primary may be behind, and counts on from there."""
        for pg in pgs:
            now, primary = self.part(pg, "num_bytes_recovered"), pg["acting_primary"]
            before, by, highest = self.recovered.get(pg["pgid"], (now, primary, now))
            self.moved += max(now - (before if by == primary else highest), 0)
            self.recovered[pg["pgid"]] = now, primary, max(now, highest)

    def last(self):
        assert not self.trouble, f"the statistics were not read: {self.trouble}"
        return self.samples[-1] if self.samples else None

    def is_empty(self):
        """Returns whether no PG names the OSD, all PGs are clean, and Ceph says that it is safe to destroy."""
        last = self.last()
        return last.clean and last.safe and not last.names

    def since(self, at):
        return [sample for sample in self.samples if sample.at >= at]

    def now(self):
        return time.monotonic() - self.began


def entries(answer):
    """Returns the PGs of an answer to `pg dump`: a list, or an object with the list, by release."""
    return answer["pg_stats"] if isinstance(answer, dict) else answer


def lacks(pg):
    """Returns whether a PG reports that it lacks a replica, or a part of one.

    A write that only some OSDs have when the PG changes its place is completed on the others afterwards. Until then, Ceph
    reports the PG as degraded. The lab's client writes one object at a time, and its write is not acknowledged before.
    """
    of_one_object = len(set(pg["up"] + pg["acting"]))
    return "undersized" in pg["state"].split("+") or pg["stat_sum"]["num_objects_degraded"] > of_one_object


def returned(samples):
    """Returns the PGs that had left the OSD, and named it again later.

    An OSD still has the objects of such a PG. Ceph copies only those that clients changed meanwhile, and reports the PG
    as degraded until then. The OSDs where the PG was keep all objects until it is clean.
    """
    gone, back, before = set(), set(), set()
    for sample in samples:
        gone |= before - sample.names
        back |= gone & sample.names
        before = sample.names
    return back


def whole_logs(world):
    """Returns PGs with objects whose log was never trimmed.

    They are recovered from the log instead of a backfill: their new OSDs are acting before they have the
    data, and the PGs are degraded until then.
    """
    pgs = entries(world.ceph("pg", "dump", "pgs"))
    return [pg["pgid"] for pg in pgs if pg["stat_sum"]["num_objects"] and pg["log_start"] == "0'0"]


def trim(world):
    """Waits until the log of each PG with objects was trimmed, and writes more if one was not.

    Objects have random names: now and then a PG gets so few of them that its log stays whole.
    """
    names = {pool["pool"]: pool["pool_name"] for pool in world.ceph("osd", "dump")["pools"]}
    current = time.monotonic() + STATISTICS

    def done():
        nonlocal current
        whole = whole_logs(world)
        if whole and time.monotonic() > current:
            pools = sorted({names[int(pg.split(".")[0])] for pg in whole})
            world.say(f"more is written to {', '.join(pools)}, because logs were never trimmed: {', '.join(whole)}")
            for pool in pools:
                world.lab("write", "64", "4", pool)
            current = time.monotonic() + STATISTICS
        return not whole

    world.until("all PGs to be trimmed", 60, done)
