"""One Job recreates legacy OSDs in place, then creates OSDs on available disks, under a client's load."""
import json

from . import new_osds
from .new_osds import by_id

LEGACY = [0, 1]
NEW = [("h2", "new-2"), ("h3", "new-3")]


def run(world):
    world.up(layout="0=bluestore-dev,1=filestore-part")
    world.lab("write", "300")
    world.lab("client", "start")
    for host, disk in NEW:
        world.lab("disk", host, disk)
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    world.storage(devicePathFilter="^/dev/disk/by-id/lab-new-")
    world.confirm()
    job = world.start("mixed")
    assert world.wait_for(job, 400) == ("Complete", 0), world.log(job)
    world.lab("wait-clean", "120")
    world.lab("verify")
    old_ones(world, before, fsids)
    new_ones(world, fsids)
    world.expect_nothing_left()
    world.expect_downs_on_one_host(epoch)
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    world.say(f"client: {client}")
    assert not client["failed"] and not client["slow"], client
    order = [record["osd"] for record in world.closed()]
    assert order[: len(LEGACY)] == LEGACY, f"new OSDs before legacy ones: {order}"
    world.say("one Job: 2 legacy OSDs recreated in place, 2 available disks became OSDs; all objects equal")


def old_ones(world, before, fsids):
    after = world.shape()
    for part in ("osds", "tree"):
        kept = [row for row in after[part] if 0 <= row[0] <= max(fsids)]
        assert kept == [row for row in before[part] if row[0] >= 0], f"{part} before and after:\n{before[part]}\n{after[part]}"
    assert (after["flags"], after["node_flags"]) == (before["flags"], before["node_flags"]), after
    changed = {osd for osd, fsid in world.fsids().items() if osd in fsids and fsid != fsids[osd]}
    assert changed == set(LEGACY), f"recreated: {changed}"


def new_ones(world, fsids):
    first = max(fsids) + 1
    now = world.fsids()
    assert sorted(now) == sorted(fsids) + [first, first + 1], sorted(now)
    assert set(world.stores().values()) == {"bluestore"}, world.stores()
    labels = new_osds.labels(world, [(host, by_id(disk)) for host, disk in NEW])
    assert sorted(label["osd_uuid"] for label in labels.values()) == sorted([now[first], now[first + 1]]), labels
