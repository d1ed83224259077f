"""New OSDs in a cluster with mon and mgr, and no OSD.

Disks that a filter selects become OSDs, while runner, agents and kubelets are killed at seeded moments. Disks that are
not available do not change. Then one disk is added. With --full also a destroyed slot that is reused, two OSDs in
parallel, devices by name, a partition, an OSD that was created by hand, a node that is not declared any more, a taint
that is added later, and an OSD on a file.
"""
import json
import random
import re
import time

from . import kills, new_osds, sick
from .disks import CONTENTS, attached, digest, fill
from .new_osds import FILE, by_id

CONFIRMED = ["--confirm", "yes-really-migrate-osds"]
FILTER = "^/dev/disk/by-id/lab-new-"
# The buckets that `osd tree` must show above each host, from below.
ZONES = {"h1": {"rack": "r1", "zone": "east"}, "h2": {"zone": "west"}, "h3": {"zone": "west"}}
GOOD = {"new-1a": "h1", "new-1b": "h1", "new-2a": "h2", "new-2b": "h2", "new-3a": "h3", "new-3b": "h3"}
# Selected by the filter, and not available. By content: the host, and a word of the reported reason.
BAD = {"ext4": ("h1", "ext4"), "early": ("h1", "data without a signature"), "foreign": ("h2", "another cluster"),
       "late": ("h2", "data without a signature"), "luks": ("h3", "LUKS")}  # fmt: skip
UNSELECTED = {"unselected": "h2"}  # available, and not selected
PHASES = ["record", "rebuild", "rebuilding", "new", "settling", "closing"]
LONGEST = {"record": 0.5, "rebuild": 1, "rebuilding": 5, "new": 3, "settling": 4, "closing": 0.5}
KILLS = 10


def run(world):
    world.up(osds=0)
    untouched = prepare(world)
    inventory(world)
    count, _ = kills.spread(world, seeded_moments(random.Random(world.seed)), "new", ["provision", *CONFIRMED])
    assert count >= KILLS, f"only {count} kills"
    places = [(host, by_id(disk)) for disk, host in GOOD.items()]
    new_osds.expect(world, places, ZONES)
    settled(world, ["h1", "h2", "h3"], untouched)
    world.say("6 OSDs on the 6 selected available disks, ids 0 to 5; everything else is unchanged")
    world.lab("pool")
    world.lab("wait-clean", "60")
    world.lab("write", "200")
    one_disk_more(world, places, untouched)
    alone = None
    if world.full:
        filled_again(world, places, untouched)
        two_at_once(world, places, untouched)
        alone = by_hand(world, places)
        weights = by_name(world, places, untouched)
        taint(world, places, weights)
        on_file(world, places, weights, untouched)
    new_osds.figures(world, alone)


def prepare(world):
    """Creates node labels, disks and the filter, and returns the digests of disks that must not change."""
    for host, places in ZONES.items():
        keys = {"zone": "topology.kubernetes.io/zone", "rack": "topology.rook.io/rack"}
        world.kubectl("label", "node", host, *(f"{keys[kind]}={name}" for kind, name in places.items()))
    for disk, host in {**GOOD, **UNSELECTED}.items():
        world.lab("disk", host, disk)
    for content, (host, _) in BAD.items():
        fill(world, host, world.lab("disk", host, f"new-{content}").stdout.strip(), content)
    assert set(BAD) == set(CONTENTS)
    for host in ZONES:
        world.lab("settle", host)
    world.storage(devicePathFilter=FILTER)
    return {disk: digest(world.image(disk)) for disk in [*UNSELECTED, *(f"new-{content}" for content in BAD)]}


def seeded_moments(rng):
    """Returns a moment in an inventory and KILLS moments in OSDs, at most two in each, with all phases and kinds."""
    while True:
        moments = [(None, "inventory", rng.uniform(0, 2), rng.choice(["runner process", "agent"]))]
        chosen = sorted(rng.sample([(osd, number) for osd in range(len(GOOD)) for number in range(len(PHASES))], KILLS))
        for osd, number in chosen:
            phase = PHASES[number]
            kind = rng.choice(["runner process", "runner pod", "agent", "kubelet"])
            if kind == "agent" and phase not in ("rebuild", "rebuilding"):
                kind = "runner process"
            moments.append((osd, phase, rng.uniform(0, LONGEST[phase]), kind))
        crowded = max(sum(osd == other for other, _ in chosen) for osd in range(len(GOOD)))
        if crowded <= 2 and {phase for _, phase, *_ in moments[1:]} == set(PHASES) and {kind for *_, kind in moments} == set(kills.KINDS):
            return moments


# ---- building blocks


def answer(text):
    """Returns the JSON in the log of a Job, which also contains stderr."""
    return json.JSONDecoder().raw_decode(text, re.search("^{", text, re.MULTILINE).start())[0]


def finished(world, name, args, seconds=200, env=None):
    world.start(name, args, env=env)
    result = world.wait_for(name, seconds)
    log = world.log(name)
    assert result == ("Complete", 0), (name, result, log)
    return log


