"""OSDs that nobody requested are removed by the two switches of a run, under a client's load.

Two OSDs are in directories of nodes without a disk for them, and two are down and out: the disk of one is gone, the
other one was stopped and has its disk. Pools of size 3 and 2. Without a switch, without the confirmation, or before the
time, nothing is changed. Then `--drop-directories` removes one OSD with its directory, although the runner is killed
while its data moves, and once more after its stop; nothing else on that file system changes. The other OSD is being
emptied when a run without the switch follows: it is kept, with its former weight. Then its node gets a disk, and the
run with the switch migrates it. At last, `--remove-out` removes the two OSDs that are out, and does not touch their
disks, ten minutes after they went down, which is the least that `--remove-out-after` takes, although another OSD went
down and came up meanwhile. Ceph's map and statistics are read continuously: no PG lacks a replica.
"""

import datetime
import json
import os
import random

from . import empty, forecast, kills, remove, sick
from .disks import digest
from .legacy import AVAILABLE
from .own_user import CREATE_USER
from .provision import answer
from .replicas import Watch, returned, trim

LEAVES, STAYS = 1, 2  # in directories, on h2 and h3
DEAD, STOPPED = 7, 4  # out, on h4 and h1
HOSTS = {LEAVES: "h2", STAYS: "h3"}
KINDS = ["filestore-dir", "bluestore-dir"]
CONFIRM = ["--confirm", "yes-really-migrate-osds"]
PLAIN = ["run", "--removals", *CONFIRM]
DROP = [*PLAIN, "--drop-directories"]
OUT = ["run", "--removals", "--remove-out", "--remove-out-after"]
LEAST, MOST = 10, 43200  # minutes that --remove-out-after takes
SOME_LEFT = ("Failed", 12)
DONE = ("Complete", 0)
MIB = remove.MIB
NO_TIME = "0.000000"
# Milestones after the stop of an OSD in a directory, with the longest delay of the second kill.
AFTER_STOP = {"stop": 3, "down": 1, "clear": 3}
MOUNT = "/var/storage"
# Files of the node's owner: beside the OSD's directory, and elsewhere on the same file system.
BYSTANDERS = """set -e; mkdir -p "$1/of-the-owner/deep"
for file in "$2/notes" "$1/of-the-owner/deep/data"; do head -c 1M /dev/urandom > "$file"; done; sync"""
# Every name outside of the OSD's directory: files with size, time and digest, folders without.
LISTING = """set -e -o pipefail; cd "$1"
find . -xdev -path "$2" -prune -o -type d -printf '%p %i %m %U:%G\\n' -o -printf '%p %i %m %U:%G %s %T@ %l\\n' | sort
find . -xdev -path "$2" -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum"""


def run(world):
    rng = random.Random(world.seed)
    kinds = dict(zip((LEAVES, STAYS), rng.sample(KINDS, 2)))
    bring_up(world, kinds)
    images = {osd: digest(world.image(f"osd{osd}")) for osd in (DEAD, STOPPED)}
    before = world.shape()
    with Watch(LEAVES) as watch:
        world.until("the first statistics", 20, watch.last)
        not_asked_for(world, before)
        leaves(world, watch, before, rng)
        empty.expect_replicas(watch, 0)
    with Watch(STAYS) as watch:
        world.until("the first statistics", 20, watch.last)
        stays(world, watch)
    with Watch(DEAD) as watch:
        world.until("the first statistics", 20, watch.last)
        out_for_long(world, watch)
        empty.expect_replicas(watch, 0)
    now = {osd: digest(world.image(f"osd{osd}")) for osd in (DEAD, STOPPED)}
    assert now == images, f"the disk of an OSD that was out was written to: {images} {now}"
    ended(world, kinds)


def bring_up(world, kinds):
    world.up(osds=8, layout=",".join(f"{osd}={kind}" for osd, kind in kinds.items()), hosts=4)
    world.say(f"in directories: {kinds}")
    world.storage(devicePathFilter=f"^/dev/disk/by-id/lab-{AVAILABLE}-")  # no node has such a disk
    remove.pool_of_two(world, pgs="32", objects="600")
    empty.clean(world)
    trim(world)
    sick.kill_osd(world, DEAD)
    stop_osd(world, STOPPED)
    trim(world)
    for osd in (LEAVES, STAYS):
        world.lab("on", HOSTS[osd], "bash", "-c", BYSTANDERS, "-", MOUNT, os.path.dirname(folder(world, osd)))


