"""OSDs on a volume of LVM on their PersistentVolumeClaims, as Rook 1.3 created them, are recreated in place on u1.

One becomes raw, the other one encrypted, as their sets declare. The volume of the first one is active when its agent begins,
because the daemon's end does not close it, and its agent is killed. A raw OSD of a third set shows what a Deployment must
look like.
"""
from . import kills
from .new_osds import by_id, say_times
from .pvc import AS_DECLARED, device_set, expect_plan
from .pvc_migration import KINDS
from .pvc_osds import RUN, parts
from .volumes import done

TO_RAW, TO_ENCRYPTED, RAW = 3, 4, 5
SETS = {TO_RAW: "set1", TO_ENCRYPTED: "set2", RAW: "set3"}
ON_LVM = ("Mismatched", "on a volume of LVM on its PVC, which Rook has deprecated")
MOMENTS = [(TO_RAW, "rebuilding", 3.0, "agent pod")]


def run(world):
    world.up(osds=3, layout="0=raw", uml=True)
    pvcs = {osd: create(world, osd) for osd in SETS}
    declare(world)
    world.lab("write", "100")
    world.lab("wait-clean", "120")
    assert volumes(world) == 2, f"{volumes(world)} volumes of LVM are active"
    raw = world.get("deployment", f"rook-ceph-osd-{RAW}")
    expect_plan(world, "plan", pvcs, {TO_RAW: ON_LVM, TO_ENCRYPTED: ON_LVM, RAW: AS_DECLARED})
    shape, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    count, jobs = kills.spread(world, MOMENTS, "from-lvm", RUN, KINDS)
    world.say(f"{count} kills of an agent, {jobs} Jobs")
    done(world, shape, fsids, [TO_RAW, TO_ENCRYPTED])
    world.expect_downs_on_one_host(epoch)
    world.expect_nothing_left()
    expect_plan(world, "plan-after", pvcs, dict.fromkeys(SETS, AS_DECLARED))
    expect_devices(world, pvcs)
    found = world.get("deployment", f"rook-ceph-osd-{TO_RAW}")
    assert parts(found, TO_RAW, pvcs[TO_RAW]) == parts(raw, RAW, pvcs[RAW]), (found, raw)
    world.say("the Deployment of the OSD that is raw now has the parts of any raw OSD")
    say_times(world)


def create(world, osd):
    """Creates an OSD on a PVC of its set, and returns the name of the PVC."""
    pvc = world.lab("pvc", "u1", f"pv-{osd}", SETS[osd], "data", "0").stdout.strip()
    more = [] if osd == RAW else ["--lvm"]
    world.lab("pvc-osd", str(osd), pvc, *more, timeout=3600)
    world.say(f"osd.{osd} is created on {' '.join([pvc, *more])}")
    return pvc


def declare(world):
    world.storage(storageClassDeviceSets=[device_set(name, osd == TO_ENCRYPTED) for osd, name in SETS.items()])


def volumes(world):
    """Returns the number of active volumes of OSDs on u1."""
    return world.lab("on", "u1", "dmsetup", "ls").stdout.count("osd--block")


def expect_devices(world, pvcs):
    """Checks what is on the devices: a raw OSD, a LUKS header, and nothing of LVM."""
    for osd, wanted in ((TO_RAW, "ceph_bluestore"), (TO_ENCRYPTED, "crypto_LUKS")):
        device = by_id(world.get("pvc", pvcs[osd])["spec"]["volumeName"].removeprefix("lab-"))
        found = world.lab("on", "u1", "blkid", "-p", "-o", "value", "-s", "TYPE", device).stdout.strip()
        assert found == wanted, f"osd.{osd} is on {found}"
    groups = world.lab("on", "u1", "vgs", "--nohints", "--noheadings", "-o", "vg_name").stdout.split()
    assert not groups and not volumes(world), f"volume groups {groups}, {volumes(world)} active volumes"
    world.say("nothing of LVM is left on the devices")