def nothing_to_do(world, name, args):
    """Checks that a run finds nothing to do, and writes nothing to Ceph."""
    written = world.written()
    finished(world, name, args, 90)
    new = world.written()[len(written) :]
    assert not new, f"a run with nothing to do wrote to Ceph: {new}"


def settled(world, nodes, untouched):
    world.expect_nothing_left()
    statuses = {node: work["status"] for node, work in world.nodes().items() if node in nodes}
    assert statuses == dict.fromkeys(nodes, "completed"), world.nodes()
    changed = [disk for disk, sha in untouched.items() if digest(world.image(disk)) != sha]
    assert not changed, f"written to: {changed}"


# ---- what happens


def inventory(world):
    """Checks that `plan --inventory` names each disk, and changes nothing."""
    written = world.written()
    seen = answer(finished(world, "inventory", ["plan", "--inventory", "-o", "json"], 60))
    assert not seen["osds"] and not seen["problems"], seen
    disks = {disk["stable"]: disk for disk in seen["disks"]}
    here = {by_id(name): place for name, place in attached(world).items()}
    assert here.items() <= {path: (disk["node"], f"/dev/{disk['disk']}") for path, disk in disks.items()}.items(), disks
    assert all(disk["sizeBytes"] == 6 << 30 for path, disk in disks.items() if path in here), disks
    verdicts = {path: disk["verdict"] for path, disk in disks.items()}
    assert {path for path, word in verdicts.items() if word == "new"} == {by_id(disk) for disk in GOOD}, verdicts
    assert all(disks[by_id(disk)]["becomes"] for disk in GOOD), disks
    assert verdicts[by_id("unselected")] == "not-selected", verdicts
    for content, (_, word) in BAD.items():
        disk = disks[by_id(f"new-{content}")]
        assert disk["verdict"] == "rejected" and word in disk["why"] and not disk["becomes"], disk
        print(f"    {disk['node']} {disk['disk']} ({content}): {disk['why']}", flush=True)
    assert world.written() == written, f"something was written to Ceph: {world.written()[len(written):]}"
    assert not world.get("configmap", "osd-migrate-ledger"), "an inventory created a ledger"
    world.expect_nothing_left()
    world.say("plan --inventory: 6 disks become OSDs, 5 are rejected with a reason each, one is not selected; nothing changed")


def one_disk_more(world, places, untouched):
    """Adds a disk: `run`, which has nothing to migrate, creates the OSD. A second run finds nothing to do."""
    world.lab("disk", "h3", "new-3c")
    epoch = world.epoch()
    finished(world, "one-more", ["run", *CONFIRMED])
    places.append(("h3", by_id("new-3c")))
    new_osds.expect(world, places, ZONES)
    settled(world, ["h1", "h2", "h3"], untouched)
    world.lab("wait-clean", "60")
    world.lab("verify")
    world.expect_downs_on_one_host(epoch)
    nothing_to_do(world, "nothing-more", ["run", *CONFIRMED])
    world.say("one disk more: one OSD more, all objects equal; second run: nothing to do, no write to Ceph")


def filled_again(world, places, untouched):
    """Checks that a run reuses the slot of an OSD that was destroyed and has a new disk, and is killed meanwhile."""
    found = new_osds.expect(world, places, ZONES)
    host, path = places[-1]
    osd = found[(host, path)]
    sick.stop(world, osd)
    world.lab("ceph", "osd", "destroy", str(osd), "--yes-i-really-mean-it")
    world.lab("on", host, "blkdiscard", "-f", path)
    moments = [(osd, "rebuilding", 3, "agent"), (osd, "new", 1, "runner process")]
    kills.spread(world, moments, "again", ["provision", *CONFIRMED])
    assert new_osds.expect(world, places, ZONES) == found, "the ids changed"
    settled(world, ["h1", "h2", "h3"], untouched)
    world.lab("wait-clean", "60")
    world.lab("verify")
    world.say(f"a destroyed slot was reused: osd.{osd}, killed twice meanwhile")


def two_at_once(world, places, untouched):
    """Creates two OSDs of one host in parallel (--at-once 2), killed while both are in progress."""
    for disk in ["new-2c", "new-2d"]:
        world.lab("disk", "h2", disk)
    first = len(places)
    moments = [(first + 1, "rebuild", 2, "runner process"), (first, "new", 1, "agent")]
    kills.spread(world, moments, "two", ["provision", "--at-once", "2", *CONFIRMED])
    places += [("h2", by_id("new-2c")), ("h2", by_id("new-2d"))]
    new_osds.expect(world, places, ZONES)
    settled(world, ["h1", "h2", "h3"], untouched)
    began = {record["osd"]: dict(record["milestones"]) for record in world.closed()}
    in_parallel = began[first + 1]["record"] < began[first]["closing"]
    assert in_parallel, f"one after the other: {began[first]}, {began[first + 1]}"
    world.lab("wait-clean", "60")
    world.lab("verify")
    world.say("two at once on h2: both exist, created in parallel, killed meanwhile")


