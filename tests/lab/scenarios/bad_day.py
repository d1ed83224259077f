"""Real failures of ceph-volume, of disks and of people.

The OSD is migrated nevertheless, or quarantined with a message that names the command to type. Faults of ceph-volume
that need only a list are in `faults`.
"""
import json
import os
import subprocess

from . import faults
from .disks import attached, digest

OSDS = 7
LAYOUT = ",".join(f"{osd}=bluestore-dev" for osd in range(OSDS))
NEXT = OSDS  # the id that Ceph assigns next
GIB = 1 << 30
NO_FSID = "00000000-0000-0000-0000-000000000000"


def run(world):
    world.up(layout=LAYOUT, osds=OSDS)
    before, fsids = begin(world)
    rolled_back_past_shim(world)
    purged_without_issued_fsid(world)
    purged_with_issued_fsid(world)
    another_id(world)
    taken_for_prepared(world)
    something_else_on_it(world)
    disk_in_trouble(world)
    no_tmpfs(world)
    world.expect_migrated(before, fsids, range(OSDS))
    world.down_completely()
    label_copies(world)


def begin(world):
    """Sets on each OSD what a purge loses: a reweight, an affinity, upmaps from it and onto it."""
    for osd in range(OSDS):
        world.lab("ceph", "osd", "primary-affinity", str(osd), f"0.{osd + 3}")
    world.lab("ceph", "osd", "reweight", "3", "0.9")
    world.lab("wait-clean", "120")
    for osd in range(OSDS):
        upmap(world, osd, (osd + 3) % 6)
    world.lab("wait-clean", "120")
    return faults.begin(world)


def upmap(world, source, target):
    """Adds an upmap from one OSD to another one on the same host."""
    taken = {item["pgid"] for item in upmaps(world)}
    pgs = world.ceph("pg", "ls-by-pool", "labpool")["pg_stats"]
    pg = next(pg["pgid"] for pg in pgs if source in pg["up"] and pg["pgid"] not in taken)
    world.lab("ceph", "osd", "pg-upmap-items", pg, str(source), str(target))
    assert pg in {item["pgid"] for item in upmaps(world)}, f"Ceph did not accept the upmap of {pg}"


def upmaps(world):
    return world.ceph("osd", "dump")["pg_upmap_items"]


def slot(world, osd):
    return next((slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == osd), None)


def quarantined(world, job, osd, *words, seconds=200):
    """Checks that the Job ended with this OSD quarantined, and returns the reason."""
    log = faults.expect_end(world, job, 11, seconds)
    why = world.records()[osd]["quarantine"]["why"]
    world.say(f"osd.{osd} was quarantined: {why}")
    assert why.replace("NAMESPACE", "rook-ceph") in log, log
    for word in words:
        assert word in why, f"`{word}` is not in: {why}"
    return why


def lines(world, job, *words):
    for line in world.log(job).splitlines():
        if any(word in line for word in words):
            print("    " + line[:400], flush=True)


# ---- the id is purged


def rolled_back_past_shim(world):
    """Purges the id by ceph-volume's own rollback without the shim: the bootstrap key may purge a new id."""
    before = world.shape()
    faults.fail(world, 0, ["rollback-past-shim"])
    job = world.start("rolled-back", faults.select(0))
    world.until("osd.0 to be purged", 120, lambda: slot(world, 0) is None, pause=0.02)
    lost = [item for item in before["upmaps"] if item not in upmaps(world)]
    world.say(f"ceph-volume purged osd.0 and bypassed the shim; upmaps lost with it: {lost}")
    faults.expect_end(world, job, 0, 300)
    restored(world, job, 0, before, lost)


def purged_without_issued_fsid(world):
    """Purges the id while its rebuild waits, and no issued fsid is known.

    The OSD is quarantined with the commands that register the id again. After they were typed, and `retry`, the next
    run migrates it. By then other OSDs of its host have complete copies of its PGs.
    """
    before, old = world.shape(), world.fsids()[3]
    job = world.start("purged-first", faults.select(3))
    faults.block_before_rebuild(world, 3)
    lost = purge(world, 3, before)
    faults.unblock_pods(world)
    commands = (f"ceph osd new {old} 3", "ceph osd destroy 3 --yes-i-really-mean-it")
    quarantined(world, job, 3, *commands)
    world.until("other OSDs to have its PGs", 120, lambda: states(world) == {"active+clean"})
    for command in commands:
        world.lab(*command.split())
    world.command("retry", "osd.3")
    job = world.start("taken-back", faults.select(3))
    world.until("PGs that wait for it, complete on other OSDs", 60, lambda: "active+clean+remapped" in states(world), pause=0.1)
    faults.expect_end(world, job, 0, 300)
    restored(world, job, 3, before, lost)


