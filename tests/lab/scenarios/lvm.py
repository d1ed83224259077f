"""New OSDs with their databases on one shared metadata disk, one of them encrypted.

They need LVM and LUKS, so they are on u1, the host with its own kernel. The run is killed twice. The host also has an
OSD of another cluster, with an id that this cluster assigns too: ceph-volume's own cleanup compares only the id, and
would remove that OSD. At the end u1 loses power and is started again.
"""
import json
import random

from . import kills
from .disks import FOREIGN_FSID
from .new_osds import by_id, times
from .provision import CONFIRMED, finished

FIRST = 3  # the id that the first new OSD gets
DATABASE_MIB = 1024
# Created before the run, on a disk that is not selected: the result of `ceph-volume lvm prepare` in the other cluster.
ELSEWHERE = f"""
vgcreate -q --yes ceph-elsewhere "$1"
lvcreate -q --yes -L 1G -n osd-block-elsewhere ceph-elsewhere
lvchange -q --addtag ceph.osd_id={FIRST} --addtag ceph.osd_fsid=88888888-8888-4888-8888-888888888888 --addtag ceph.type=block \\
  --addtag ceph.cluster_fsid={FOREIGN_FSID} --addtag ceph.cluster_name=ceph --addtag ceph.block_uuid=x --addtag ceph.encrypted=0 \\
  ceph-elsewhere/osd-block-elsewhere
dd if=/dev/urandom of=/dev/ceph-elsewhere/osd-block-elsewhere bs=1M count=20 conv=notrunc,fsync status=none
"""
# On the metadata disk, after it has a volume group: a volume that does not belong to Ceph. (LVM stores hints about disks
# in /run, separately for each mount namespace. Without --nohints the host would not find what a pod has created.)
NEIGHBOUR = """
vg=$(pvs --nohints --noheadings -o vg_name "$1" | tr -d ' ')
lvcreate -q --nohints --yes -L 64M -n neighbour "$vg"
dd if=/dev/urandom of="/dev/$vg/neighbour" bs=1M count=64 conv=notrunc,fsync status=none
"""


def run(world):
    world.up(layout="0=raw", osds=FIRST, uml=True)
    for disk in ("data-a", "data-b", "data-c"):
        world.lab("disk", "u1", disk)
    world.lab("disk", "u1", "8", "meta")
    world.lab("on", "u1", "bash", "-e", "-c", ELSEWHERE, "-", world.lab("disk", "u1", "elsewhere").stdout.strip())
    elsewhere = content(world, "ceph-elsewhere", "osd-block-elsewhere")
    world.lab("write", "100")
    epoch = world.epoch()
    two_share(world)
    neighbour = a_neighbour(world)
    an_encrypted_one(world)
    for vg, name, sha in [("ceph-elsewhere", "osd-block-elsewhere", elsewhere), neighbour]:
        assert content(world, vg, name) == sha, f"{vg}/{name} was written to"
    world.expect_downs_on_one_host(epoch)
    expect_no_key_in_objects(world)
    power(world)
    for record in new_records(world):
        world.say(f"osd.{record['osd']} on {record['node']}: {times(record)}")


def two_share(world):
    """Creates two OSDs on one metadata disk, with two kills."""
    config = {"metadataDevice": by_id("meta"), "databaseSizeMB": str(DATABASE_MIB)}
    devices = [{"name": by_id(disk), "config": config} for disk in ("data-a", "data-b")]
    world.storage(useAllNodes=False, useAllDevices=False, nodes=[{"name": "u1", "devices": devices}])
    count, _ = kills.spread(world, moments(random.Random(world.seed)), "lvm", ["provision", *CONFIRMED])
    assert count == 2, f"{count} kills"
    expect(world, {FIRST: "data-a", FIRST + 1: "data-b"})
    world.say("two OSDs with their databases on one disk, killed twice: one volume for each, and no other")


