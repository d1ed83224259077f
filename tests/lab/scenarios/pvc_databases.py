"""An OSD on one PersistentVolumeClaim gets its database and its log on PVCs of their own.

Its set gets the templates `metadata` and `wal`. At first the PVC of the database contains data of another owner: the
OSD is not stopped, and the PVC does not change. With --full, on three releases of Ceph.

On the first release, a Rook is running. Its owner fences it before the edit of the set, and the run removes the fence.
"""
import json

from .disks import digest, fill
from .new_osds import by_id
from .owner_fence import Owner
from .provision import finished
from .pvc import bind, device_set, expect_plan
from .volumes import done

HOST, SET = "h2", "databases"
RUN = ["run", "--confirm", "yes-really-migrate-osds", "--select"]
TO_GET_DATABASE = ("Mismatched", "its database is with its data, declared on a PVC")
# As Rook orders them; the containers that follow them are the same without a database.
COPYING = ["blkdevmapper", "blkdevmapper-metadata", "blkdevmapper-wal", "activate"]


def run(world):
    for release in [None, "18.2", "20.2"] if world.full else [None]:
        if release:
            world.down()
        world.up(osds=3, layout="0=raw", release=release)
        world.lab("write", "100")
        databases(world, is_fenced=not release)


def databases(world, is_fenced=False):
    """Creates the OSD in a lab that is up and has objects, and leaves it there."""
    osd = max(world.fsids()) + 1
    pvcs = {"data": world.lab("pvc", HOST, "on-pvc", SET, "data", "0").stdout.strip()}
    world.lab("pvc-osd", str(osd), pvcs["data"])
    declare(world, list(pvcs))
    owner = Owner(world) if is_fenced else None
    world.lab("wait-clean", "120")
    if owner:
        owner.sets()
        owner.removes()
    pvcs |= {role: bound(world, role) for role in ("metadata", "wal")}
    world.say(f"osd.{osd} is created on {pvcs['data']}; {pvcs['metadata']} and {pvcs['wal']} are bound")
    if owner:
        owner.sets()
        owner.runs_before_the_edit()
    declare(world, list(pvcs))
    expect_plan(world, "no-database", {osd: pvcs["data"]}, {osd: TO_GET_DATABASE})
    if owner and world.full:
        owner.cannot_remove("Rook would change", f"osd.{osd}")
    foreign_is_refused(world, osd, pvcs["metadata"])
    added(world, osd, pvcs, owner)


def declare(world, roles):
    """Declares the set with these templates, and no node: a Rook would search the disks of each."""
    world.storage(storageClassDeviceSets=[device_set(SET, False, roles)], useAllNodes=False)


def disk(role):
    return f"on-pvc-{role}"


def bound(world, role):
    """Creates a PVC as Rook does for a template that is added to a set, and binds it, as its owner has to."""
    pvc = world.lab("pvc", HOST, "2", disk(role), SET, role, "0").stdout.strip()
    bind(world, pvc, disk(role))
    return pvc


def state(world, osd):
    """Returns what changes if an OSD is stopped or recreated."""
    (slot,) = [slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == osd]
    deployment = world.get("deployment", f"rook-ceph-osd-{osd}")
    return slot["uuid"], slot["up"], slot["up_from"], deployment["metadata"]["uid"], deployment["metadata"]["generation"]


def foreign_is_refused(world, osd, pvc):
    """Checks that an OSD is not stopped while the PVC of its database contains data of another owner."""
    fill(world, HOST, by_id(disk("metadata")), "ext4")
    sha, before = digest(world.image(disk("metadata"))), state(world, osd)
    job = world.start("foreign-database", [*RUN, f"osd.{osd}"])
    result = world.wait_for(job, 300)
    log = world.log(job)
    assert result[0] == "Failed" and result[1] != 1, (result, log)
    said = [line for line in log.splitlines() if pvc in line]
    assert said, f"no word about {pvc}:\n{log}"
    assert state(world, osd) == before, f"osd.{osd} was stopped or recreated:\n{log}"
    world.lab("on", HOST, "blockdev", "--flushbufs", by_id(disk("metadata")))
    assert digest(world.image(disk("metadata"))) == sha, f"{pvc} was written to:\n{log}"
    world.say(f"{pvc} has data of another owner: {result}, osd.{osd} is up and the PVC unchanged: {said[-1][:400]}")
    world.lab("on", HOST, "blkdiscard", "-f", by_id(disk("metadata")))
    if osd in world.records():
        world.command("retry", f"osd.{osd}", "-n", "rook-ceph")


def added(world, osd, pvcs, owner):
    """Checks that the OSD is recreated with database and log on its PVCs, and that another run changes nothing."""
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    if owner:
        owner.interrupts(osd, [*RUN, f"osd.{osd}"])
    finished(world, "database-added", [*RUN, f"osd.{osd}"], 300)
    done(world, before, fsids, [osd])
    if owner:
        owner.ends()
    world.expect_downs_on_one_host(epoch)
    world.expect_nothing_left()
    found = world.ceph("osd", "metadata", str(osd))
    assert (found["bluefs_dedicated_db"], found["bluefs_dedicated_wal"]) == ("1", "1"), found
    labels = {role: label(world, role) for role in ("metadata", "wal")}
    wanted = {"metadata": "bluefs db", "wal": "bluefs wal"}
    assert {role: (one["osd_uuid"], one["description"]) for role, one in labels.items()} == {
        role: (world.fsids()[osd], text) for role, text in wanted.items()
    }, labels
    in_rooks_shape(world, osd, pvcs)
    written, last = world.written(), state(world, osd)
    finished(world, "database-again", [*RUN, f"osd.{osd}"], 90)
    new = world.written()[len(written) :]
    assert not new and state(world, osd) == last, f"a run with nothing to do changed something: {new}"
    world.say(f"osd.{osd} has its database on {pvcs['metadata']} and its log on {pvcs['wal']}; all objects equal; second run: nothing to do")


def label(world, role):
    path = by_id(disk(role))
    return json.loads(world.lab("on", HOST, "ceph-bluestore-tool", "show-label", "--dev", path).stdout)[path]


def in_rooks_shape(world, osd, pvcs):
    """Checks the parts of the Deployment that belong to the PVCs, and what Rook reads back."""
    pod = world.get("deployment", f"rook-ceph-osd-{osd}")["spec"]["template"]["spec"]
    names = [one["name"] for one in pod["initContainers"]]
    assert names[: len(COPYING)] == COPYING, names
    devices = {one["name"]: [(device["name"], device["devicePath"]) for device in one["volumeDevices"]] for one in pod["initContainers"][:3]}
    assert devices == {name: [(pvc, f"/{pvc}")] for name, pvc in zip(COPYING, pvcs.values())}, devices
    volumes = [volume["name"] for volume in pod["volumes"]]
    of_pvcs = [name for pvc in pvcs.values() for name in (pvc, f"{pvc}-bridge")]
    assert [name for name in volumes if name in of_pvcs] == of_pvcs, volumes
    env = {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}
    assert env["ROOK_OSD_UUID"] == world.fsids()[osd] and env["ROOK_BLOCK_PATH"] == f"/mnt/{pvcs['data']}", env
    assert not {"ROOK_METADATA_DEVICE", "ROOK_WAL_DEVICE"} & env.keys(), env
