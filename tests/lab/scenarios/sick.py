"""Failures of one part of a cluster while the rest is healthy, and observations during them."""

import json
import subprocess
import time

from .world import LAB

POLICY = "lab-no-activate"


# ---- a dead OSD, a full tenant


def kill_osd(world, osd):
    """Removes the OSD's disk: Ceph recovers its data, the OSD stays down and out, its pod fails repeatedly."""
    deployment = f"rook-ceph-osd-{osd}"
    world.kubectl("scale", "deployment", deployment, "--replicas=0")
    world.until(f"osd.{osd} to be down", 60, lambda: not slot(world, osd)["up"])
    world.until("its pod to be gone", 60, lambda: not world.get("pods", selector=f"ceph-osd-id={osd}"))
    world.lab("pull", f"osd{osd}")
    world.kubectl("scale", "deployment", deployment, "--replicas=1")
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


# ---- a Deployment that is not admitted


def refuse_deployment(world, osd):
    """Creates a ValidatingAdmissionPolicy that refuses an OSD's new Deployment, and allows its current one."""
    name = f"rook-ceph-osd-{osd}"
    containers = "object.spec.template.spec.initContainers"
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["deployments"],
    }
    activates = f"has({containers}) && {containers}.exists(c, c.name == 'activate')"
    is_refused = f"object.metadata.name == '{name}' && {activates}"
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {"expression": f"!({is_refused})", "message": "no container named activate in this namespace"}
        ],
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
    deployment = world.get("deployment", name)
    pod = deployment["spec"]["template"]["spec"]
    pod["initContainers"] = [{"name": "activate", "image": "x"}]

    def refused():
        words = ["kubectl", "-n", "rook-ceph", "replace", "--dry-run=server", "-f", "-"]
        done = world.lab(*words, stdin=json.dumps(deployment), check=False)
        return "no container named activate" in done.stderr

    world.until("the policy to be in force", 60, refused)


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
