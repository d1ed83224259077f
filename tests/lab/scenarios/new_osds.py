"""Checks of new OSDs on disks, in Ceph and in Kubernetes, not in the Job that created them; and how long each took."""
import datetime
import json

FILE = "/var/lib/rook/osd-migrate/osd-on-file.img"  # below dataDirHostPath


def by_id(disk):
    return f"/dev/disk/by-id/lab-{disk}"


def expect(world, places, zones, weights=None):
    """Checks that each of `places` (host, path) has one OSD, and that there is no other; returns their ids.

    The ids are consecutive from 0. Each OSD is up and in, in its CRUSH location, with its Deployment. No other id was
    assigned.
    """
    dump = world.ceph("osd", "dump")
    slots = {osd["osd"]: osd for osd in dump["osds"]}
    ids = list(range(len(places)))
    assert sorted(slots) == ids and dump["max_osd"] == len(places), f"OSDs {sorted(slots)}, max_osd {dump['max_osd']}; wanted {ids}"
    # The state of an OSD would contain a flag that osd-migrate set, as it contains `new` and `destroyed`.
    wrong = {osd: slot["state"] for osd, slot in slots.items() if sorted(slot["state"]) != ["exists", "up"] or not slot["in"] or slot["weight"] != 1}
    assert not wrong, f"not up and in, or with other states: {wrong}"
    assert "noout" not in dump["flags"] and not dump.get("crush_node_flags"), dump["flags"]
    keys = sorted(e["entity"] for e in world.ceph("auth", "ls")["auth_dump"] if e["entity"].startswith("osd."))
    assert keys == sorted(f"osd.{osd}" for osd in ids), f"keys of {keys}"
    found = {place: int(label["whoami"]) for place, label in labels(world, places).items() if label["osd_uuid"] == slots[int(label["whoami"])]["uuid"]}
    assert sorted(found.values()) == ids, f"not exactly one label for each OSD: {found}"
    stores = {m["id"]: (m["osd_objectstore"], m["hostname"]) for m in world.ceph("osd", "metadata")}
    assert stores == {osd: ("bluestore", host) for (host, _), osd in found.items()}, stores
    in_crush(world, found, zones, weights or {})
    for (host, path), osd in found.items():
        deployment(world, osd, slots[osd]["uuid"], host, path, zones[host])
    return found


def labels(world, places):
    """Returns the labels on the devices, read one host at a time."""
    found = {}
    for host in sorted({host for host, _ in places}):
        paths = [path for at, path in places if at == host]
        text = world.lab("on", host, "ceph-bluestore-tool", "show-label", *(word for path in paths for word in ("--dev", path))).stdout
        found.update({(host, path): label for path, label in json.loads(text).items()})
    return found


def in_crush(world, found, zones, weights):
    nodes = {node["id"]: node for node in world.ceph("osd", "tree")["nodes"]}
    above = {child: node for node in nodes.values() for child in node.get("children", [])}
    for (host, path), osd in found.items():
        way, at = [], osd
        while at in above:
            at = above[at]["id"]
            way.append((nodes[at]["type"], nodes[at]["name"]))
        wanted = [("host", host), *zones[host].items(), ("root", "default")]
        assert way == wanted, f"osd.{osd} is in {way}, not in {wanted}"
        size = int(world.ceph("osd", "metadata", str(osd))["bluestore_bdev_size"])
        weight = weights.get(osd, size / 2**40)
        assert abs(nodes[osd]["crush_weight"] - weight) < 0.0002, f"osd.{osd} weighs {nodes[osd]['crush_weight']}, not {weight}"


def deployment(world, osd, fsid, host, path, zone):
    """Checks what Rook and people use of the Deployment."""
    found = world.get("deployment", f"rook-ceph-osd-{osd}")
    assert found, f"osd.{osd} has no Deployment"
    wanted = {"app": "rook-ceph-osd", "ceph-osd-id": str(osd), "osd": str(osd), "rook_cluster": "rook-ceph", "osd-store": "bluestore",
              "topology-location-root": "default", "topology-location-host": host}
    wanted |= {f"topology-location-{kind}": name for kind, name in zone.items()}
    has = found["metadata"]["labels"]
    assert wanted.items() <= has.items(), f"labels of osd.{osd}'s Deployment: {has}, missing {dict(wanted.items() - has.items())}"
    pod = found["spec"]["template"]["spec"]
    env = {e["name"]: e.get("value") for c in pod["containers"] + pod["initContainers"] for e in c.get("env", [])}
    assert env["ROOK_OSD_UUID"] == fsid and env["ROOK_OSD_ID"] == str(osd), env
    # `ceph-volume raw list` of 16 and 17 takes no link.
    device = world.lab("on", host, "readlink", "-f", path).stdout.split()[0]
    is_old = world.lab("ceph", "--version").stdout.split()[2].startswith(("16.", "17."))
    wanted = device if is_old else path
    assert env["ROOK_BLOCK_PATH"] == wanted, f"osd.{osd} is started from {env['ROOK_BLOCK_PATH']}, wanted {wanted}"
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": host}, pod["nodeSelector"]
    assert found["spec"]["replicas"] == 1, found["spec"]["replicas"]
    # If the kubelet was killed a moment ago, it runs its probes again.
    world.until(f"the pod of osd.{osd} to be ready", 60, lambda: world.is_ready(osd))
    assert [owner["kind"] for owner in found["metadata"].get("ownerReferences", [])] == ["CephCluster"], found["metadata"].get("ownerReferences")


# ---- how long it took


def seconds(record):
    """Returns the seconds of a record by stage: from each milestone to the next one."""
    stages, last = {}, None
    for word, at in record["milestones"]:
        time = datetime.datetime.fromisoformat(at)
        if last:
            stages[f"{last[0]} to {word}"] = (time - last[1]).total_seconds()
        last = (word, time)
    return stages


def times(record):
    """Returns the sum of the seconds of a record, and those of each stage, as text."""
    stages = seconds(record)
    return f"{sum(stages.values()):.1f} s = " + ", ".join(f"{name} {took:.1f}" for name, took in stages.items())


def say_times(world):
    """Prints the seconds of each OSD that is done."""
    for record in world.closed():
        world.say(f"osd.{record['osd']}: {times(record)}")


def figures(world, alone):
    """Prints the seconds of each new OSD, and those of `ceph-volume raw prepare` alone, typed on the host.

    OSDs of runs that were killed are included: they show the cost of a kill.
    """
    for record in world.closed():
        if record["outcome"] == "created":
            world.say(f"osd.{record['osd']} on {record['node']}: {times(record)}")
    if alone is not None:
        world.say(f"ceph-volume raw prepare alone, on the host: {alone:.1f} s")
