"""OSDs on PersistentVolumeClaims (storageClassDeviceSets): one on each of h1 to h3, and with --full an encrypted one on u1.

`plan` compares them with their sets; the scenario `pvc_migration` migrates such OSDs. Neither their disks nor the loop
devices that kubelets attach to them are available for new OSDs, and an OSD whose Deployment was deleted is not started
as an OSD of the host.
"""
import json

from .new_osds import by_id
from .provision import answer, finished

SETS = {3: ("h1", "set1"), 4: ("h2", "set2"), 5: ("h3", "set3")}
ENCRYPTED = {6: ("u1", "set4")}
WITH_DB = 4  # its set has a template `metadata`
SPARE = "spare"  # the disk of a PersistentVolume that no PVC uses
CONFIRMED = ["--confirm", "yes-really-migrate-osds"]
AS_DECLARED = ("Conforming", "as declared")
TO_BE_ENCRYPTED = ("Mismatched", "not encrypted, declared encrypted")


def run(world):
    world.up(osds=3, layout="0=raw", uml=world.full)
    osds = {**SETS, **(ENCRYPTED if world.full else {})}
    pvcs = {osd: on_pvc(world, osd, *place) for osd, place in osds.items()}
    world.lab("pvc", "h3", SPARE, "set9", "data", "0")
    declare(world, osds)
    world.lab("write", "100")
    world.lab("wait-clean", "120")
    shown_by_kubernetes(world, pvcs)
    compared(world, osds, pvcs)
    not_available(world, osds)
    not_adopted(world, osds)


def disk(osd):
    return f"pv-{osd}"


def on_pvc(world, osd, host, name):
    """Creates an OSD on a PVC of a set, and returns the name of the PVC."""
    pvc = world.lab("pvc", host, disk(osd), name, "data", "0").stdout.strip()
    more = [world.lab("pvc", host, f"{disk(osd)}db", name, "metadata", "0").stdout.strip()] if osd == WITH_DB else []
    more += ["--encrypted"] if osd in ENCRYPTED else []
    world.lab("pvc-osd", str(osd), pvc, *more)
    world.say(f"osd.{osd} is created on {pvc}{' encrypted' if osd in ENCRYPTED else ''}{' with a database' if osd == WITH_DB else ''}")
    return pvc


def declare(world, osds, **changes):
    """Declares the sets, and all disks of all nodes, so that nothing but the PersistentVolumes excludes their disks.

    `changes`: for some sets, by name, what they declare otherwise; None leaves the set out.
    """
    sets = [
        {**device_set(name, osd in ENCRYPTED, roles(osd)), **(changes.get(name) or {})}
        for osd, (_, name) in osds.items()
        if changes.get(name, {}) is not None
    ]
    world.storage(useAllDevices=True, storageClassDeviceSets=sets)


def roles(osd):
    return ["data", "metadata"] if osd == WITH_DB else ["data"]


def device_set(name, encrypted, names=("data",)):
    """Returns a device set for one OSD, with templates of these names."""
    return {"name": name, "count": 1, "portable": False, "encrypted": encrypted, "volumeClaimTemplates": templates(names)}


def templates(names):
    return [template(name) for name in names]


def template(role):
    spec = {"storageClassName": f"lab-{role}", "volumeMode": "Block", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "6Gi"}}}
    return {"metadata": {"name": role}, "spec": spec}


def bind(world, pvc, disk_name):
    """Binds a PVC to the volume of a disk, as its owner can while no pod uses it."""
    world.kubectl("patch", "pvc", pvc, "--type", "merge", "-p", json.dumps({"spec": {"volumeName": f"lab-{disk_name}"}}))
    world.until(f"{pvc} to be bound", 60, lambda: world.get("pvc", pvc)["status"].get("phase") == "Bound")


def shown_by_kubernetes(world, pvcs):
    """Checks that the OSDs run as Rook's do: bound PVCs, labels, up and in, with the name of their pod in Ceph."""
    dump = {osd["osd"]: osd for osd in world.ceph("osd", "dump")["osds"]}
    metadata = {entry["id"]: entry for entry in world.ceph("osd", "metadata")}
    for osd, pvc in pvcs.items():
        assert dump[osd]["up"] and dump[osd]["in"], dump[osd]
        assert world.get("pvc", pvc)["status"]["phase"] == "Bound", pvc
        pod = world.get("pods", selector=f"ceph.rook.io/pvc={pvc},app=rook-ceph-osd")["items"][0]
        assert metadata[osd]["pod_name"] == pod["metadata"]["name"], (metadata[osd], pod["metadata"]["name"])
        assert metadata[osd]["bluefs_dedicated_db"] == str(int(osd == WITH_DB)), metadata[osd]
    world.say(f"{len(pvcs)} OSDs on PVCs are up and in, in the pods that Ceph names")


def compared(world, osds, pvcs):
    """Checks that `plan` compares each of them with its set, and no other OSD."""
    expect_plan(world, "as-declared", pvcs, dict.fromkeys(osds, AS_DECLARED))
    declare(world, osds, set1={"encrypted": True}, set2=None, set3={"volumeClaimTemplates": templates(["data", "metadata"])})
    expected = {
        3: TO_BE_ENCRYPTED,
        4: ("Refused", "does not declare its device set `set2`"),
        5: ("Refused", "device set `set3` has no usable PVC of the template `metadata` for its index 0"),
    }
    expect_plan(world, "changed", pvcs, {**dict.fromkeys(osds, AS_DECLARED), **expected})
    declare(world, osds)
    world.say(f"plan compares {len(osds)} OSDs on PVCs with their sets: as declared, and three differences")


