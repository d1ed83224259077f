"""ceph-volume, disks and people on a bad day, each for real: the OSD is finished all the same, or left alone with a sentence that
says what to type. The faults of ceph-volume that need no more than a list are in `faults`."""
import json
import os
import subprocess

from . import faults
from .disks import attached, digest

OSDS = 7
LAYOUT = ",".join(f"{osd}=bluestore-dev" for osd in range(OSDS))
NEXT = OSDS  # the id that Ceph gives next
GIB = 1 << 30
NO_FSID = "00000000-0000-0000-0000-000000000000"


def run(world):
    world.up(layout=LAYOUT, osds=OSDS)
    before, fsids = begin(world)
    rolled_back_past_us(world)
    purged_without_a_claim(world)
    purged_with_a_claim(world)
    another_id(world)
    taken_for_prepared(world)
    something_else_on_it(world)
    disk_in_trouble(world)
    no_tmpfs(world)
    world.expect_migrated(before, fsids, range(OSDS))
    left = world.down()
    assert not left, f"the lab left behind: {left}"
    label_copies(world)


def begin(world):
    """What a purge loses is set on each of them: a reweight, an affinity, upmaps from it and onto it."""
    for osd in range(OSDS):
        world.lab("ceph", "osd", "primary-affinity", str(osd), f"0.{osd + 3}")
    world.lab("ceph", "osd", "reweight", "3", "0.9")
    world.lab("wait-clean", "120")
    for osd in range(OSDS):
        upmap(world, osd, (osd + 3) % 6)
    world.lab("wait-clean", "120")
    return faults.begin(world)


def upmap(world, source, target):
    """Both lie on the same host."""
    taken = {item["pgid"] for item in upmaps(world)}
    pgs = world.ceph("pg", "ls-by-pool", "labpool")["pg_stats"]
    pg = next(pg["pgid"] for pg in pgs if source in pg["up"] and pg["pgid"] not in taken)
    world.lab("ceph", "osd", "pg-upmap-items", pg, str(source), str(target))
    assert pg in {item["pgid"] for item in upmaps(world)}, f"the upmap of {pg} was not taken"


def upmaps(world):
    return world.ceph("osd", "dump")["pg_upmap_items"]


def slot(world, osd):
    return next((slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == osd), None)


def quarantined(world, job, osd, *words, seconds=200):
    """It ended with this OSD left alone; the sentence."""
    log = faults.expect_end(world, job, 11, seconds)
    why = world.records()[osd]["quarantine"]["why"]
    world.say(f"osd.{osd} was left alone: {why}")
    assert why.replace("NAMESPACE", "rook-ceph") in log, log
    for word in words:
        assert word in why, f"`{word}` is not in: {why}"
    return why


def lines(world, job, *words):
    for line in world.log(job).splitlines():
        if any(word in line for word in words):
            print("    " + line[:400], flush=True)


# ---- the id is purged


def rolled_back_past_us(world):
    """ceph-volume's own rollback, past our stand-in: the bootstrap key may purge an id that is new."""
    before = world.shape()
    faults.fail(world, 0, ["rollback-past-us"])
    job = world.start("rolled-back", faults.select(0))
    world.until("osd.0 to be purged", 120, lambda: slot(world, 0) is None, pause=0.02)
    lost = [item for item in before["upmaps"] if item not in upmaps(world)]
    world.say(f"ceph-volume purged osd.0 past our stand-in; upmaps lost with it: {lost}")
    faults.expect_end(world, job, 0, 300)
    restored(world, job, 0, before, lost)


def purged_without_a_claim(world):
    """An administrator purges the id while its rebuild waits, no claim of ours known: the run halts, with the command that takes the
    id back; typed, the next run finishes. By then others of its host hold its PGs whole."""
    before, old = world.shape(), world.fsids()[3]
    job = world.start("purged-first", faults.select(3))
    faults.hold_before_rebuild(world, 3)
    lost = purge(world, 3, before)
    faults.let_pods_go(world)
    log = faults.expect_end(world, job, 10, 120)
    world.until("others to be filled with its PGs", 120, lambda: states(world) == {"active+clean"})
    for command in (f"ceph osd new {old} 3", "ceph osd destroy 3 --yes-i-really-mean-it"):
        assert command in log, f"`{command}` is not in:\n{log}"
        world.lab(*command.split())
    job = world.start("taken-back", faults.select(3))
    world.until("PGs that wait for it, whole on others", 60, lambda: "active+clean+remapped" in states(world), pause=0.1)
    faults.expect_end(world, job, 0, 300)
    restored(world, job, 3, before, lost)


