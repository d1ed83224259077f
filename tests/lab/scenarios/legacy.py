"""Every legacy kind of OSD, migrated by the Job to what the CephCluster declares.

Several kinds share a lab. The objects are compared afterwards. Other data on the disks does not change, and parts of
the old OSD on other devices are cleared. `make test` has the first row of the matrix; with --full all rows, on three
releases and on a partly upgraded cluster, each with racks, roots and pools (variety.py).
"""

from . import variety
from .new_osds import seconds

RUN = ["run", "--confirm", "yes-really-migrate-osds"]
# osd.N is on host N % 3 + 1. OSDs in directories are on one host, so that they share its available disks.
MIXED = ["filestore-ext4", "filestore-dir", "bluestore-part-db", "filestore-journal", "bluestore-dir", "rook-part-db",
         "bluestore-dev-db", "bluestore-hand-part", "raw"]  # fmt: skip
REST = ["filestore-part", "bluestore-part", "rook-part", "rook-filestore", "bluestore-dev", "filestore-journal", "raw-part", "raw-db",
        "bluestore-part-db"]  # fmt: skip
BLUESTORE = ["bluestore-part", "bluestore-dir", "bluestore-part-db", "rook-part", "rook-part-db", "bluestore-dev", "bluestore-dev-db",
             "bluestore-hand-part", "raw"]  # fmt: skip
HALF = ["filestore-part", "filestore-dir", "bluestore-dev", "filestore-ext4", "raw", "raw", "bluestore-part", "filestore-journal", "raw"]
# (release, release of the OSDs if it differs, kinds)
MATRIX = [("16.2.15", None, MIXED), ("16.2.15", None, REST), ("18.2", None, BLUESTORE), ("20.2", None, BLUESTORE), ("18.2", "16.2.15", HALF)]
AVAILABLE = "available"  # prefix of the selected disks, for OSDs in directories
# CRUSH weights are TiB; the lab's disks have 6 GiB.
WEIGHT_OF_A_DISK = 6 / 1024


def run(world):
    for row in MATRIX if world.full else MATRIX[:1]:
        bring_up(world, *row)
        if row != MATRIX[-1] and world.full:
            world.down_completely()


def bring_up(world, release, osd_release, kinds):
    world.say(f"Ceph {release}{f' with OSDs of {osd_release}' if osd_release else ''}: {', '.join(kinds)}")
    layout = ",".join(f"{osd}={kind}" for osd, kind in enumerate(kinds))
    world.up(layout=layout, osds=len(kinds), release=release, osd_release=osd_release)
    world.storage(devicePathFilter=f"^/dev/disk/by-id/lab-{AVAILABLE}-")
    osds = {osd: world.facts(osd) for osd in range(len(kinds))}
    legacy = [osd for osd, kind in enumerate(kinds) if not kind.startswith("raw")]
    world.lab("write", "200")
    if world.full:
        variety.customize(world, kinds)
    else:
        world.customize()
    before, fsids, bystanders = world.shape(), world.fsids(), digests(world, osds)
    epoch = world.epoch()
    migrate(world, osds, legacy)
    expect(world, osds, legacy, before, fsids)
    assert digests(world, osds) == bystanders, "a partition with other data was written to"
    world.expect_downs_on_one_host(epoch)
    if world.full:
        variety.stays_where_it_was_put(world, legacy)
    figures(world, osds, release, osd_release)


def digests(world, osds):
    """Returns the digests of partitions with other data (fsids show whether conforming OSDs are unchanged)."""
    found = {}
    for osd in osds.values():
        if osd.get("bystander"):
            found[osd["bystander"]] = world.lab("digest", *osd["bystander"].split()).stdout.split()[0]
    return found


def migrate(world, osds, legacy):
    """Migrates all OSDs in one Job.

    One OSD in a directory has no available disk at first, and the run reports it by name. After a disk was added, the
    next run migrates it.
    """
    homeless = [osd for osd in legacy if osds[osd]["kind"].endswith("-dir")]
    for osd in homeless[1:]:
        world.lab("disk", osds[osd]["host"], f"{AVAILABLE}-{osd}")
    log = finished(world, "plan", ["plan"], 60)
    print(log[log.find("OSD") :], flush=True)
    # If an OSD is left without a disk, the Job fails.
    end = ("Failed", 12) if homeless else ("Complete", 0)
    log = finished(world, "first", RUN, 60 + 60 * len(legacy), end)
    stores = world.stores()
    if not homeless:
        return
    waits = [osd for osd in homeless if osds[osd]["dir"] and world.fsids()[osd] == osds[osd]["uuid"]]
    assert len(waits) == 1, f"without a disk: {waits}, stores {stores}"
    host = osds[waits[0]]["host"]
    sentence = next((line for line in log.splitlines() if f"osd.{waits[0]} was refused" in line and f"node {host} has no available disk" in line), None)
    assert sentence, f"the log does not report that osd.{waits[0]} needs a disk:\n{log[-2000:]}"
    world.say(f"without a disk: {sentence[sentence.index(f'osd.{waits[0]} was') :][:300]}")
    world.lab("disk", host, f"{AVAILABLE}-more")
    finished(world, "second", RUN, 120)