def expect_plan(world, name, pvcs, expected):
    """Checks the class, the reason and the PVC of each of these OSDs in the plan.

    `expected`: class and a part of the reason, for each OSD on a PVC.
    """
    rows = {row["osd"]: row for row in answer(finished(world, f"plan-{name}", ["plan", "-o", "json"], 60))["osds"]}
    for osd, (kind, reason) in expected.items():
        assert (rows[osd]["class"], rows[osd]["pvc"]) == (kind, pvcs[osd]) and reason in rows[osd]["why"], rows[osd]
        print(f"    osd.{osd} on {pvcs[osd]}: {kind}, {rows[osd]['why']}", flush=True)
    assert not [row for osd, row in rows.items() if osd not in expected and row["pvc"]], rows


def inventory(world, name):
    """Returns the disks that `plan --inventory` names, by their name by id or their kernel name."""
    seen = answer(finished(world, name, ["plan", "--inventory", "-o", "json"], 120))
    assert {found["node"] for found in seen["disks"]} == set(world.hosts), (seen["problems"], seen["notInspected"], seen["disks"])
    return {found["stable"] or found["disk"]: found for found in seen["disks"]}


def not_available(world, osds):
    """Checks that no disk of a PersistentVolume and no loop device of a kubelet would become an OSD."""
    found = inventory(world, "inventory")
    assert not [path for path, row in found.items() if row["verdict"] == "new"], found
    names = {disk(osd) for osd in osds} | {f"{disk(WITH_DB)}db", SPARE}
    for name in names:
        row = found[by_id(name)]
        print(f"    {row['node']} {row['disk']} ({name}): {row['verdict']}, {row['why']}", flush=True)
        is_reason = "PersistentVolume lab-" in (row["why"] or "")
        assert is_reason or row["verdict"] == "ours" and row["why"] in {f"osd.{osd}" for osd in osds}, row
    loops = {line.split()[1].removeprefix("kubelet-") for line in lines(world) if " kubelet-" in line}
    assert len(loops) == len(SETS) + 1, loops  # one for each volume of h1 to h3
    listed = {row["disk"] for row in found.values()}
    assert not loops & listed, f"loop devices of kubelets are listed as disks: {loops & listed}"
    carried = sorted(row["why"] for row in found.values() if row["verdict"] == "ours")
    # A database has a disk of its own. What a LUKS device contains is not read: it is just a PersistentVolume.
    expected = sorted(f"osd.{osd}" for osd in [*(world.fsids().keys() - ENCRYPTED.keys()), WITH_DB])
    assert carried == expected, f"disks of OSDs: {carried}, expected: {expected}"
    world.say(f"plan --inventory: nothing is available; {len(names)} disks of PersistentVolumes, {len(loops)} loop devices of kubelets")


def lines(world):
    with open(f"{world.folder()}/disks", encoding="utf-8") as file:
        return file.read().splitlines()


def not_adopted(world, osds):
    """Checks that a run starts no OSD of a PVC as an OSD of the host, and says why."""
    lost = [osd for osd in osds if osd != WITH_DB]
    before = {osd: world.get("deployment", f"rook-ceph-osd-{osd}") for osd in lost}
    for osd in lost:
        world.kubectl("delete", "deployment", f"rook-ceph-osd-{osd}")
        world.kubectl("wait", "--for=delete", "pod", "-l", f"ceph-osd-id={osd}", "--timeout=60s", check=False)
    down = lambda: not any(osd["up"] for osd in world.ceph("osd", "dump")["osds"] if osd["osd"] in lost)  # noqa: E731
    world.until("the OSDs to be down", 60, down)
    fsids, slots = world.fsids(), len(world.ceph("osd", "dump")["osds"])
    world.start("adopt", ["provision", *CONFIRMED])
    result = world.wait_for("adopt", 300)
    log = world.log("adopt")
    for osd in lost:
        assert not world.get("deployment", f"rook-ceph-osd-{osd}"), f"osd.{osd} was started as an OSD of the host:\n{log}"
        is_named = any(f"osd.{osd} has no Deployment" in line and "its disk is PersistentVolume lab-" in line for line in log.splitlines())
        assert is_named or osd in ENCRYPTED, f"no word about osd.{osd}: {log}"
    assert world.fsids() == fsids and len(world.ceph("osd", "dump")["osds"]) == slots, log
    world.say(f"Deployments deleted: {result[0]} with exit code {result[1]}; nothing was started or created")
    for deployment in before.values():  # as Rook would
        meta = deployment["metadata"]
        kept = {key: meta[key] for key in ("name", "namespace", "labels", "ownerReferences")}
        world.kubectl("create", "-f", "-", stdin=json.dumps({**deployment, "metadata": kept, "status": {}}))
    world.until("the OSDs to be up", 120, lambda: all(osd["up"] for osd in world.ceph("osd", "dump")["osds"]))
    world.lab("wait-clean", "120")
    world.lab("verify")
    assert world.fsids() == fsids
    world.say("with their Deployments they are up again; all objects equal")
