"""OSDs on LVM and under dm-crypt, recreated in place on u1: encrypted, then plain, then encrypted again.

Two OSDs share a volume group. Three OSDs have database, log or journal in a group that also has other volumes; one of
these is a Filestore. One OSD is encrypted as a whole disk. Meanwhile u1 loses power, and is started again with other
names of its disks. The volumes of the neighbours must not change.
"""
import json
import time

from .lvm import NEIGHBOUR, content, kernel_name, tags
from .new_osds import by_id, say_times

LVM, WITH_DB, CRYPT_DISK = 3, 4, 5
SHARING = (6, 7)
FILESTORE, WITH_WAL = 8, 9
DISKS = {LVM: "data-a", WITH_DB: "data-b", CRYPT_DISK: "data-c", FILESTORE: "data-d", WITH_WAL: "data-e"}
DATABASE_MIB = 1024


def run(world):
    world.up(layout="0=raw", osds=3, uml=True)
    create_osds(world)
    world.lab("write", "100")
    world.lab("wait-clean", "120")
    neighbours = {name: content(world, "metadata", name) for name in ("neighbour",)}
    encrypted(world)
    check_neighbours(world, neighbours)
    plain(world)
    check_neighbours(world, neighbours)
    power_cut(world)
    check_neighbours(world, neighbours)
    say_times(world)


def create_osds(world):
    for disk in DISKS.values():
        world.lab("disk", "u1", disk)
    world.lab("disk", "u1", "12", "shared")
    world.lab("disk", "u1", "8", "meta")
    on = lambda *words: world.lab("on", "u1", *words)  # noqa: E731
    on("vgcreate", "-q", "--yes", "metadata", by_id("meta"))
    on("vgcreate", "-q", "--yes", "both", by_id("shared"))
    on("bash", "-e", "-c", NEIGHBOUR, "-", by_id("meta"))
    kinds = {LVM: ["lvm"], WITH_DB: ["lvm-db", "metadata"], CRYPT_DISK: ["raw-crypt"], FILESTORE: ["lvm-filestore", "metadata"], WITH_WAL: ["lvm-wal", "metadata"]}
    on_disks = [(osd, kind, node(world, DISKS[osd]), *group) for osd, (kind, *group) in kinds.items()]
    for osd, kind, data, *group in [*on_disks, *((osd, "lvm-part", "both") for osd in SHARING)]:
        world.lab("volume-osd", str(osd), kind, data, *group)
        world.say(f"osd.{osd} is created: {kind}")


def declare(world, is_encrypted):
    """Declares whether the OSDs of u1 are encrypted, without a declaration for h1 to h3."""
    world.storage(useAllNodes=False, useAllDevices=False, nodes=[{"name": "u1", "config": {"encryptedDevice": str(is_encrypted).lower()}}])


def migrated(world, name, osds, left=None):
    """Checks that a run recreates these OSDs and no others.

    `left`: other selected OSDs, which it quarantines, with a part of the message.
    """
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    asked = ",".join(f"osd.{osd}" for osd in [*osds, *(left or {})])
    job = world.start(name, ["run", "--select", asked])
    result = world.wait_for(job, 1200)
    assert result == (("Failed", 11) if left else ("Complete", 0)), (result, world.log(job))
    done(world, before, fsids, osds)
    world.expect_downs_on_one_host(epoch)
    for osd, sentence in (left or {}).items():
        assert sentence in world.log(job), f"{sentence!r} is not in the log of {job}"
        assert world.records()[osd]["quarantine"], world.records()
    return fsids


def done(world, before, fsids, osds):
    world.lab("wait-clean", "120")
    assert world.shape() == before, f"the cluster changed its shape:\n{before}\n{world.shape()}"
    changed = {osd for osd, fsid in world.fsids().items() if fsid != fsids[osd]}
    assert changed == set(osds), f"recreated: {changed}, wanted: {osds}"
    keys = json.loads(world.lab("ceph", "config-key", "ls").stdout)
    gone = [key for key in keys for osd in changed if fsids[osd] in key]
    assert not gone, f"keys of OSDs that are gone: {gone}"
    world.lab("verify")