def states(world):
    """Those that PGs are in."""
    return {pg["state"] for pg in world.ceph("pg", "dump", "pgs_brief")["pg_stats"]}


def purged_with_a_claim(world):
    """The same with a claim: the run takes the id back by itself. (Of another OSD: three attempts that fail would be too many.)"""
    before, old = world.shape(), world.fsids()[6]
    faults.fail(world, 6, ["kill-after-new"])
    job = world.start("purged", faults.select(6))
    world.until("a claim on osd.6", 120, lambda: slot(world, 6)["uuid"] not in (old, NO_FSID), pause=0.05)
    faults.hold_pods(world)
    world.until("osd.6 to be destroyed again", 60, lambda: "destroyed" in slot(world, 6)["state"], pause=0.1)
    lost = purge(world, 6, before)
    faults.let_pods_go(world)
    faults.expect_end(world, job, 0, 300)
    restored(world, job, 6, before, lost)


def purge(world, osd, before):
    """Upmaps that are gone since `before`."""
    world.lab("ceph", "osd", "purge", str(osd), "--force", "--yes-i-really-mean-it")
    lost = [item for item in before["upmaps"] if item not in upmaps(world)]
    world.say(f"osd.{osd} was purged by an administrator while its rebuild waited; upmaps lost with it: {lost}")
    return lost


def restored(world, job, osd, before, lost):
    lines(world, job, "registered its id again", "restored its CRUSH location", "restored the upmaps of PGs")
    own = [item for item in lost if any(osd in pair.values() for pair in item["mappings"])]
    assert own, "no upmap of it was lost, so none was put back"
    assert all(item in upmaps(world) for item in own), f"lost: {own}, there: {upmaps(world)}"
    # Without its item CRUSH maps other PGs otherwise, and the mons drop their upmaps. Those nobody recorded; the balancer's work.
    for item in [item for item in lost if item not in own]:
        pairs = [str(osd) for pair in item["mappings"] for osd in (pair["from"], pair["to"])]
        world.say(f"an upmap of others went too: {item}")
        world.lab("ceph", "osd", "pg-upmap-items", item["pgid"], *pairs)
    world.lab("wait-clean", "120")
    assert world.shape() == before, f"the cluster changed its shape:\n{before}\n{world.shape()}"
    world.say(f"osd.{osd} was migrated; id, place, weight, class, reweight, affinity and upmaps are as before")


# ---- another id


def another_id(world):
    """--osd-id has no effect behind our stand-in: the other OSD is a claim of ours."""
    faults.fail(world, 1, ["ignore-osd-id-behind-us"])
    job = world.start("another-id", faults.select(1))
    world.until("another id", 120, lambda: slot(world, NEXT), pause=0.05)
    faults.expect_end(world, job, 0, 300)
    lines(world, job, "by mistake")
    assert slot(world, NEXT) is None, "the id that was made by mistake is still there"
    world.say(f"osd.1: ceph-volume made osd.{NEXT} on its disk; it was found and undone, and osd.1 migrated")


# ---- it takes the disk for prepared


def taken_for_prepared(world):
    faults.fail(world, 2, ["already-prepared", "dm-crypt-for-a-while"])
    faults.expect(world, "taken-for-prepared", faults.select(2), 0, 300)
    faults.told(world, "taken-for-prepared", 2)