def by_hand(world, places):
    """Runs `ceph-volume raw prepare` on a disk that is not selected, and returns its seconds.

    The next run finds an OSD of this cluster that nothing starts.
    """
    device = world.lab("disk", "h1", "hand").stdout.strip()
    began = time.monotonic()
    world.lab("on", "h1", "ceph-volume", "raw", "prepare", "--bluestore", "--data", device)
    took = time.monotonic() - began
    world.lab("on", "h1", "umount", f"/var/lib/ceph/osd/ceph-{len(places)}")
    places.append(("h1", by_id("hand")))
    return took


def by_name(world, places, untouched):
    """Declares an available disk, a partition, a disk with a file system and a missing disk of h1, by name.

    h2 names no device. h3 is not declared any more.
    """
    device = world.lab("disk", "h1", "named").stdout.strip()
    world.lab("disk", "h1", "12", "parts")
    world.lab("partition", "parts", "6", "5")
    devices = [
        {"name": device.removeprefix("/dev/"), "config": {"deviceClass": "fast", "initialWeight": "0.01"}},
        {"fullpath": by_id("parts-part1")},
        {"fullpath": by_id("new-ext4")},
        {"name": "sdx"},
        {"fullpath": by_id("new-1a")},  # an OSD of osd-migrate: no problem
    ]
    world.storage(useAllNodes=False, devicePathFilter=None, nodes=[{"name": "h1", "devices": devices}, {"name": "h2"}])
    log = finished(world, "named", ["run", *CONFIRMED])
    places += [("h1", by_id("named")), ("h1", by_id("parts-part1"))]
    weights = {len(places) - 2: 0.01}
    found = new_osds.expect(world, places, ZONES, weights)
    classes = {node["name"]: node.get("device_class") for node in world.ceph("osd", "tree")["nodes"]}
    assert classes[f"osd.{found[('h1', by_id('named'))]}"] == "fast", classes
    settled(world, ["h1", "h2"], untouched)
    reported(world, log, "h1", ["sdx", "new-ext4"])
    world.lab("wait-clean", "60")
    world.lab("verify")
    world.say("by name: a disk and a partition became OSDs, two devices are reported; an OSD created by hand is started; the OSDs of h3 serve")
    return weights


def reported(world, log, node, devices):
    """Checks that each rejected device is in a warning of the log, in an Event, and in the status of the node."""
    warnings = [line for line in log.splitlines() if " WARN " in line]
    events = [e["message"] for e in world.get("events")["items"] if e["reason"] == "DeviceProblemFound" and e["type"] == "Warning"]
    status = "; ".join(world.nodes()[node]["problems"])
    for device in devices:
        for where, texts in [("log", warnings), ("Events", events)]:
            assert any(node in text and device in text for text in texts), f"{node} {device} is not in the {where}: {texts}"
        assert device in status, f"{device} is not in the status of {node}: {status}"
    print("\n".join(f"    {text}" for text in events), flush=True)


def taint(world, places, weights):
    """Adds a taint to h2, whose OSDs get the toleration one after the other, so that they can start again."""
    world.kubectl("taint", "node", "h2", "lab=later:NoSchedule")
    epoch = world.epoch()
    finished(world, "tainted", ["provision", *CONFIRMED])
    found = new_osds.expect(world, places, ZONES, weights)
    for (host, _), osd in found.items():
        pod = world.get("deployment", f"rook-ceph-osd-{osd}")["spec"]["template"]["spec"]
        tolerated = any(t.get("key") == "lab" and t.get("effect") in (None, "", "NoSchedule") for t in pod.get("tolerations", []))
        assert tolerated == (host == "h2"), f"osd.{osd} on {host}: {pod.get('tolerations')}"
    world.expect_downs_on_one_host(epoch)
    most = int(world.lab("epochs", str(epoch)).stdout.split()[-1])
    assert most == 1, f"{most} OSDs were down at once"
    world.lab("wait-clean", "60")
    world.lab("verify")
    world.say("a taint on h2: its OSDs tolerate it, restarted one after the other")


def on_file(world, places, weights, untouched):
    """Creates one OSD on a file of each selected node, for tests of clusters without disks."""
    world.storage(nodes=[{"name": "h3"}])
    env = {"TEST_ENVIRONMENT_OSD_STORE_ON_FILE": "1"}
    finished(world, "on-file", ["provision", *CONFIRMED], env=env)
    places.append(("h3", FILE))
    found = new_osds.expect(world, places, ZONES, weights)
    size, used = world.lab("on", "h3", "stat", "-c", "%s %b", FILE).stdout.split()
    assert int(size) == 10_000_000_000 or int(size) == 10 << 30, size
    assert int(used) * 512 < int(size) / 2, f"{FILE} is not sparse: {used} blocks"
    osd = found[("h3", FILE)]
    assert "test" in json.dumps(world.get("deployment", f"rook-ceph-osd-{osd}")["metadata"]).lower(), "the Deployment is not marked as one for tests"
    settled(world, ["h3"], untouched)
    world.lab("wait-clean", "60")
    world.lab("verify")
    finished(world, "on-file-again", ["provision", *CONFIRMED], env=env)
    new_osds.expect(world, places, ZONES, weights)
    world.say("store on file: one OSD on h3's file, no second OSD by a second run")