def encrypted(world):
    """Migrates LVM, LVM with a database or a log, Filestore, and two OSDs in one group to encrypted ones.

    The OSD on the encrypted disk already conforms.
    """
    declare(world, True)
    world.confirm()
    before = {lv["lv_name"]: lv for lv in volumes(world)}
    remade = [LVM, WITH_DB, FILESTORE, WITH_WAL, *SHARING]
    migrated(world, "encrypted", remade)
    world.expect_nothing_left()
    for osd in remade:
        main = of(world, osd, "block")
        assert crypt(world, main) and tags(main)["ceph.encrypted"] == "1", main
    database = of(world, WITH_DB, "db")
    assert (database["vg_name"], database["lv_size"]) == ("metadata", str(DATABASE_MIB << 20)), database
    assert crypt(world, database), "its database is not encrypted"
    assert world.ceph("osd", "metadata", str(WITH_DB))["bluefs_dedicated_db"] == "1"
    log = of(world, WITH_WAL, "wal")
    assert (log["vg_name"], crypt(world, log)) == ("metadata", True), log
    assert world.ceph("osd", "metadata", str(WITH_WAL))["bluefs_dedicated_wal"] == "1"
    for osd in SHARING:
        main, old = of(world, osd, "block"), before[f"data-{osd}"]
        assert (main["vg_name"], main["lv_size"]) == ("both", old["lv_size"]) and main["lv_uuid"] != old["lv_uuid"], (old, main)
    names = sorted(lv["lv_name"] for lv in volumes(world) if lv["vg_name"] in ("metadata", "both"))
    # Two data volumes, the database, the log and the neighbour. Filestore's journal is gone.
    assert len(names) == 5 and "neighbour" in names, f"in the shared groups: {names}"
    tagged = world.lab("on", "u1", "vgs", "--nohints", "--noheadings", "-o", "vg_tags", "both").stdout.strip()
    assert "tombstone" not in tagged, tagged
    world.say("LVM, LVM with a database or a log, Filestore, two in one group: encrypted; database and log as large as before in their group")


def plain(world):
    """Migrates encrypted OSDs to raw ones; an OSD that shares its disk cannot become raw, and is quarantined."""
    declare(world, False)
    # Only one of them: two failures would end the run.
    left = {SHARING[0]: "shares its disk or volume group with other volumes"}
    migrated(world, "plain", list(DISKS), left)
    for osd, disk in DISKS.items():
        found = world.lab("on", "u1", "blkid", "-p", "-o", "value", "-s", "TYPE", by_id(disk)).stdout.strip()
        assert found == "ceph_bluestore", f"osd.{osd} is on {found}"
    names = sorted(lv["lv_name"] for lv in volumes(world) if lv["vg_name"] == "metadata")
    assert names == ["neighbour"], f"in the group of the database: {names}"
    mapped = world.lab("on", "u1", "dmsetup", "ls", "--target", "crypt").stdout.strip().splitlines()
    assert len(mapped) == len(SHARING), f"open mappings: {mapped}"
    world.say("encrypted volumes and an encrypted disk: raw and plain; two OSDs that share a disk are not changed, with the reason")


def power_cut(world):
    """Powers u1 off during the migration of a raw OSD, and starts it again with other names of its disks."""
    declare(world, True)
    # Encrypted OSDs are declared again, so the quarantined OSD conforms.
    world.command("retry", f"osd.{SHARING[0]}", "-n", "rook-ceph")
    before, fsids = world.shape(), world.fsids()
    names = {disk: kernel_name(world, disk) for disk in DISKS.values()}
    job = world.start("power")
    # The OSD was recreated before, so its entry in the history proves nothing.
    rebuilds = lambda: any(word == "rebuild" for word, _ in world.records().get(LVM, {}).get("milestones", []))  # noqa: E731
    world.until(f"osd.{LVM} to be rebuilt", 100, rebuilds)
    time.sleep(25)
    world.lab("power-off", "u1")
    world.lab("rename-disks", "u1")
    world.lab("power-on", "u1")
    assert kernel_name(world, "data-a") != names["data-a"], names
    result = world.wait_for(job, 1200)
    assert result == ("Complete", 0), (result, world.log(job))
    done(world, before, fsids, list(DISKS))
    world.expect_nothing_left()
    world.say("u1 lost power during a migration and was started again with its disks renamed: all OSDs are encrypted")


# ---- building blocks


def node(world, disk):
    return f"/dev/{kernel_name(world, disk)}"


def volumes(world):
    fields = "lv_name,vg_name,lv_uuid,lv_size,lv_tags"
    text = world.lab("on", "u1", "lvs", "--nohints", "--reportformat", "json", "--units", "b", "--nosuffix", "-o", fields).stdout
    return json.loads(text)["report"][0]["lv"]


def of(world, osd, kind):
    """Returns the volume of that kind of an OSD."""
    fsid = world.fsids()[osd]
    (found,) = [lv for lv in volumes(world) if tags(lv).get("ceph.osd_fsid") == fsid and tags(lv).get("ceph.type") == kind]
    return found


def crypt(world, lv):
    path = f"/dev/{lv['vg_name']}/{lv['lv_name']}"
    return world.lab("on", "u1", "blkid", "-p", "-o", "value", "-s", "TYPE", path).stdout.strip() == "crypto_LUKS"


def check_neighbours(world, neighbours):
    for name, digest in neighbours.items():
        assert content(world, "metadata", name) == digest, f"metadata/{name} was written to"