def stop_osd(world, osd):
    """Stops an OSD as a person does, and marks it out: its disk stays attached."""
    sick.stop(world, osd)
    world.lab("ceph", "osd", "out", str(osd))
    world.until("all PGs to be recovered elsewhere", 120, lambda: sick.pg_states(world) == {"active+clean"})
    world.say(f"osd.{osd} is stopped: it is down and out, and its data is recovered elsewhere")


def folder(world, osd):
    return world.facts(osd)["dir"]


def seconds_since(stamp):
    at = datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z")
    return (datetime.datetime.now(datetime.timezone.utc) - at).total_seconds()


def quiet(world):
    """Returns for how many seconds no OSD came up or went down, by Ceph's own time."""
    return seconds_since(world.ceph("osd", "dump")["last_up_change"])


def down_for(world, osd):
    """Returns for how many seconds the OSD has been down, by the map in which it went down."""
    epoch = next(entry["down_at"] for entry in world.ceph("osd", "dump")["osds"] if entry["osd"] == osd)
    return seconds_since(world.ceph("osd", "dump", str(epoch))["modified"])


def stamps(world):
    """Returns Ceph's `down_stamp` of each OSD, which osd-migrate does not use."""
    return {entry["osd"]: entry["down_stamp"] for entry in world.ceph("osd", "dump")["osd_xinfo"]}


# ---- nothing is changed


def not_asked_for(world, before):
    """Checks that without the switch, the confirmation, or ten minutes, nothing is changed, and why is said."""
    found = stamps(world)
    assert found[LEAVES] == NO_TIME, f"osd.{LEAVES} was never down: {found}"
    world.say(f"down_stamp of the OSDs that are down: {found[DEAD]}, {found[STOPPED]}")
    log = changes_nothing(world, before, "plain", PLAIN, SOME_LEFT)
    for osd in (LEAVES, STAYS):
        world.say(f"without a switch: {needs_disk(log, osd)[:300]}")
    args = ["run", "--removals", "--drop-directories", *OUT[2:], str(LEAST)]
    log = changes_nothing(world, before, "unconfirmed", args, DONE)
    age = max(down_for(world, osd) for osd in (DEAD, STOPPED))
    assert age < LEAST * 60, f"too late for this test: {age} s"
    assert "not confirmed" in log, log
    world.say(f"not confirmed, and down for {age:.0f} s: nothing is changed, with both switches and {LEAST} minutes")
    foreseen(world)


def needs_disk(log, osd):
    """Returns the sentence that refuses an OSD in a directory, for want of a disk."""
    words = (f"osd.{osd} was refused", f"node {HOSTS[osd]} has no available disk", "set run.dropDirectories")
    line = next((line for line in log.splitlines() if all(word in line for word in words)), None)
    assert line, f"{words} are not in one line of:\n{log}"
    return line[line.index(words[0]) :]


def changes_nothing(world, before, name, args, end):
    written = world.written()
    job = world.start(name, args)
    result = world.wait_for(job, 120)
    log = world.log(job)
    assert result == end, (name, result, log)
    # The first act, a Job that reads the disks of a node, creates the Ceph user of the runs.
    new = [line for line in world.written()[len(written) :] if not CREATE_USER.search(line)]
    assert not new, f"Ceph was changed: {new}"
    unchanged(world, before)
    return log


def unchanged(world, before):
    assert not world.records(), f"open records: {list(world.records())}"
    world.expect_nothing_left()
    assert world.shape() == before, f"the cluster changed its shape:\n{before}\n{world.shape()}"
    for osd in (LEAVES, STAYS):
        if osd in world.fsids():
            assert world.is_ready(osd) and sick.slot(world, osd)["up"], f"osd.{osd} does not serve"


def foreseen(world):
    """Checks that a plan shows what the switches would remove: the OSDs that are out are not due yet."""
    args = ["plan", "--inventory", "--removals", "--drop-directories", "--remove-out", "--all", "-o", "json"]
    job = world.start("foreseen", args)
    result = world.wait_for(job, 120)
    log = world.log(job)
    assert result == DONE, (result, log)
    shown = {row["osd"] for row in answer(log)["osds"] if row["strategy"] == "emptied, removed"}
    assert shown == {LEAVES, STAYS}, log
    world.say(f"plan: {sorted(shown)} would be emptied and removed")


