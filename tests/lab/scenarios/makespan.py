"""Hosts of four legacy OSDs each: one OSD after the other, two in parallel, and three in parallel, under a client's load.

Each OSD has at least 1 GiB of data, and each host has all of it once, so that the hosts are alike. The run with one comes
first. In the others the first OSD of its kind is alone, as in each run, and soaks for a second only. The scenario prints
the times, and fails if a promise is broken: OSDs of one host only are down, no more of them than allowed, a PG lacks one
replica at most, each byte moves once, no request of the client fails, and no object is lost. Recovery is as fast as
Ceph's defaults allow.
"""
import json
import time

from . import empty
from .batch import down_and_lacking
from .forecast import pg_stats
from .replicas import STATISTICS, Watch, trim

HOSTS, PER_HOST = 3, 4
LEGACY = HOSTS * PER_HOST
MIB, GIB = 1 << 20, 1 << 30
PGS = "128"  # 32 for each OSD, so that the OSDs have about the same amount of data
OBJECTS, MEAN_KIB = 3800, 2048  # 7.4 GiB on each host: at least 1 GiB on each OSD
# What makes recovery fast in a lab. All disks are one: without Ceph's own limits, one OSD would get all of it.
RECOVERY = ["osd_recovery_sleep_hdd", "osd_recovery_sleep_hybrid", "osd_max_backfills", "osd_recovery_max_active"]
RUN = ["run", "--confirm", "yes-really-migrate-osds", "--soak", "1s"]


class Downs(Watch):
    """A thread that reads which OSDs are down, how many replicas PGs lack, and how many bytes move."""

    def __init__(self):
        super().__init__(osd=None)
        self.most_lacking = 0

    def sample(self):
        """Returns the OSDs that are down."""
        down, lacks, pgs = down_and_lacking(self.session)
        self.count_moved(pgs)
        self.most_lacking = max(self.most_lacking, lacks)
        return down


def run(world):
    world.up(osds=LEGACY, hosts=HOSTS, layout=",".join(f"{osd}=bluestore-dev" for osd in range(LEGACY)))
    for name in RECOVERY:
        world.lab("ceph", "config", "rm", "osd", name)
    world.lab("ceph", "osd", "pool", "set", "labpool", "pg_num", PGS)
    placed = lambda: max(pool["pg_placement_num"] for pool in world.ceph("osd", "dump")["pools"])  # noqa: E731
    world.until("the PGs to be split", 300, lambda: placed() == int(PGS))
    empty.clean(world)
    world.lab("write", str(OBJECTS), str(MEAN_KIB), timeout=1800)
    empty.clean(world)
    trim(world)
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    data = data_of_osds(world)
    assert min(data.values()) >= GIB, data
    rows = [measured(world, number, {osd: data[osd] for osd in data if osd % HOSTS == number - 1}) for number in (1, 2, 3)]
    world.expect_migrated(before, fsids, range(LEGACY))
    world.expect_downs_on_one_host(epoch)
    show(world, rows)
    for row in rows:
        expect(row)


def data_of_osds(world):
    """Returns the bytes of the PGs of each OSD."""
    data = dict.fromkeys(range(LEGACY), 0)
    for pg in pg_stats(world, "pgs"):
        for osd in pg["acting"]:
            data[osd] += pg["stat_sum"]["num_bytes"]
    return data


def measured(world, in_parallel, data):
    """Migrates a host with so many in parallel: h1 with one, h2 with two, h3 with three."""
    world.lab("client", "start")
    with Downs() as watch:
        world.until("the first statistics", 20, lambda: watch.samples)
        began, moved = time.monotonic(), watch.moved
        job = world.start(f"makespan-{in_parallel}", [*RUN, "--host", f"h{in_parallel}", "--in-parallel", str(in_parallel)])
        result = world.wait_for(job, 1800)
        took = time.monotonic() - began
        time.sleep(STATISTICS)
    assert not watch.trouble, f"the statistics were not read: {watch.trouble}"
    client = json.loads(world.lab("client", "stop", check=False).stdout.strip().splitlines()[-1])
    assert result == ("Complete", 0), (result, world.log(job))
    spans = [(entry["milestones"][0][1], entry["milestones"][-1][1]) for entry in world.closed() if entry["osd"] in data]
    row = {
        "in_parallel": in_parallel,
        "osds": sorted(data),
        "held": sum(data.values()),
        "moved": watch.moved - moved,
        "took": took,
        "together": max(sum(begun <= at < end for begun, end in spans) for at, _ in spans),
        "down": max(watch.samples, key=len),
        "ever_down": frozenset().union(*watch.samples),
        "lacking": watch.most_lacking,
        "client": client,
    }
    world.say(f"h{in_parallel}: {row}")
    return row


def show(world, rows):
    lines = [("in parallel", "OSDs", "data of the host", "data moved", "whole run", "in progress, down together", "client: median, 99 %, longest", "client: failed")]
    for row in rows:
        client = row["client"]
        latencies = (f"{client[which] * 1000:,.0f}" for which in ("p50_seconds", "p99_seconds", "max_seconds"))
        lines.append((
            str(row["in_parallel"]), str(len(row["osds"])), f"{row['held'] / MIB:,.0f} MiB", f"{row['moved'] / row['held']:.2f}", f"{row['took']:.0f} s",
            f"{row['together']}, {len(row['down'])}", f"{', '.join(latencies)} ms", f"{client['failed']} of {client['ops']:,}",
        ))  # fmt: skip
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    world.say(f"hosts of {PER_HOST} OSDs:\n{table}")


def expect(row):
    assert row["ever_down"] == set(row["osds"]), row
    assert len(row["down"]) <= row["in_parallel"] and row["together"] <= row["in_parallel"], row
    assert row["in_parallel"] == 1 or row["together"] > 1, row
    assert row["lacking"] == 1, row
    assert not row["client"]["failed"] and not row["client"]["slow"], row
    # The counters of the primaries miss up to a tenth: another primary may be behind.
    assert row["moved"] < 1.15 * row["held"], row
