"""Existing OSDs of u1 get databases on another disk, as the CephCluster declares it.

First an OSD on LVM, whose agent is killed meanwhile, and a raw OSD, whose volume group is full when its database is to
be created. Then these are encrypted too, with an OSD whose database was on its own disk, and an OSD in a directory. The
volume group of the databases also has a volume that does not belong to Ceph.
"""
from . import kills, own_user
from .lvm import NEIGHBOUR, content, tags
from .new_osds import by_id, say_times
from .volumes import crypt, done, migrated, node, of, volumes

RAW, LVM, RAW_DB, DIRECTORY = 3, 4, 5, 6
DISKS = {RAW: "data-a", LVM: "data-b", RAW_DB: "data-c"}
DATABASE_MIB = 1024


def run(world):
    world.up(layout="0=raw", osds=3, uml=True)
    for disk in [*DISKS.values(), "own-db", "available"]:
        world.lab("disk", "u1", disk)
    world.lab("disk", "u1", "8", "meta")
    world.lab("disk", "u1", "12", "system")
    kinds = {RAW: ["raw"], LVM: ["lvm"], RAW_DB: ["raw-db", node(world, "own-db")], DIRECTORY: ["filestore-dir"]}
    for osd, (kind, *group) in kinds.items():
        world.lab("volume-osd", str(osd), kind, node(world, DISKS.get(osd, "system")), *group)
        world.say(f"osd.{osd} is created: {kind}")
    world.lab("write", "100")
    world.lab("wait-clean", "120")
    world.confirm()
    too_large(world)
    on_lvm(world)
    neighbour = a_neighbour(world)
    full(world)
    encrypted(world)
    from_directory(world)
    vg, digest = neighbour
    assert content(world, vg, "neighbour") == digest, f"{vg}/neighbour was written to"
    say_times(world)


def declare(world, size_mib=DATABASE_MIB, is_encrypted=False, **more):
    config = {"metadataDevice": by_id("meta"), "databaseSizeMB": str(size_mib), "encryptedDevice": str(is_encrypted).lower()}
    world.storage(useAllNodes=False, useAllDevices=False, nodes=[{"name": "u1", "config": config, **more}])


def too_large(world):
    """Checks that no OSD is recorded if there is not enough space for its database, and that it is reported."""
    declare(world, 20000)
    fsids, written = world.fsids(), world.written()
    job = world.start("too-large", ["run", "--select", f"osd.{LVM}"])
    result = world.wait_for(job, 300)
    log = world.log(job)
    assert "there is not enough space for its database on" in log, log
    # The first act creates the Ceph user of the runs.
    new = [line for line in world.written()[len(written) :] if not own_user.CREATE_USER.search(line)]
    assert (world.fsids(), new, world.records()) == (fsids, [], {}), (result, new, log)
    world.say(f"not enough space for a database: nothing is done, {result[0]} with exit code {result[1]}")


def on_lvm(world):
    """Migrates an OSD on LVM; the metadata disk is blank and gets a volume group.

    The agent is killed after it has created its volumes, while ceph-volume writes to them. Volume groups, volumes and
    mounts are left behind.
    """
    declare(world)
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    job = world.start("on-lvm", ["run", "--select", f"osd.{LVM}"])
    is_created = lambda: {lv["lv_name"].rsplit("-", 5)[0] for lv in volumes(world)} >= {"osd-block", "osd-db"}  # noqa: E731
    # The name of its own old volume begins in the same way.
    old = {lv["lv_name"] for lv in volumes(world)}
    world.until("its volumes to exist", 200, lambda: is_created() and not old & {lv["lv_name"] for lv in volumes(world)})
    kills.KINDS["agent"](world, job)
    left = [lv["vg_name"] for lv in volumes(world)]
    assert len(left) == 2, f"left behind: {left}"
    result = world.wait_for(job, 600)
    assert result == ("Complete", 0), (result, world.log(job))
    done(world, before, fsids, [LVM])
    world.expect_downs_on_one_host(epoch)
    world.expect_nothing_left()
    has_database(world, LVM)
    on_meta(world, 1)
    world.say("from LVM to LVM with a database on another disk; the killed agent left two groups behind: each has one volume")


def a_neighbour(world):
    world.lab("on", "u1", "bash", "-e", "-c", NEIGHBOUR, "-", by_id("meta"))
    (vg,) = {lv["vg_name"] for lv in volumes(world) if lv["lv_name"] == "neighbour"}
    return vg, content(world, vg, "neighbour")