# ---- an OSD leaves its directory


def leaves(world, watch, before, rng):
    path, around, mount = folder(world, LEAVES), listing(world, LEAVES), mounted(world, LEAVES)
    assert exists(world, LEAVES, f"{path}/fsid") and "of-the-owner/deep/data" in around, around
    found, up = forecast.forecast(world, LEAVES), forecast.up_sets(world)
    assert found["possible"], found["obstacles"]
    expected = {**up, **{pg["pg"]: sorted(pg["then"]) for pg in found["pgs"]}}
    at, moved = watch.now(), watch.moved
    empty.slow(world, 0.1)
    phase, kind = rng.choice(sorted(AFTER_STOP)), rng.choice(["runner pod", "runner process"])
    moments = [
        (LEAVES, "marked-out", rng.uniform(0.5, 2), "runner pod, while data moves"),
        (LEAVES, phase, rng.uniform(0, AFTER_STOP[phase]), kind),
    ]
    acts = {**kills.KINDS, "runner pod, while data moves": lambda world, job: killed_meanwhile(world, watch, job)}
    count, jobs = kills.spread(world, moments, "drop", [*DROP, "--skip", f"osd.{STAYS}"], acts)
    assert count == len(moments), f"only {count} kills"
    remove.gone(world, LEAVES, before)
    remove.expect_stopped_empty(world, watch, at)
    assert forecast.up_sets(world) == expected, "the PGs are not where they were forecast"
    assert len(remove.sent(world, remove.DESTROY)) == len(remove.sent(world, remove.PURGE)) == 1, world.written()
    remove.bytes_as_forecast(world, found, watch.moved - moved)
    others = {DEAD, STOPPED, LEAVES}
    assert all(sample.down <= others for sample in watch.samples), "another OSD was down"
    assert not exists(world, LEAVES, path) and exists(world, LEAVES, os.path.dirname(path)), f"{path} is left"
    assert listing(world, LEAVES) == around, f"other files changed:\n{around}\n{listing(world, LEAVES)}"
    assert mounted(world, LEAVES) == mount, f"the mount changed: {mount} {mounted(world, LEAVES)}"
    told(world, LEAVES, "removed")
    world.say(f"osd.{LEAVES} left {path}: {count} kills, {jobs} Jobs; the other files on {mount} are as before")


def killed_meanwhile(world, watch, job):
    assert remove.crush_weight(world, LEAVES) == 0 and watch.last().names, f"osd.{LEAVES} was emptied too fast"
    remove.not_fenced(world, [LEAVES])
    kills.KINDS["runner pod"](world, job)
    world.say(f"the runner's pod is killed while {len(watch.last().names)} PGs are on osd.{LEAVES}")
    empty.slow(world, 0)


def exists(world, osd, path):
    return not world.lab("on", HOSTS[osd], "test", "-e", path, check=False).returncode


def listing(world, osd):
    """Returns all names, times and digests of the node's file system outside of the OSD's directory."""
    below = "./" + os.path.relpath(folder(world, osd), MOUNT)
    return world.lab("on", HOSTS[osd], "bash", "-c", LISTING, "-", MOUNT, below).stdout


def mounted(world, osd):
    return world.lab("on", HOSTS[osd], "findmnt", "-n", "-o", "SOURCE,TARGET,FSTYPE,OPTIONS", MOUNT).stdout.split()


def told(world, osd, outcome):
    """Checks the last entry of an OSD in the history, and prints its milestones."""
    record = [record for record in world.closed() if record["osd"] == osd][-1]
    assert record["outcome"] == outcome, record
    world.say(f"osd.{osd}: " + " ".join(f"{word}@{moment[11:19]}" for word, moment in record["milestones"]))
    return record


# ---- an OSD is kept, and migrated


