"""osd-migrate alongside a running Rook operator, which a script simulates.

Rook 1.20 knows the fence. The Job sets it for each OSD and starts when Rook has acknowledged it; afterwards Rook
reconciles the new Deployment. The runner is killed in between. Legacy OSDs make Rook's reconciles fail, which Rook
retries at once, and Rook considers an OSD that is down a drain.

- With `--deployment-by rook`, Rook creates the Deployment.
- If the CephCluster confirms the migration to both, the fence is set once for the whole run.
- If a person removes the fence during a rebuild, Rook finds a slot that osd-migrate destroyed. The Job still
  completes the OSD.
- An older Rook is scaled to 0, and back at the end, also by a cancel and by an uninstall after a run was killed.
- If the API server refuses the run's own PodDisruptionBudget, no further OSD is stopped, and an OSD that is already
  stopped is completed.
"""
import json

from . import chart, frozen, rook

CONFIRMED = "run.confirmation=yes-really-migrate-osds"
VALUES = ["run.scaleOperator=true", CONFIRMED]
CREATE_PDBS = {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["create"]}
# Resources of Rook's Jobs that prepare OSDs: more CPUs than any node has. Node Jobs have the same limits, and no requests.
PREPARE = {"requests": {"cpu": "100"}, "limits": {"memory": "1Gi"}}
OWN_RESOURCES = {"requests": {"cpu": "0", "memory": "0"}, "limits": {"memory": "1Gi"}}


def run(world):
    world.up(layout="0=bluestore-dev,1=filestore-part,2=bluestore-dev,3=bluestore-dev,4=bluestore-dev,5=bluestore-dev", manifests=False)
    world.lab("write", "100")
    world.customize()
    chart.helm(world, "install", values=VALUES)
    for osd in range(6):  # Rook sets this label since 1.6, and handles no drains if one Deployment does not have it
        world.kubectl("label", "deployment", f"rook-ceph-osd-{osd}", f"{rook.HOST}=h{osd % 3 + 1}")
    patch = {"spec": {"resources": {"prepareosd": PREPARE}}}
    world.kubectl("patch", "cephcluster", "rook-ceph", "--type", "merge", "-p", json.dumps(patch))
    before, fsids = world.shape(), world.fsids()
    fenced(world, before, fsids)
    handed(world, before, fsids)
    broken(world, before, fsids)
    both(world, before, fsids)
    scaled(world, before, fsids)


def taken_over(world, version):
    """Returns a simulated Rook operator that has updated all Deployments, so that later restarts by it can be counted."""
    operator = rook.Rook(world, version)
    operator.start()
    world.until("Rook to have reconciled", 600, lambda: operator.done >= 1 or operator.trouble)
    assert not operator.trouble, operator.trouble
    world.lab("wait-clean", "120")
    return operator


def ended(world, operator, recreated):
    """Checks that Rook has reconciled what was created, and has changed no OSD in progress."""
    done = operator.done
    world.until("Rook to reconcile the new Deployments", 300, lambda: operator.done >= done + 2)
    operator.end()
    assert not operator.trouble, operator.trouble
    assert not operator.started, f"Rook started Deployments that were stopped: {operator.started}"
    assert not operator.refilled, f"Rook found destroyed slots: {operator.refilled}"
    handed = set(operator.hydrated)
    assert {*recreated} - handed <= {*operator.rendered_again}, f"of {recreated} Rook rendered {operator.rendered_again} again"
    restarts(world, recreated)