def moments(rng):
    """Returns two moments: in the rebuild of the first OSD, which creates its volumes, and in the second OSD."""
    first = (FIRST, "rebuilding", rng.uniform(0, 40), rng.choice(["agent", "runner process", "runner pod"]))
    phase = rng.choice(["record", "rebuild", "rebuilding", "new", "settling"])
    kind = rng.choice(["agent", "kubelet"] if phase == "rebuilding" else ["runner process", "runner pod", "kubelet"])
    return [first, (FIRST + 1, phase, rng.uniform(0, 30 if phase == "rebuilding" else 3), kind)]


def a_neighbour(world):
    world.lab("on", "u1", "bash", "-e", "-c", NEIGHBOUR, "-", by_id("meta"))
    volume = next(volume for volume in volumes(world, "meta") if volume["lv_name"] == "neighbour")
    return volume["vg_name"], "neighbour", content(world, volume["vg_name"], "neighbour")


def an_encrypted_one(world):
    """Adds an encrypted OSD on the same metadata disk, without a change of the existing volumes."""
    before = {volume["lv_name"]: volume["lv_uuid"] for volume in volumes(world, "meta")}
    nodes = world.get("cephcluster", "rook-ceph")["spec"]["storage"]["nodes"]
    config = {"metadataDevice": by_id("meta"), "databaseSizeMB": str(DATABASE_MIB), "encryptedDevice": "true"}
    nodes[0]["devices"].append({"name": by_id("data-c"), "config": config})
    world.storage(nodes=nodes)
    finished(world, "encrypted", ["provision", *CONFIRMED])
    after = {volume["lv_name"]: volume["lv_uuid"] for volume in volumes(world, "meta")}
    assert before.items() <= after.items(), f"volumes on the metadata disk before and after:\n{before}\n{after}"
    fsid = expect(world, {FIRST: "data-a", FIRST + 1: "data-b", FIRST + 2: "data-c"}, FIRST + 2)[FIRST + 2]
    keys = json.loads(world.lab("ceph", "config-key", "ls").stdout)
    assert [key for key in keys if key.startswith("dm-crypt/")] == [f"dm-crypt/osd/{fsid}/luks"], keys
    written = world.written()
    finished(world, "nothing-more", ["provision", *CONFIRMED])
    new = world.written()[len(written) :]
    assert not new, f"a run with nothing to do wrote to Ceph: {new}"
    world.say("a third OSD, encrypted, database on the same disk; second run: nothing to do")


def expect(world, places, encrypted=None):
    """Checks the new OSDs, and returns their fsids by id.

    Each is up, in its CRUSH location, with its database on the metadata disk, two volumes with its tags, and its
    Deployment. Each data disk has one volume. The metadata disk has one volume for each OSD, and the neighbour.
    """
    slots = {osd["osd"]: osd for osd in world.ceph("osd", "dump")["osds"]}
    assert sorted(slots) == [*range(FIRST), *places], sorted(slots)
    wrong = {osd: slot["state"] for osd, slot in slots.items() if sorted(slot["state"]) != ["exists", "up"] or not slot["in"]}
    assert not wrong, f"not up and in, or with other states: {wrong}"
    tree = {node["name"]: node for node in world.ceph("osd", "tree")["nodes"]}
    assert sorted(tree["u1"]["children"]) == sorted(places), tree["u1"]
    databases = {volume["lv_name"]: volume for volume in volumes(world, "meta") if volume["lv_name"] != "neighbour"}
    assert len(databases) == len(places), f"{len(places)} OSDs, but their metadata disk has: {sorted(databases)}"
    for osd, disk in places.items():
        fsid, is_encrypted = slots[osd]["uuid"], osd == encrypted
        (data,) = volumes(world, disk)
        (database,) = [volume for volume in databases.values() if tags(volume).get("ceph.osd_fsid") == fsid]
        assert database["lv_size"] == str(DATABASE_MIB << 20), database
        for volume, kind in [(data, "block"), (database, "db")]:
            wanted = {"ceph.osd_id": str(osd), "ceph.osd_fsid": fsid, "ceph.type": kind, "ceph.encrypted": str(int(is_encrypted))}
            assert wanted.items() <= tags(volume).items(), (wanted, volume)
        metadata = world.ceph("osd", "metadata", str(osd))
        assert metadata["bluefs_dedicated_db"] == "1" and metadata["hostname"] == "u1", metadata
        assert metadata["bluefs_db_devices"] == kernel_name(world, "meta"), metadata
        crypt = world.lab("on", "u1", "blkid", "-p", "-o", "value", "-s", "TYPE", f"/dev/{data['vg_name']}/{data['lv_name']}").stdout.strip()
        assert crypt == ("crypto_LUKS" if is_encrypted else "ceph_bluestore"), f"osd.{osd} is on {crypt}"
        deployment(world, osd, fsid, data)
    outcomes = {record["osd"]: record["outcome"] for record in new_records(world)}
    assert outcomes == dict.fromkeys(places, "created"), outcomes
    world.expect_nothing_left()
    world.lab("wait-clean", "120")
    world.lab("verify")
    return {osd: slots[osd]["uuid"] for osd in places}