def something_else_on_it(world):
    """After our wipe something comes onto the disk that is not ours: an OSD under another id, made past our stand-in; a LUKS
    header. It is left alone, with the command that makes it blank; typed, and tried again, it is finished."""
    faults.fail(world, 4, ["fail-mkfs", "ignore-osd-id-past-us"])
    quarantined(world, world.start("nobodys-id", faults.select(4)), 4, f"osd.{NEXT}", zap(4))
    assert slot(world, NEXT), "an id that is nobody's was purged by us"
    world.lab("ceph", "osd", "purge", str(NEXT), "--force", "--yes-i-really-mean-it")
    zapped(world, 4)
    faults.fail(world, 4, ["dm-crypt"])
    quarantined(world, world.start("dm-crypt", faults.select(4)), 4, "device LUKS", zap(4))
    zapped(world, 4)
    faults.expect(world, "blank", faults.select(4), 0, 300)


def zap(osd):
    return f"ceph-volume lvm zap /dev/disk/by-id/lab-osd{osd}"


def zapped(world, osd):
    """As the sentence says. (Loop devices need leave.)"""
    world.lab("on", faults.host_of(osd), "env", "CEPH_VOLUME_ALLOW_LOOP_DEVICES=1", *zap(osd).split())
    world.lab("settle", faults.host_of(osd))
    world.command("retry", f"osd.{osd}")


# ---- the disk


def disk_in_trouble(world):
    """osd.5's disk while its rebuild waits: read-only, smaller than it was, held by somebody; each time it is left alone, and
    tried again when that is mended."""
    job = world.start("read-only", faults.select(5))
    faults.hold_before_rebuild(world, 5)
    (_, device), image = attached(world)["osd5"], world.image("osd5")
    world.lab("on", "h3", "blockdev", "--setro", device)
    faults.let_pods_go(world)
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

    held = os.open(device, os.O_RDWR | os.O_EXCL)
    try:
        world.command("retry", "osd.5")
        quarantined(world, world.start("busy", faults.select(5)), 5, "in use")
    finally:
        os.close(held)
    assert digest(image) == sha, "its disk was written to"
    world.command("retry", "osd.5")
    faults.expect(world, "mended", faults.select(5), 0, 300)


def no_tmpfs(world):
    """ceph-volume leaves its tmpfs behind; it goes with the agent's pod."""
    for host in world.hosts:
        mounts = world.lab("on", host, "cat", "/proc/mounts").stdout
        left = [line for line in mounts.splitlines() if line.split()[2] == "tmpfs" and "ceph" in line and "/pods/" not in line]
        assert not left, f"left on {host}: {left}"


# ---- Tentacle


PLACES = [0, GIB]  # where labels lie on a disk of 6 GiB


def label_copies(world):
    """Since Tentacle a label has copies, at 1 GiB and on. Those of the old OSD must be gone: ceph-volume takes a disk with one of
    them for prepared. And its `raw list` loses the main device of an OSD with a database, which is found all the same."""
    world.up(release="20.2", layout="0=bluestore-dev,1=bluestore-dev-db")
    before, fsids = faults.begin(world)
    assert labels(world, "osd0") == [fsids[0]] * 2, labels(world, "osd0")
    world.say(f"ceph-volume raw list says of osd.1, which has a database: {raw_list(world, 'h2', 1)}")
    faults.fail(world, 0, ["label-copy", "kill-after-mkfs"])
    faults.expect(world, "tentacle", faults.RUN, 0, 400)
    faults.told(world, "tentacle", 0)
    world.expect_migrated(before, fsids, [0, 1])
    now = world.fsids()
    for osd in (0, 1):
        assert labels(world, f"osd{osd}") == [now[osd]] * 2, labels(world, f"osd{osd}")
    world.say("no copy of a label names any other OSD than the new one")


def labels(world, disk):
    """The OSD that each copy of the label names."""
    found = []
    with open(world.image(disk), "rb") as file:
        for place in PLACES:
            file.seek(place)
            head = file.read(60)
            found.append(head[23:59].decode() if head.startswith(b"bluestore block device") else None)
    return found


def raw_list(world, host, osd):
    """What ceph-volume says of an OSD, asked for all devices."""
    done = world.lab("on", host, "env", "CEPH_VOLUME_ALLOW_LOOP_DEVICES=1", "ceph-volume", "raw", "list")
    return json.loads(done.stdout).get(world.fsids()[osd])
