"""Failures of one part of a cluster while the rest is healthy, and observations during them."""

import json
import subprocess
import time

from . import NAMESPACE
from .world import LAB

POLICY = "lab-refuses"


# ---- a dead OSD, a full tenant


def stop(world, osd):
    """Stops an OSD as a person does, and waits until it is down and its pod is gone."""
    world.kubectl("scale", "deployment", f"rook-ceph-osd-{osd}", "--replicas=0")
    world.until(f"osd.{osd} to be down", 60, lambda: not slot(world, osd)["up"])
    world.until("its pod to be gone", 60, lambda: not world.list("pods", selector=f"ceph-osd-id={osd}"))


def kill_osd(world, osd):
    """Removes the OSD's disk: Ceph recovers its data, the OSD stays down and out, its pod fails repeatedly."""
    stop(world, osd)
    world.lab("pull", f"osd{osd}")
    world.kubectl("scale", "deployment", f"rook-ceph-osd-{osd}", "--replicas=1")
    world.lab("ceph", "osd", "out", str(osd))
    world.until("all PGs to be recovered elsewhere", 120, lambda: pg_states(world) == {"active+clean"})
    world.say(f"osd.{osd}: its disk is gone; it is down and out, and its data is recovered elsewhere")


def fill_tenant(world):
    """Creates a pool that exceeds its quota: POOL_FULL."""
    world.lab("ceph", "osd", "pool", "create", "tenant", "1", "1")
    world.lab("ceph", "osd", "pool", "application", "enable", "tenant", "rados")
    script = "for i in 1 2 3; do echo full | rados -p tenant put o$i -; done"
    world.lab("on", "adm", "bash", "-c", script)
    world.lab("ceph", "osd", "pool", "set-quota", "tenant", "max_objects", "1")
    world.until("POOL_FULL", 60, lambda: "POOL_FULL" in world.ceph("health")["checks"])


def drop_tenant(world):
    world.lab("ceph", "osd", "pool", "rm", "tenant", "tenant", "--yes-i-really-really-mean-it")


# ---- PGs that merge and are repaired


def merging_pool(world, pgs):
    world.lab("ceph", "osd", "pool", "create", "merging", str(pgs), str(pgs))
    world.lab("ceph", "osd", "pool", "application", "enable", "merging", "rados")
    world.lab("write", "40", "16", "merging")


def set_pg_num(world, pgs):
    world.lab("ceph", "osd", "pool", "set", "merging", "pg_num", str(pgs))


def repair_continuously(world):
    """Starts `ceph pg repair` of one PG after the other, until `end`.

    There are pauses between two repairs. Without pauses, all PGs would never be active+clean.
    """
    script = """while :; do for pg in $(ceph pg ls-by-pool labpool -f json | jq -r '.pg_stats[].pgid'); do
      ceph pg repair $pg; sleep 4; done; done"""
    process = subprocess.Popen(
        [LAB, "on", "adm", "bash", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    world.background.append(process)
    return process


def end(world, process):
    world.background.remove(process)
    # The loop is in the host's own PID namespace: it does not end with nsenter.
    world.lab("on", "adm", "pkill", "-f", "ceph pg ls-by-pool labpool", check=False)
    process.kill()
    process.wait()


# ---- objects that are not admitted


def refuse_deployment(world, osd):
    """Creates a ValidatingAdmissionPolicy that refuses an OSD's new Deployment, and allows its current one."""
    name = f"rook-ceph-osd-{osd}"
    containers = "object.spec.template.spec.initContainers"
    activates = f"has({containers}) && {containers}.exists(c, c.name == 'activate')"
    deployment = world.get("deployment", name)
    pod = deployment["spec"]["template"]["spec"]
    pod["initContainers"] = [{"name": "activate", "image": "x"}]
    message = "no container named activate in this namespace"
    refuse(world, ("apps", "deployments"), f"object.metadata.name == '{name}' && {activates}", message)
    await_refusal(world, ["replace"], deployment, message)


def refuse_pods(world, osd):
    """Creates a ValidatingAdmissionPolicy that refuses new pods of an OSD. A running pod stays."""
    labels = {"app": "rook-ceph-osd", "ceph-osd-id": str(osd)}
    all_of = [f"'{name}' in object.metadata.labels && object.metadata.labels['{name}'] == '{value}'" for name, value in labels.items()]
    message = f"no pod of osd.{osd} in this namespace"
    refuse(world, ("", "pods"), " && ".join(["has(object.metadata.labels)", *all_of]), message)
    spec = {"containers": [{"name": "osd", "image": "x"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lab-probe", "labels": labels}, "spec": spec}
    await_refusal(world, ["create"], pod, message)


def refuse(world, resource, expression, message):
    """Creates a ValidatingAdmissionPolicy that refuses the objects of a resource for which an expression is true."""
    group, plural = resource
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"!({expression})", "message": message}],
    }
    binding = {"policyName": POLICY, "validationActions": ["Deny"]}
    for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)):
        manifest = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": POLICY},
            "spec": spec,
        }
        world.kubectl("create", "-f", "-", stdin=json.dumps(manifest))


def await_refusal(world, words, manifest, message):
    """Waits until the API server refuses an object with this message: a policy is in force a moment after it was created."""

    def is_refused():
        command = ["kubectl", "-n", NAMESPACE, *words, "--dry-run=server", "-f", "-"]
        return message in world.lab(*command, stdin=json.dumps(manifest), check=False).stderr

    world.until("the policy to be in force", 60, is_refused)


def admit_again(world):
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        world.kubectl("delete", kind, POLICY)


# ---- observations


def slot(world, osd):
    return next(slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == osd)


def has_noout(world, osd):
    return "noout" in slot(world, osd)["state"]


def pg_states(world):
    return {pg["state"] for pg in world.ceph("pg", "dump", "pgs_brief")["pg_stats"]}


def milestones(record):
    return [word for word, _ in record["milestones"]]


def has_reached(world, osd, word):
    record = world.records().get(osd)
    return bool(record) and word in milestones(record)


def reverted(world):
    """Returns `osd.N` for each stop that was reverted, of all records."""
    records = [*world.closed(), *world.records().values()]
    return [
        f"osd.{record['osd']}" for record in records for word in milestones(record) if word == "revert-stop"
    ]


def expect_untouched(world, fsids, *osds):
    now = world.fsids()
    for osd in osds:
        assert now[osd] == fsids[osd], f"osd.{osd} was rebuilt"
        annotations = world.get("deployment", f"rook-ceph-osd-{osd}")["metadata"].get("annotations", {})
        assert "osd-migrate.io/stopped" not in annotations, f"osd.{osd} was stopped"


def seconds_until(world, what, limit, condition):
    began = time.monotonic()
    world.until(what, limit, condition)
    return time.monotonic() - began