def fenced(world, before, fsids):
    operator = taken_over(world, "1.20.1")
    args = ["run", "--confirm", "yes-really-migrate-osds", "--select", "osd.0"]
    job = world.start("fenced", args)
    world.until("Rook to acknowledge the fence", 120, lambda: operator.skipped)
    agents = [one for one in world.get("pods")["items"] if "-inspect-0-" in one["metadata"]["name"]]
    given = [container["resources"] for pod in agents for kind in ("initContainers", "containers") for container in pod["spec"][kind]]
    assert given and all(one == OWN_RESOURCES for one in given), given
    within_quota(world, agents[0]["spec"])
    end_runner(world, job)
    world.until("Rook to consider the stopped OSD a drain", 300, lambda: operator.drained)
    # Rook's PodDisruptionBudgets of hosts do not cover pods without its label. If it observes again, it recreates the one
    # with maxUnavailable 1.
    own = world.until("the run's own PodDisruptionBudget", 30, world.own_pdb)
    said = world.eviction(4)
    assert "isruption" in said and own == world.own_pdb(), said or "osd.4 may be evicted"
    world.say(f"Rook considers osd.0 a drain and deletes its PodDisruptionBudget; a drain of osd.4's node gets: {said}")
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    ended(world, operator, [0])
    assert operator.drained, "Rook did not consider the OSD that is down a drain"
    assert operator.failures and "activate init container" in operator.failures[-1], operator.failures[-1:]
    world.expect_migrated(before, fsids, [0], {osd: world.stores()[osd] for osd in (1, 2, 3, 4, 5)})
    reconciles = f"{operator.skipped} reconciles skipped, {operator.done} done, {len(operator.failures)} of them failed"
    world.say(f"fenced: {reconciles}; no OSD in progress was disturbed")