def finished(world, name, args, limit, end=("Complete", 0)):
    world.start(name, args)
    result = world.wait_for(name, limit)
    log = world.log(name)
    assert result == end, (name, result, log[-6000:])
    return log


def expect(world, osds, legacy, before, fsids):
    world.lab("wait-clean", "120")
    world.lab("verify")
    world.expect_nothing_left()
    stores = world.stores()
    assert stores == dict.fromkeys(stores, "bluestore"), stores
    changed = {osd for osd, fsid in world.fsids().items() if fsid != fsids[osd]}
    assert changed == set(legacy), f"recreated: {sorted(changed)}, legacy: {legacy}"
    after = world.shape()
    moved = {f"osd.{osd}" for osd in legacy if osds[osd]["kind"].endswith("-dir")}
    before = {**before, "upmaps": still_of_use(world, before["upmaps"], after["upmaps"], moved)}
    assert weightless(after, moved) == weightless(before, moved), f"the cluster changed its shape:\n{before}\n{after}"
    for _, name, _, weight, _ in after["tree"]:
        assert name not in moved or abs(weight - WEIGHT_OF_A_DISK) < 0.0002, f"{name} weighs {weight}"
    for osd in legacy:
        cleared(world, osd, osds[osd])
        labels = world.get("deployment", f"rook-ceph-osd-{osd}")["spec"]["selector"]["matchLabels"]
        assert labels == {"app": "rook-ceph-osd", "ceph-osd-id": str(osd), "rook_cluster": "rook-ceph"}, (osd, labels)


def still_of_use(world, before, after, moved):
    """Returns the upmaps that must exist.

    After a weight in the tree changed, CRUSH chooses other OSDs for some PGs. A mon removes an upmap from an OSD that
    CRUSH does not choose any more.
    """
    lost = [item for item in before if item not in after]
    for item in lost if moved else []:
        up = world.ceph("pg", "map", item["pgid"])["up"]
        giver, taker = item["mappings"][0]["from"], item["mappings"][0]["to"]
        assert giver not in up, f"the upmap of {item['pgid']} from osd.{giver} onto osd.{taker} is gone, and its PG on {up}"
        world.say(f"after a weight changed, CRUSH does not choose osd.{giver} for PG {item['pgid']}: its upmap is gone")
    return [item for item in before if item not in lost or not moved]


def weightless(shape, moved):
    """Returns the shape without the weights of OSDs whose size has changed, and of the buckets above them."""
    tree = [(*node[:3], None if node[1] in moved else node[3], node[4]) for node in shape["tree"]]
    buckets, heavier = shape["crush"]["buckets"], {int(name.removeprefix("osd.")) for name in moved}
    while more := {id_ for id_, (*_, items) in buckets.items() if id_ not in heavier and heavier & {item for item, _ in items}}:
        heavier |= more
    weigh = lambda id_, weight: None if id_ in heavier else weight  # noqa: E731
    plain = {
        id_: (name, kind, weigh(id_, weight), [(item, weigh(item, of_item)) for item, of_item in items])
        for id_, (name, kind, weight, items) in buckets.items()
    }
    return {**shape, "tree": tree, "crush": {**shape["crush"], "buckets": plain}}


def cleared(world, osd, facts_):
    """Checks that the old OSD's parts on other devices are cleared, and that its directory is removed."""
    host = facts_["host"]
    for part in ["db", "wal", "journal"]:
        device = facts_.get(part, "")
        if not device.startswith("/dev/") or not lies_elsewhere(facts_, part):
            continue
        head = world.lab("on", host, "bash", "-c", 'head -c 1M "$1" | tr -d "\\0" | wc -c', "-", device).stdout.strip()
        assert head == "0", f"{part} of osd.{osd} on {device} was not cleared"
    if facts_["kind"].endswith("-dir"):
        gone = world.lab("on", host, "test", "-e", facts_["dir"], check=False).returncode
        assert gone, f"{facts_['dir']} of osd.{osd} still exists"


def lies_elsewhere(facts_, part):
    """Returns whether the part is on another disk than the one that was wiped."""
    return facts_["kind"].endswith(("-db", "-journal")) and part in ("db", "wal", "journal")


def figures(world, osds, release, osd_release):
    for record in world.closed():
        stages = seconds(record)
        kind = osds[record["osd"]]["kind"]
        words = ", ".join(f"{name} {took:.1f}" for name, took in stages.items())
        on = f"{release}/{osd_release}" if osd_release else release
        print(f"    {on} | {kind} | osd.{record['osd']} | {sum(stages.values()):.1f} s | {words}", flush=True)