def stays(world, watch):
    """Checks that a run without the switch keeps an OSD that is being emptied, and that it moves to a new disk."""
    path, around, fsid, before = folder(world, STAYS), listing(world, STAYS), world.fsids()[STAYS], world.shape()
    empty.slow(world, 0.1)
    job = world.start("drop-other", DROP)

    def is_dropped():
        assert world.result(job) is None, f"osd.{STAYS} was not emptied:\n{world.log(job)}"
        return remove.crush_weight(world, STAYS) == 0

    world.until(f"the CRUSH weight of osd.{STAYS} to be 0", 120, is_dropped)
    assert watch.last().names, f"osd.{STAYS} was emptied too fast for this test"
    world.delete(job)
    job = world.start("kept", PLAIN)
    world.until("the weight to be restored", 90, lambda: remove.crush_weight(world, STAYS))
    left = len(watch.last().names)
    empty.slow(world, 0)
    result = world.wait_for(job, 180)
    assert result == SOME_LEFT and needs_disk(world.log(job), STAYS), (result, world.log(job))
    told(world, STAYS, "withdrawn")
    all_clean(world)
    unchanged(world, before)
    empty.expect_replicas(watch, 0, returned(watch.since(0)))
    world.say(f"osd.{STAYS} was kept while {left} PGs were on it: all is as before")
    world.lab("disk", HOSTS[STAYS], f"{AVAILABLE}-{STAYS}")
    job = world.start("migrated", DROP)
    result = world.wait_for(job, 400)
    assert result == DONE, (result, world.log(job))
    assert told(world, STAYS, "migrated") and world.fsids()[STAYS] != fsid, world.closed()
    assert len(remove.sent(world, remove.PURGE)) == 1, "the id of an OSD that is kept was purged"
    all_clean(world)
    assert world.is_ready(STAYS) and world.stores()[STAYS] == "bluestore", world.stores()
    assert not exists(world, STAYS, path) and listing(world, STAYS) == around, "other files changed"
    world.say(f"osd.{STAYS} is migrated to the disk that its node got")


def all_clean(world):
    world.until("all PGs to be clean", 180, lambda: sick.pg_states(world) == {"active+clean"})


# ---- OSDs that are out


def out_for_long(world, watch):
    """Checks that OSDs that are down and out for ten minutes are removed, one of them first only if not skipped."""
    before, up = world.shape(), forecast.up_sets(world)
    is_long = lambda: min(down_for(world, osd) for osd in (DEAD, STOPPED)) > LEAST * 60 + 1  # noqa: E731
    world.until(f"{LEAST} minutes to be over", LEAST * 60 + 30, is_long, pause=2)
    age = quiet(world)
    world.say(f"down_stamp: {stamps(world)}; an OSD came up or went down {age:.0f} s ago")
    assert age < LEAST * 60, f"no OSD came up meanwhile, so this shows nothing: {age} s"
    changes_nothing(world, before, "out-for-less", [*OUT, str(MOST)], DONE)
    world.say(f"{MOST} minutes are not over: both are kept")
    found = forecast.forecast(world, DEAD)
    expected = {**up, **{pg["pg"]: sorted(pg["then"]) for pg in found["pgs"]}}
    moved = watch.moved
    due(world, DEAD, [*OUT, str(LEAST), "--skip", f"osd.{STOPPED}"], before)
    world.until("the PGs to be mapped as forecast", 60, lambda: forecast.up_sets(world) == expected)
    all_clean(world)
    moved = (watch.moved - moved) / MIB
    words = f"{found['movedBytes'] / MIB:.1f} MiB in {len(found['pgs'])} PGs"
    world.say(f"its purge moved {moved:.1f} MiB; forecast: {words}")
    assert STOPPED in world.fsids(), f"osd.{STOPPED} is in run.skip"
    due(world, STOPPED, [*OUT, str(LEAST)], world.shape())
    all_clean(world)
    remove.nothing_left(world)


def due(world, osd, args, before):
    """Checks that a run removes the OSD that has been out for long, and leaves its disk."""
    job = world.start(f"out-{osd}", args)
    result = world.wait_for(job, 240)
    assert result == DONE, (result, world.log(job))
    remove.absent(world, osd)
    world.expect_nothing_left()
    remove.unchanged_but(world, before, {osd})
    record = told(world, osd, "removed")
    assert "its disk was not read" in (record.get("why") or ""), record
    world.say(f"osd.{osd}, out for {LEAST} minutes, is removed: {record['why']}")


def ended(world, kinds):
    world.lab("verify")
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    world.say(f"client: {client}")
    assert client["ops"] > 100 and not client["failed"] and not client["slow"], client
    gone = (LEAVES, DEAD, STOPPED)
    assert sorted(world.fsids()) == [osd for osd in range(8) if osd not in gone], world.fsids()
    world.say(f"all objects are equal, and no PG lacked a replica; {kinds[LEAVES]} was removed, {kinds[STAYS]} kept")