def within_quota(world, spec):
    """Checks that the API server accepts the agent's pod in a namespace with a ResourceQuota.

    The pod names the resources that Rook's own Jobs name. Without them the API server would refuse it.
    """
    there = ("-n", "quota")
    world.lab("kubectl", "create", "namespace", "quota")
    world.lab("kubectl", *there, "create", "quota", "of-the-owner", "--hard=requests.cpu=4,requests.memory=8Gi,limits.memory=8Gi")
    counted = lambda: world.lab("kubectl", *there, "get", "quota", "of-the-owner", "-o", "jsonpath={.status.hard}").stdout
    world.until("the quota to count", 60, counted)
    for names in (True, False):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent"}, "spec": {"serviceAccountName": "default"}}
        for kind in ("initContainers", "containers"):
            shared = [{"name": one["name"], "image": one["image"], "resources": one["resources"] if names else {}} for one in spec[kind]]
            pod["spec"][kind] = shared
        said = world.lab("kubectl", *there, "create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod), check=False)
        assert (said.returncode == 0) == names and (names or "must specify" in said.stderr), (names, said.stdout, said.stderr)
    world.lab("kubectl", "delete", "namespace", "quota", "--wait=false")
    world.say(f"a ResourceQuota accepts the agent's pod, and refuses it without resources: {said.stderr.strip()[-120:]}")


def handed(world, before, fsids):
    """Checks `--deployment-by rook`: Rook creates the Deployment, while the runner that waits for it is killed."""
    operator = taken_over(world, "1.20.1")
    job = world.start("left-to-rook", ["run", "--confirm", "yes-really-migrate-osds", "--select", "osd.3", "--deployment-by", "rook"])
    world.until("osd.3 to be left to Rook", 300, lambda: "left-to-rook" in world.milestones(3))
    said = world.eviction(4)
    assert "isruption" in said, said or "osd.4 may be evicted"
    end_runner(world, job)
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    ended(world, operator, [3])
    assert operator.hydrated == [3], operator.hydrated
    revision = world.get("deployment", "rook-ceph-osd-3")["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    assert revision == "1", f"it was restarted: revision {revision}"
    world.expect_migrated(before, fsids, [0, 3], {osd: world.stores()[osd] for osd in (1, 2, 4, 5)})
    world.say("left to Rook: Rook created the Deployment, and did not have to change it")


def broken(world, before, fsids):
    """Kills the runner and removes the fence during a rebuild.

    Rook reconciles, and waits for an `ok-to-stop` that the OSD in progress prevents. The next runner sets the fence
    again, and Rook does not acknowledge it. The command of the runner's message is typed, and the OSD is completed once,
    under its id, on its disk.
    """
    operator = taken_over(world, "1.20.1")
    job = world.start("broken", ["run", "--confirm", "yes-really-migrate-osds", "--select", "osd.2"])
    world.until("osd.2 to be rebuilt", 300, lambda: "rebuild" in world.milestones(2), pause=0.1)
    end_runner(world, job)
    world.kubectl("label", "cephcluster", "rook-ceph", f"{rook.FENCE}-")
    unfence = "kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=0"
    world.until("the run to report how to stop Rook", 120, lambda: f"If it never does: {unfence}" in world.log(job))
    world.lab(*unfence.split())
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    assert unfence.replace("=0", "=1") in world.log(job), world.log(job)
    world.lab(*unfence.replace("=0", "=1").split())
    met, done = [*operator.refilled], operator.done
    world.until("Rook to reconcile the new Deployment", 300, lambda: operator.done >= done + 2)
    world.until("Rook's PodDisruptionBudget, which it deleted for a drain", 120, lambda: world.get("pdb", rook.PDB))
    operator.end()
    world.expect_migrated(before, fsids, [0, 2, 3], {osd: world.stores()[osd] for osd in (1, 4, 5)})
    assert not operator.trouble and not operator.started and operator.refilled == met, (operator.trouble, operator.started, operator.refilled)
    restarts(world, [2])
    world.say(f"fence removed: Rook found destroyed slots {met}, and was stopped by the run's command; completed once, same id")


def reject_pdbs(world):
    """Removes the right to create PodDisruptionBudgets from the run's Role, until a Helm upgrade."""
    world.may_be_refused.add(("osd-migrate", "create", "policy", "poddisruptionbudgets"))
    rules = [rule for rule in world.get("role", "osd-migrate")["rules"] if rule != CREATE_PDBS]
    patch = json.dumps({"rules": rules})
    assert "poddisruptionbudgets" in patch
    world.kubectl("patch", "role", "osd-migrate", "--type", "merge", "-p", patch)
    world.kubectl("delete", "pdb", rook.PDB, "--ignore-not-found")


def restored(world, operator):
    """Checks that a cancelled run, and an uninstall, restore what a deleted or killed run left behind."""
    job = world.start("blocked")
    world.until("the operator to be scaled to 0", 120, lambda: operator.replicas() == 0)
    restored_for_a_pause(world, operator)
    world.until("the run to report it", 120, lambda: "[pdb-rejected]" in world.log(job))
    assert fence(world) and "noout" in world.ceph("osd", "dump")["osds"][5]["state"], world.log(job)
    assert world.is_ready(5) and "can-i create poddisruptionbudgets" in world.log(job), world.log(job)
    world.delete(job)
    chart.helm(world, "upgrade", values=[*VALUES, chart.UNCHECKED])
    world.command("cancel")
    job = world.start("cancelled")
    assert world.wait_for(job, 300) == ("Failed", 3), world.log(job)
    as_before(world, operator)
    world.command("resume")

    sleeper = frozen.Sleeper(world, "save-record", 5, ["--scale-operator"])
    try:
        world.until("the runner to be suspended after it scaled the operator to 0", 120, sleeper.sleeps)
    finally:
        sleeper.kill()
    assert operator.replicas() == 0 and not world.records(), world.records()
    chart.helm(world, "uninstall")
    as_before(world, operator)
    world.say("deleted before a stop, then cancelled; killed before an OSD was recorded, then uninstalled: everything is restored")
    chart.helm(world, "install", values=VALUES)


def restored_for_a_pause(world, operator):
    """Checks that a run that restored the operator itself scales it to 0 again."""
    world.command("pause")
    world.until("the operator to be restored for the pause", 60, lambda: operator.replicas() == 1)
    reject_pdbs(world)  # in the pause: the OSD may be inspected already, and its stop is next
    world.command("resume")
    # The restored operator prepares OSDs first, which takes a minute or two.
    world.until("the operator to be scaled to 0 after the pause", 300, lambda: operator.replicas() == 0)
    world.say("paused before a stop: the operator is scaled back, and to 0 again")


def fence(world):
    return world.get("cephcluster", "rook-ceph")["metadata"].get("labels", {}).get(rook.FENCE)


def as_before(world, operator):
    assert operator.replicas() == 1 and not world.records() and not fence(world), (operator.replicas(), world.records(), fence(world))
    dump = world.ceph("osd", "dump")
    assert not dump.get("crush_node_flags") and not {"noout", "noin"} & set(dump["osds"][5]["state"]), dump["osds"][5]


def scaled(world, before, fsids):
    operator = taken_over(world, "1.14.3")
    restored(world, operator)
    world.until("Rook's PodDisruptionBudget", 120, lambda: world.get("pdb", rook.PDB))
    job = world.start("scaled")
    world.until("osd.5 to be stopped", 120, lambda: "rebuild" in world.milestones(5))
    assert (operator.replicas(), world.drain_limit()) == (0, 0), (operator.replicas(), world.drain_limit())
    assert "is scaled to 0" in world.command("status"), world.command("status")
    reject_pdbs(world)
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    assert "can-i create poddisruptionbudgets" in world.log(job) and not world.own_pdb(), world.log(job)
    chart.helm(world, "upgrade", values=[*VALUES, chart.UNCHECKED])
    world.until("Rook's PodDisruptionBudget", 120, lambda: world.get("pdb", rook.PDB))
    assert (operator.replicas(), world.drain_limit()) == (1, 1), (operator.replicas(), world.drain_limit())
    ended(world, operator, [5])
    world.expect_migrated(before, fsids, range(6))
    world.say(f"scaled to 0 and back: {operator.done} reconciles done; no OSD in progress was disturbed")


def both(world, before, fsids):
    """Checks that one fence is set for the whole run if the CephCluster confirms the migration also to Rook.

    The fence is unset when nothing is left that Rook would migrate.
    """
    operator = taken_over(world, "1.20.1")
    world.confirm()
    job = world.start("both", ["run", "--select", "osd.1,osd.4"])
    world.until("osd.1 to be migrated", 600, lambda: 4 in world.records())
    assert world.get("cephcluster", "rook-ceph")["metadata"]["labels"].get(rook.FENCE), "the fence was not set between two OSDs"
    end_runner(world, job)
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    assert len(operator.fences) == 1, f"not exactly one fence: {operator.fences}"
    assert rook.FENCE not in world.get("cephcluster", "rook-ceph")["metadata"].get("labels", {})
    patch = '{"spec": {"storage": {"migration": null, "store": {"updateStore": null}}}}'
    world.kubectl("patch", "cephcluster", "rook-ceph", "--type", "merge", "-p", patch)
    ended(world, operator, [1, 4])
    world.expect_migrated(before, fsids, [0, 1, 2, 3, 4], {5: world.stores()[5]})
    world.say(f"confirmed to both: one fence for two OSDs, {operator.done} reconciles done; no OSD in progress was disturbed")


def end_runner(world, job):
    pod = world.get("pods", selector=f"batch.kubernetes.io/job-name={job}")["items"][0]["metadata"]["name"]
    world.kubectl("delete", "pod", pod, "--grace-period=0", "--force")


def restarts(world, recreated):
    """Checks by the ReplicaSets of each recreated OSD that Rook restarted it at most once."""
    for osd, fsid in world.fsids().items():
        sets = world.get("replicasets", selector=f"ceph-osd-id={osd}")["items"] if osd in recreated else []
        of_new = [one for one in sets if fsid in json.dumps(one["spec"]["template"])]
        assert osd not in recreated or 1 <= len(of_new) <= 2, (osd, [one["metadata"]["name"] for one in of_new])