def full(world):
    """Checks that an OSD is quarantined if another volume fills the group after its stop.

    The OSD is completed when there is enough space again.
    """
    before, fsids = world.shape(), world.fsids()
    (vg,) = {lv["vg_name"] for lv in volumes(world) if lv["lv_name"] == "neighbour"}
    job = world.start("full", ["run", "--select", f"osd.{RAW}"])
    stops = lambda: any(word == "stop" for word, _ in world.records().get(RAW, {}).get("milestones", []))  # noqa: E731
    world.until(f"osd.{RAW} to be stopped", 100, stops)
    world.lab("on", "u1", "lvcreate", "-q", "--nohints", "--yes", "-n", "filler", "-l", "100%FREE", vg)
    result = world.wait_for(job, 600)
    log = world.log(job)
    assert result == ("Failed", 11) and f"0 MiB are available, but {DATABASE_MIB} MiB are needed" in log, (result, log)
    assert world.records()[RAW]["quarantine"], world.records()
    world.lab("on", "u1", "lvremove", "-q", "--nohints", "--yes", f"{vg}/filler")
    world.command("retry", f"osd.{RAW}", "-n", "rook-ceph")
    job = world.start("room-again", ["run", "--select", f"osd.{RAW}"])
    result = world.wait_for(job, 600)
    assert result == ("Complete", 0), (result, world.log(job))
    done(world, before, fsids, [RAW])
    world.expect_nothing_left()
    has_database(world, RAW)
    on_meta(world, 2)
    world.say("raw to LVM with a database on another disk; without enough space it was quarantined, with enough space completed")


def encrypted(world):
    """Encrypts the OSDs: those with a volume for their database have one again, the raw OSD gets one."""
    declare(world, is_encrypted=True)
    migrated(world, "encrypted", [RAW, LVM, RAW_DB])
    world.expect_nothing_left()
    for osd in DISKS:
        has_database(world, osd)
        for kind in ("block", "db"):
            assert crypt(world, of(world, osd, kind)), f"{kind} of osd.{osd} is plain"
    on_meta(world, 3)
    found = world.lab("on", "u1", "blkid", "-p", by_id("own-db"), check=False).stdout.strip()
    assert not found, f"the disk of the old database contains: {found}"
    world.say("all three encrypted, data and database")


def from_directory(world):
    """Migrates an OSD in a directory to an available disk, encrypted, with its database on the shared disk."""
    directory = f"/var/storage/data{DIRECTORY}/osd{DIRECTORY}"
    world.lab("on", "u1", "test", "-e", f"{directory}/whoami")
    declare(world, is_encrypted=True, devices=[{"name": by_id("available")}])
    fsids, epoch = world.fsids(), world.epoch()
    job = world.start("directory")
    result = world.wait_for(job, 1200)
    assert result == ("Complete", 0), (result, world.log(job))
    world.lab("wait-clean", "120")
    now = world.fsids()
    assert {osd for osd in fsids if now.get(osd) != fsids[osd]} == {DIRECTORY} and now.keys() == fsids.keys(), (fsids, now)
    world.expect_downs_on_one_host(epoch)
    world.expect_nothing_left()
    world.lab("verify")
    has_database(world, DIRECTORY)
    assert crypt(world, of(world, DIRECTORY, "block")) and crypt(world, of(world, DIRECTORY, "db"))
    on_meta(world, 4)
    gone = world.lab("on", "u1", "test", "-e", directory, check=False).returncode
    assert gone != 0, f"{directory} still exists"
    closed = len(world.closed())
    job = world.start("nothing-more")
    result = world.wait_for(job, 300)
    assert result == ("Complete", 0) and len(world.closed()) == closed, (result, world.log(job))
    world.say("from a directory to an available disk, encrypted, its database on another disk; second run: nothing to do")


def has_database(world, osd):
    metadata = world.ceph("osd", "metadata", str(osd))
    assert metadata["bluefs_dedicated_db"] == "1", metadata
    database = of(world, osd, "db")
    assert database["lv_size"] == str(DATABASE_MIB << 20), database
    assert tags(database)["ceph.osd_id"] == str(osd), database


def on_meta(world, count):
    """Checks the number of databases, and that all are in one volume group, on the metadata disk."""
    names = sorted(lv["lv_name"] for lv in volumes(world) if lv["lv_name"].startswith("osd-db-"))
    groups = {lv["vg_name"] for lv in volumes(world) if lv["lv_name"].startswith("osd-db-")}
    vg = world.lab("on", "u1", "pvs", "--nohints", "--noheadings", "-o", "vg_name", by_id("meta")).stdout.strip()
    assert len(names) == count and groups == {vg}, (names, groups, vg)
