"""Ten thousand OSD Deployments and pods on a real API server: what a run and `plan` cost beside them.

The objects are copies of those of an OSD, in a cluster with no more OSDs than usual: the Deployments are paused, and no
scheduler knows the pods, so nothing starts. Two OSDs are migrated, one before and one after the objects exist. The
scenario fails if a run then needs 100 MiB of memory, and the lab's quick binary 130. It prints the rest: commands,
requests, CPU time and time.
"""

import json
import queue
import re
import threading
import time
import uuid

from . import NAMESPACE
from .sessions import Unix

MANY = 10_000
FIRST = 1_000  # the id of the first copy: no OSD of the lab has it
PER_HOST = 30
CLIENTS = 4  # one client would wait for answers most of the time
PATIENCE = 1800  # seconds: the lab's binary is not optimized, and reads 280 MB first
LIMIT_MIB = 100
# The binary with failpoints is not optimized. Without the objects it needs 75 MiB instead of 49.
QUICK_LIMIT_MIB = 130
COST = re.compile(r"sent (\d+) commands to Ceph and (\d+) requests to the API server; (\d+) KiB of memory at most, (\S+) s of CPU")
LOG = {"RUST_LOG": "osd_migrate=debug,warn"}  # a run says at debug level what it cost
RUN = ["run", "--confirm", "yes-really-migrate-osds", "--select"]


def run(world):
    world.up(layout="0=bluestore-dev,1=bluestore-dev")
    world.lab("write", "100")
    world.lab("wait-clean", "120")
    few = migrated(world, "few", 0)
    create(world)
    many = migrated(world, "many", 1)
    idle = cost(world, "idle", "osd.1")
    plan(world)
    limit = QUICK_LIMIT_MIB if has_failpoints(world.binary) else LIMIT_MIB
    assert many["MiB"] < limit, (limit, few, many, idle)
    world.lab("verify")


def has_failpoints(binary):
    with open(binary, "rb") as file:
        return b"OSD_MIGRATE_FAILPOINT" in file.read()


def migrated(world, name, osd):
    """Migrates an OSD, and returns the cost of the run."""
    before = world.fsids()
    found = cost(world, name, f"osd.{osd}")
    assert {one for one, fsid in world.fsids().items() if fsid != before[one]} == {osd}, world.log(name)
    return found


def cost(world, name, selected):
    began = time.monotonic()
    job = world.start(name, [*RUN, selected], env=LOG)
    assert world.wait_for(job, PATIENCE) == ("Complete", 0), world.log(job)
    took = time.monotonic() - began
    commands, requests, kib, seconds = COST.search(world.log(job)).groups()
    found = {"commands": int(commands), "requests": int(requests), "MiB": int(kib) // 1024, "CPU s": float(seconds), "s": round(took)}
    world.say(f"{name}: {found}")
    return found


def plan(world):
    job = world.start("plan", ["plan", "-o", "json"])
    assert world.wait_for(job, PATIENCE) == ("Complete", 0), world.log(job)
    osds = json.loads(world.log(job))["osds"]
    assert len(osds) == len(world.fsids()), f"{len(osds)} OSDs in the plan"
    world.say("plan: lists the OSDs of the cluster only")


# ---- objects


def create(world):
    """Creates the objects, with several clients, and waits until the API server lists all."""
    deployment = plain(world.get("deployment", "rook-ceph-osd-2"))
    pod = plain(world.list("pods", selector="ceph-osd-id=2")[0])
    world.say(f"a Deployment of {len(json.dumps(deployment))} bytes, and a pod of {len(json.dumps(pod))} bytes")
    todo = queue.SimpleQueue()
    for number in range(FIRST, FIRST + MANY):
        todo.put(("apps/v1", "deployments", of_deployment(deployment, number)))
        todo.put(("v1", "pods", of_pod(pod, number)))
    failures = []
    socket = world.sessions.kubernetes(lambda session: session.socket)
    clients = [threading.Thread(target=client, args=(socket, todo, failures), daemon=True) for _ in range(CLIENTS)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    assert not failures, failures[:3]
    for kind in ("deployments", "pods"):
        count = len(world.list(kind, selector="app=rook-ceph-osd"))
        assert count >= MANY, f"{count} {kind}"
    world.say(f"{MANY} Deployments and {MANY} pods are created")
    settle(world)


def settle(world):
    """Waits until the controller has written the status of all Deployments: each write is a change to the run."""
    before, now = None, versions(world)
    while now != before:
        time.sleep(10)
        before, now = now, versions(world)
    world.say("their status stays the same")


def versions(world):
    return {item["metadata"]["resourceVersion"] for item in world.list("deployments", selector="app=rook-ceph-osd")}


def client(socket, todo, failures):
    connection = Unix(socket)
    while not failures:
        try:
            version, kind, item = todo.get_nowait()
        except queue.Empty:
            return
        base = "/api/v1" if version == "v1" else f"/apis/{version}"
        body = json.dumps(item)
        connection.request("POST", f"{base}/namespaces/{NAMESPACE}/{kind}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 201:
            failures.append(text.decode()[:600])


def plain(item):
    """Returns the object without what the API server adds."""
    metadata = {key: item["metadata"][key] for key in ("labels", "annotations", "ownerReferences") if key in item["metadata"]}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata, "spec": item["spec"]}


def of_osd(item, number):
    """Returns the object as that of another OSD, on another host."""
    fsid = str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))
    old = fsid_of(item)
    host = f"n{(number - FIRST) // PER_HOST:03}"
    text = json.dumps(item).replace(old, fsid).replace('"ceph-osd-id": "2"', f'"ceph-osd-id": "{number}"')
    text = text.replace('"kubernetes.io/hostname": "h3"', f'"kubernetes.io/hostname": "{host}"')
    return json.loads(text)


def fsid_of(item):
    spec = item["spec"].get("template", item)["spec"]
    return next(one["value"] for one in spec["containers"][0]["env"] if one["name"] == "ROOK_OSD_UUID")


def of_deployment(item, number):
    found = of_osd(item, number)
    found["metadata"]["name"] = f"rook-ceph-osd-{number}"
    found["spec"]["paused"] = True  # the controller creates no ReplicaSet
    return found


def of_pod(item, number):
    found = of_osd(item, number)
    found["metadata"]["name"] = f"rook-ceph-osd-{number}-0"
    found["metadata"].pop("ownerReferences", None)  # the ReplicaSet would delete it
    found["spec"].pop("nodeName", None)
    found["spec"]["schedulerName"] = "nobody"
    return found