def states(world):
    """Returns the states of the PGs."""
    return {pg["state"] for pg in world.ceph("pg", "dump", "pgs_brief")["pg_stats"]}


def purged_with_issued_fsid(world):
    """Purges the id while its rebuild waits, and an issued fsid is known: the run registers the id again.

    It is another OSD, because three failed attempts on one OSD would be too many.
    """
    before, old = world.shape(), world.fsids()[6]
    faults.fail(world, 6, ["kill-after-new"])
    job = world.start("purged", faults.select(6))
    world.until("an issued fsid of osd.6", 120, lambda: slot(world, 6)["uuid"] not in (old, NO_FSID), pause=0.05)
    faults.block_pods(world)
    world.until("osd.6 to be destroyed again", 60, lambda: "destroyed" in slot(world, 6)["state"], pause=0.1)
    lost = purge(world, 6, before)
    faults.unblock_pods(world)
    faults.expect_end(world, job, 0, 300)
    restored(world, job, 6, before, lost)


def purge(world, osd, before):
    """Purges an OSD. Returns the upmaps that Ceph removed since `before`."""
    world.lab("ceph", "osd", "purge", str(osd), "--force", "--yes-i-really-mean-it")
    lost = [item for item in before["upmaps"] if item not in upmaps(world)]
    world.say(f"osd.{osd} was purged by an administrator while its rebuild waited; upmaps lost with it: {lost}")
    return lost


def restored(world, job, osd, before, lost):
    lines(world, job, "registered its id again", "restored its CRUSH location", "restored the upmaps of PGs")
    own = [item for item in lost if any(osd in pair.values() for pair in item["mappings"])]
    assert own, "no upmap of it was lost, so none was restored"
    assert all(item in upmaps(world) for item in own), f"lost: {own}, present: {upmaps(world)}"
    # Without its item, CRUSH maps other PGs to other OSDs, and the mons remove the upmaps of those PGs. No record has them:
    # to add them again is the work of the balancer.
    for item in [item for item in lost if item not in own]:
        pairs = [str(osd) for pair in item["mappings"] for osd in (pair["from"], pair["to"])]
        world.say(f"Ceph also removed an upmap of other OSDs: {item}")
        world.lab("ceph", "osd", "pg-upmap-items", item["pgid"], *pairs)
    world.lab("wait-clean", "120")
    assert world.shape() == before, f"the cluster changed its shape:\n{before}\n{world.shape()}"
    world.say(f"osd.{osd} was migrated; id, CRUSH location, weight, class, reweight, affinity and upmaps are as before")


# ---- another id


def another_id(world):
    """Checks that an OSD under another id is removed if its fsid was issued by the shim."""
    faults.fail(world, 1, ["ignore-osd-id-behind-shim"])
    job = world.start("another-id", faults.select(1))
    world.until("another id", 120, lambda: slot(world, NEXT), pause=0.05)
    faults.expect_end(world, job, 0, 300)
    lines(world, job, "by mistake")
    assert slot(world, NEXT) is None, "the id that was created by mistake still exists"
    world.say(f"osd.1: ceph-volume created osd.{NEXT} on its disk; osd-migrate removed it and migrated osd.1")


# ---- ceph-volume considers the disk prepared


def taken_for_prepared(world):
    faults.fail(world, 2, ["already-prepared", "dm-crypt-for-a-while"])
    faults.expect(world, "taken-for-prepared", faults.select(2), 0, 300)
    faults.print_faults(world, "taken-for-prepared", 2)


def something_else_on_it(world):
    """Checks that an OSD is quarantined if its disk gets other content after the wipe.

    That is an OSD under another id, created without the shim, and then a LUKS header. The message has the command that
    zaps the disk. After that and a retry, the OSD is migrated.
    """
    faults.fail(world, 4, ["fail-mkfs", "ignore-osd-id-past-shim"])
    quarantined(world, world.start("nobodys-id", faults.select(4)), 4, f"osd.{NEXT}", zap(4))
    assert slot(world, NEXT), "osd-migrate purged an id that does not belong to it"
    world.lab("ceph", "osd", "purge", str(NEXT), "--force", "--yes-i-really-mean-it")
    zapped(world, 4)
    faults.fail(world, 4, ["dm-crypt"])
    quarantined(world, world.start("dm-crypt", faults.select(4)), 4, "device LUKS", zap(4))
    zapped(world, 4)
    faults.expect(world, "blank", faults.select(4), 0, 300)


