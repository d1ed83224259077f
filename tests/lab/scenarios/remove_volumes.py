"""OSDs on LVM and under dm-crypt are removed by request, on u1, and nothing of them is left on its disks.

One has its database in a group that has a volume of another owner, two are encrypted (a disk, a volume), and one shares
its volume group with an OSD that stays. The agents of two of them are killed while they wipe. One disk is marked. The
volumes of others are unchanged.
"""
import json
import random
import time

from . import kills, remove
from .lvm import NEIGHBOUR, content, tags
from .new_osds import by_id
from .provision import answer
from .volumes import node, volumes

WITH_DB, CRYPT_DISK, CRYPT_VOLUME, SHARES, STAYS = 3, 4, 5, 6, 7
LEAVE = [WITH_DB, CRYPT_DISK, CRYPT_VOLUME, SHARES]
DISKS = {WITH_DB: "data-a", CRYPT_DISK: "data-b", CRYPT_VOLUME: "data-c"}
KINDS = {WITH_DB: ["lvm-db", "metadata"], CRYPT_DISK: ["raw-crypt"], CRYPT_VOLUME: ["lvm-crypt"]}
MOMENTS = [(WITH_DB, "wipe", 0, "agent"), (SHARES, "wipe", 0, "agent")]
AGENT = ["-f", "^/opt/osd-migrate/osd-migrate node "]
WIPES = 4  # seconds, at most, that an agent works until it is killed


def run(world):
    bring_up(world)
    before, epoch, written = world.shape(), world.epoch(), world.written()
    keys = secrets(world)
    assert any("luks" in key for key in keys), keys
    around = kept(world)
    for osd in LEAVE:
        mark = ["--disk", "mark"] if osd == CRYPT_DISK else []
        remove.person(world, "remove", f"osd.{osd}", *mark, "--confirm", remove.WORDS)
    rng = random.Random(world.seed)
    kills.spread(world, MOMENTS, "removed", remove.RUN, {"agent": lambda world, _job: kill_agent(world, rng.uniform(0, WIPES))})
    for osd in LEAVE:
        remove.absent(world, osd)
    remove.nothing_left(world)
    remove.unchanged_but(world, before, set(LEAVE))
    assert kept(world) == around, f"volumes of others were changed:\n{around}\n{kept(world)}"
    assert not secrets(world), f"keys of OSDs that are removed: {secrets(world)}"
    on_disks(world)
    not_a_new_osd(world)
    world.expect_downs_on_one_host(epoch)
    world.lab("verify")
    for record in world.closed():
        at = " ".join(f"{word}@{moment[11:19]}" for word, moment in record["milestones"])
        world.say(f"osd.{record['osd']} {record['outcome']}: {at}")
    sent = len(world.written()) - len(written)
    world.say(f"removed with their volumes and mappings; others unchanged; {sent} commands to Ceph; all objects are equal")


def bring_up(world):
    world.up(layout="0=raw", osds=3, uml=True)
    for disk in DISKS.values():
        world.lab("disk", "u1", disk)
    world.lab("disk", "u1", "12", "shared")
    world.lab("disk", "u1", "8", "meta")
    for group, disk in (("metadata", "meta"), ("both", "shared")):
        world.lab("on", "u1", "vgcreate", "-q", "--yes", group, by_id(disk))
    world.lab("on", "u1", "bash", "-e", "-c", NEIGHBOUR, "-", by_id("meta"))
    for osd, (kind, *group) in KINDS.items():
        world.lab("volume-osd", str(osd), kind, node(world, DISKS[osd]), *group)
        world.say(f"osd.{osd} is created: {kind}")
    for osd in (SHARES, STAYS):
        world.lab("volume-osd", str(osd), "lvm-part", "both")
        world.say(f"osd.{osd} is created: lvm-part")
    world.lab("write", "100")
    world.lab("wait-clean", "300")


def kill_agent(world, seconds):
    """Kills the agent that wipes, so many seconds after its start."""
    world.until("an agent to start", 60, lambda: not world.lab("on", "u1", "pgrep", *AGENT, check=False).returncode, pause=0.1)
    time.sleep(seconds)
    killed = not world.lab("on", "u1", "pkill", "-KILL", *AGENT, check=False).returncode
    world.say(f"the agent {'is killed' if killed else 'had ended'} {seconds:.1f} s after its start")


def secrets(world):
    """Returns what the mons keep for encrypted volumes: keys of LUKS, and the users that read them."""
    keys = json.loads(world.lab("ceph", "config-key", "ls").stdout)
    users = [entry["entity"] for entry in world.ceph("auth", "ls")["auth_dump"]]
    return [key for key in keys if key.startswith("dm-crypt/")] + [user for user in users if "lockbox" in user]


def kept(world):
    """Returns what must not change: the volume of another owner, and that of the OSD that shares a group."""
    mine = {osd: fsid for osd, fsid in world.fsids().items() if osd == STAYS}
    shared = [lv for lv in volumes(world) if lv["vg_name"] == "both" and tags(lv).get("ceph.osd_fsid") in mine.values()]
    assert len(shared) == 1, volumes(world)
    return mine, shared, content(world, "metadata", "neighbour")


def on_disks(world):
    """Checks that nothing of the OSDs is on the disks of u1: volumes, groups, tags, mappings, content."""
    names = {(lv["vg_name"], lv["lv_name"]) for lv in volumes(world)}
    assert names == {("metadata", "neighbour"), ("both", f"data-{STAYS}")}, names
    on = lambda *words: world.lab("on", "u1", *words).stdout.split()  # noqa: E731
    groups = on("vgs", "--nohints", "--noheadings", "-o", "vg_name")
    assert sorted(groups) == ["both", "metadata"], groups
    assert not on("vgs", "--nohints", "--noheadings", "-o", "vg_tags"), "a tombstone is left on a group"
    mapped = on("dmsetup", "ls", "--target", "crypt")
    assert mapped in ([], ["No", "devices", "found"]), f"open mappings: {mapped}"
    for osd in (WITH_DB, CRYPT_VOLUME):
        left = int(world.lab("on", "u1", "bash", "-c", remove.ENDS, "-", by_id(DISKS[osd])).stdout)
        assert left == 0, f"the disk of osd.{osd} is not blank: {left} bytes at its ends are not 0"
    world.say("no volume, group, tag, mapping or key of them is left, and their disks are blank")


def not_a_new_osd(world):
    """Checks that the marked disk is rejected, and the blank ones could become OSDs."""
    world.storage(useAllNodes=False, nodes=[{"name": "u1", "devices": [{"name": by_id(disk)} for disk in DISKS.values()]}])
    job = world.start("inventory", ["plan", "--inventory", "-o", "json"])
    assert world.wait_for(job, 120) == ("Complete", 0), world.log(job)
    disks = {disk["stable"]: disk for disk in answer(world.log(job))["disks"]}
    verdicts = {osd: disks[by_id(disk)]["verdict"] for osd, disk in DISKS.items()}
    assert verdicts == {WITH_DB: "new", CRYPT_DISK: "rejected", CRYPT_VOLUME: "new"}, disks
    assert f"osd.{CRYPT_DISK}" in disks[by_id(DISKS[CRYPT_DISK])]["why"], disks
    world.say(f"plan --inventory: {verdicts}")