def deployment(world, osd, fsid, data):
    found = world.get("deployment", f"rook-ceph-osd-{osd}")
    assert found and found["status"].get("availableReplicas") == 1, f"osd.{osd}: {found and found['status']}"
    pod = found["spec"]["template"]["spec"]
    env = {e["name"]: e.get("value") for c in pod["containers"] + pod["initContainers"] for e in c.get("env", [])}
    # Rook derives the name of the volume group from this path.
    wanted = {"ROOK_OSD_UUID": fsid, "ROOK_CV_MODE": "lvm", "ROOK_BLOCK_PATH": f"/dev/{data['vg_name']}/{data['lv_name']}", "DM_DISABLE_UDEV": "1"}
    assert wanted.items() <= env.items(), {name: env.get(name) for name in wanted}


def power(world):
    """Powers u1 off and on, which closes the LUKS volumes: only now the mons' key must open them."""
    world.lab("power-off", "u1")
    ids = {record["osd"] for record in new_records(world)}
    up = lambda: {osd["osd"] for osd in world.ceph("osd", "dump")["osds"] if osd["up"]}  # noqa: E731
    world.until("the OSDs of u1 to be down", 60, lambda: not ids & up())
    world.lab("power-on", "u1")
    world.until("the OSDs of u1 to be up again", 90, lambda: ids <= up())
    world.lab("wait-clean", "300")
    world.lab("verify")
    world.say("u1 lost power and was started again: all its OSDs are up, all objects equal")


def expect_no_key_in_objects(world):
    """Checks that no object and no log contains a key.

    ceph-volume writes the lockbox key into the tags of the volumes, so each list of volumes contains it.
    """
    found = [entry["key"] for entry in world.ceph("auth", "ls")["auth_dump"] if entry["entity"].startswith(("client.osd-lockbox", "osd."))]
    texts = {kind: world.kubectl("get", kind, "-o", "json") for kind in ("configmaps", "jobs", "pods", "deployments", "events", "secrets")}
    texts |= {job: world.log(job) for job in world.jobs}
    for name, text in texts.items():
        assert not any(key in text for key in found), f"{name} contains a key"


# ---- building blocks


def new_records(world):
    return [record for record in world.closed() if record["osd"] >= FIRST]


def kernel_name(world, disk):
    return world.lab("on", "u1", "readlink", "-f", by_id(disk)).stdout.strip().removeprefix("/dev/")


def volumes(world, disk):
    """Returns the logical volumes on a disk."""
    fields = "lv_name,vg_name,lv_uuid,lv_size,lv_tags,devices"
    text = world.lab("on", "u1", "lvs", "--nohints", "--reportformat", "json", "--units", "b", "--nosuffix", "-o", fields).stdout
    on_disk = f"/dev/{kernel_name(world, disk)}("
    return [volume for volume in json.loads(text)["report"][0]["lv"] if volume["devices"].startswith(on_disk)]


def tags(volume):
    return dict(tag.split("=", 1) for tag in volume["lv_tags"].split(",") if "=" in tag)


def content(world, vg, name):
    return world.lab("on", "u1", "sha256sum", f"/dev/{vg}/{name}").stdout.split()[0]