def zap(osd):
    return f"ceph-volume lvm zap /dev/disk/by-id/lab-osd{osd}"


def zapped(world, osd):
    """Types the command of the message, with the variable that loop devices need."""
    world.lab("on", faults.host_of(osd), "env", "CEPH_VOLUME_ALLOW_LOOP_DEVICES=1", *zap(osd).split())
    world.lab("settle", faults.host_of(osd))
    world.command("retry", f"osd.{osd}")


# ---- the disk


def disk_in_trouble(world):
    """Changes osd.5's disk while its rebuild waits: read-only, smaller than before, opened exclusively by another process.

    Each time the OSD is quarantined, and retried after the cause was removed.
    """
    job = world.start("read-only", faults.select(5))
    faults.block_before_rebuild(world, 5)
    (_, device), image = attached(world)["osd5"], world.image("osd5")
    world.lab("on", "h3", "blockdev", "--setro", device)
    faults.unblock_pods(world)
    quarantined(world, job, 5, "read-only")
    world.lab("on", "h3", "blockdev", "--setrw", device)

    size, sha = 6 * GIB, digest(image)
    subprocess.run(["truncate", "-s", str(5 * GIB), image], check=True)
    world.lab("on", "h3", "losetup", "-c", device)
    world.command("retry", "osd.5")
    quarantined(world, world.start("shrank", faults.select(5)), 5, "found no disk")
    subprocess.run(["truncate", "-s", str(size), image], check=True)
    world.lab("on", "h3", "losetup", "-c", device)
    assert digest(image) == sha, "its disk was written to"

    opened = os.open(device, os.O_RDWR | os.O_EXCL)
    try:
        world.command("retry", "osd.5")
        quarantined(world, world.start("busy", faults.select(5)), 5, "in use")
    finally:
        os.close(opened)
    assert digest(image) == sha, "its disk was written to"
    world.command("retry", "osd.5")
    faults.expect(world, "fixed", faults.select(5), 0, 300)


def no_tmpfs(world):
    """Checks that the tmpfs that ceph-volume leaves behind ended with the agent's pod."""
    for host in world.hosts:
        mounts = world.lab("on", host, "cat", "/proc/mounts").stdout
        left = [line for line in mounts.splitlines() if line.split()[2] == "tmpfs" and "ceph" in line and "/pods/" not in line]
        assert not left, f"left on {host}: {left}"


# ---- Tentacle


PLACES = [0, GIB]  # offsets of the labels on a disk of 6 GiB


def label_copies(world):
    """Checks that no copy of the old OSD's label is left.

    Since Tentacle a label has copies, from 1 GiB on. ceph-volume considers a disk with one of them prepared. Its
    `raw list` omits the main device of an OSD with a database; osd-migrate finds that device nevertheless.
    """
    world.up(release="20.2", layout="0=bluestore-dev,1=bluestore-dev-db")
    before, fsids = faults.begin(world)
    assert labels(world, "osd0") == [fsids[0]] * 2, labels(world, "osd0")
    world.say(f"ceph-volume raw list reports of osd.1, which has a database: {raw_list(world, 'h2', 1)}")
    faults.fail(world, 0, ["label-copy", "kill-after-mkfs"])
    faults.expect(world, "tentacle", faults.RUN, 0, 400)
    faults.print_faults(world, "tentacle", 0)
    world.expect_migrated(before, fsids, [0, 1])
    now = world.fsids()
    for osd in (0, 1):
        assert labels(world, f"osd{osd}") == [now[osd]] * 2, labels(world, f"osd{osd}")
    world.say("no copy of a label names any other OSD than the new one")


def labels(world, disk):
    """Returns the OSD that each copy of the label names."""
    found = []
    with open(world.image(disk), "rb") as file:
        for place in PLACES:
            file.seek(place)
            head = file.read(60)
            found.append(head[23:59].decode() if head.startswith(b"bluestore block device") else None)
    return found


def raw_list(world, host, osd):
    """Returns what `ceph-volume raw list` of all devices reports of an OSD."""
    done = world.lab("on", host, "env", "CEPH_VOLUME_ALLOW_LOOP_DEVICES=1", "ceph-volume", "raw", "list")
    return json.loads(done.stdout).get(world.fsids()[osd])
