"""Inconsistencies of a real cluster that no record explains.

They are reported, as text and as JSON, and osd-migrate changes nothing about them.
"""
import json
import re

ID = 7  # of no OSD
LOST = "1a2b3c4d-0000-4000-8000-00000000d1f7"  # fsid of an OSD that does not exist
FOUND = {
    "key-without-osd": f"osd.{ID}",
    "dmcrypt-key-without-osd": LOST,
    "flags-without-record": "osd.3",
    "deployment-without-osd": f"rook-ceph-osd-{ID}",
}


def expect_reported(world):
    create_drift(world)
    try:
        written = world.written()
        table, text = world.start("drift"), world.start("drift-json", ["plan", "-o", "json"])
        for job in (table, text):
            world.wait_for(job, 60)
        said = [line for line in world.log(table).splitlines() if line.startswith("drift: ")]
        found = {finding["what"]: finding["message"] for finding in json.loads(world.log(text))["drift"]}
        assert found.keys() == FOUND.keys(), found
        assert all(name in found[what] for what, name in FOUND.items()), found
        assert sorted(said) == sorted(f"drift: {message}" for message in found.values()), said
        events = [event for event in world.get("events")["items"] if event["reason"] == "DriftFound"]
        for kind in ("Job", "CephCluster"):
            of_kind = [event["message"] for event in events if event["involvedObject"]["kind"] == kind]
            assert sorted(of_kind) == sorted(found.values()), (kind, of_kind)
        assert world.written() == written, "something was changed"
        assert world.get("deployment", FOUND["deployment-without-osd"]), "osd-migrate deleted a Deployment that is not its own"
    finally:
        clean_up(world)
    world.say(f"drift is reported, also by a run, and nothing is changed: {', '.join(sorted(found))}")


def create_drift(world):
    ceph(world, "osd", "setmaxosd", str(ID + 1))
    ceph(world, "auth", "add", f"osd.{ID}", "mon", "allow r")
    ceph(world, "config-key", "set", f"dm-crypt/osd/{LOST}/luks", "not-a-key")
    ceph(world, "osd", "add-noout", "osd.3")
    there = world.get("deployment", "rook-ceph-osd-4")
    text = json.dumps({key: there[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"labels": there["metadata"]["labels"]}})
    text = re.sub(r'("ceph-osd-id": *)"4"', rf'\1"{ID}"', text).replace("rook-ceph-osd-4", f"rook-ceph-osd-{ID}")
    orphan = json.loads(text)
    orphan["metadata"]["name"] = f"rook-ceph-osd-{ID}"
    orphan["spec"]["replicas"] = 0
    world.lab("kubectl", "-n", "rook-ceph", "create", "-f", "-", stdin=json.dumps(orphan))


def clean_up(world):
    world.kubectl("delete", "deployment", f"rook-ceph-osd-{ID}", "--ignore-not-found")
    ceph(world, "osd", "rm-noout", "osd.3")
    ceph(world, "config-key", "rm", f"dm-crypt/osd/{LOST}/luks")
    ceph(world, "auth", "rm", f"osd.{ID}")
    ceph(world, "osd", "setmaxosd", "6")


def ceph(world, *words):
    world.lab("on", "adm", "ceph", *words)
