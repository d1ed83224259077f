"""Beside a Rook that runs. One that knows the fence: the Job puts it up OSD by OSD, begins when Rook was heard, and Rook takes
over what was made; the runner is killed in between. Legacy OSDs make its reconciles fail, which it tries again at once, and
an OSD that is down counts as a drain for it. Asked to, the Job leaves Rook the Deployment to make. Where the CephCluster
confirms to both, the fence stays for the whole run. Where somebody takes the fence off in the middle, Rook meets a slot that
we destroyed, and the Job finishes it all the same. An older one: it is scaled to 0, and back in the end; also by a cancel
and by an uninstall that find what a dead run left. Where the API server refuses a budget of ours, nothing is stopped, and what is stopped goes on."""
import json

from . import chart, frozen, rook

CONFIRMED = "run.confirmation=yes-really-migrate-osds"
VALUES = ["run.scaleOperator=true", CONFIRMED]
MAKES_BUDGETS = {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["create"]}
# Of Rook's Jobs that prepare OSDs: more than any node has. Ours have its limits, and reserve nothing.
PREPARE = {"requests": {"cpu": "100"}, "limits": {"memory": "1Gi"}}
OURS = {"requests": {"cpu": "0", "memory": "0"}, "limits": {"memory": "1Gi"}}


def run(world):
    world.up(layout="0=bluestore-dev,1=filestore-part,2=bluestore-dev,3=bluestore-dev,4=bluestore-dev,5=bluestore-dev", manifests=False)
    world.lab("write", "100")
    world.adorn()
    chart.helm(world, "install", values=VALUES)
    for osd in range(6):  # as Rook from 1.6 on has it, and without it on all of them does not look for drains
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
    """A stand-in that has brought all that is there into its own words: from then on a restart of its is told apart."""
    operator = rook.Rook(world, version)
    operator.start()
    world.until("Rook to have reconciled", 600, lambda: operator.done >= 1 or operator.trouble)
    assert not operator.trouble, operator.trouble
    world.lab("wait-clean", "120")
    return operator


def ended(world, operator, made):
    """It reconciles what was made, and found nothing of ours in the middle of the work."""
    done = operator.done
    world.until("Rook to reconcile what was made", 300, lambda: operator.done >= done + 2)
    operator.end()
    assert not operator.trouble, operator.trouble
    assert not operator.started, f"Rook found stopped and started: {operator.started}"
    assert not operator.refilled, f"Rook found slots destroyed: {operator.refilled}"
    handed = set(operator.hydrated)
    assert {*made} - handed <= {*operator.rendered_again}, f"of {made} Rook rendered {operator.rendered_again} anew"
    restarts(world, made)


def fenced(world, before, fsids):
    operator = taken_over(world, "1.20.1")
    args = ["run", "--confirm", "yes-really-migrate-osds", "--select", "osd.0"]
    job = world.start("fenced", args)
    world.until("the fence to be heard", 120, lambda: operator.skipped)
    agents = [one for one in world.get("pods")["items"] if "-inspect-0-" in one["metadata"]["name"]]
    given = [container["resources"] for pod in agents for kind in ("initContainers", "containers") for container in pod["spec"][kind]]
    assert given and all(one == OURS for one in given), given
    within_quota(world, agents[0]["spec"])
    end_runner(world, job)
    world.until("Rook to take the stopped OSD for a drain", 300, lambda: operator.drained)
    # Pods without its label its budgets of hosts do not cover; and a Rook that wakes up makes its one of 1 anew.
    own = world.until("a budget of the run's own", 30, world.own_pdb)
    said = world.eviction(4)
    assert "isruption" in said and own == world.own_pdb(), said or "osd.4 may be evicted"
    world.say(f"Rook takes osd.0 for a drain and deletes its budget; a drain of osd.4's node is told: {said}")
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    ended(world, operator, [0])
    assert operator.drained, "Rook did not take the OSD that is down for a drain"
    assert operator.failures and "activate init container" in operator.failures[-1], operator.failures[-1:]
    world.expect_migrated(before, fsids, [0], {osd: world.stores()[osd] for osd in (1, 2, 3, 4, 5)})
    reconciles = f"{operator.skipped} reconciles skipped, {operator.done} done, {len(operator.failures)} of them failed"
    world.say(f"fenced: {reconciles}; nothing of ours was disturbed")


def within_quota(world, spec):
    """Where a ResourceQuota counts what Rook's own Jobs name, the API server takes our pods; with nothing named it would not."""
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
    world.say(f"a ResourceQuota takes our pods, and refuses them with nothing named: {said.stderr.strip()[-120:]}")


def handed(world, before, fsids):
    """Rook makes the Deployment of what it finds on the disk; the runner is killed while it is waited for."""
    operator = taken_over(world, "1.20.1")
    job = world.start("left-to-rook", ["run", "--confirm", "yes-really-migrate-osds", "--select", "osd.3", "--deployment-by", "rook"])
    world.until("osd.3 to be left to Rook", 300, lambda: "left-to-rook" in milestones(world, 3))
    said = world.eviction(4)
    assert "isruption" in said, said or "osd.4 may be evicted"
    end_runner(world, job)
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    ended(world, operator, [3])
    assert operator.hydrated == [3], operator.hydrated
    revision = world.get("deployment", "rook-ceph-osd-3")["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    assert revision == "1", f"it was restarted: revision {revision}"
    world.expect_migrated(before, fsids, [0, 3], {osd: world.stores()[osd] for osd in (1, 2, 4, 5)})
    world.say("handed back: Rook made the Deployment, and never had to change it")


def broken(world, before, fsids):
    """In the middle of a rebuild the runner is killed and the fence taken off: Rook reconciles, and waits for an `ok-to-stop` that the
    OSD in work keeps it from. The next runner puts its fence up again, and is not heard: what it says then is typed, and the OSD is
    finished once, under its id, on its disk."""
    operator = taken_over(world, "1.20.1")
    job = world.start("broken", ["run", "--confirm", "yes-really-migrate-osds", "--select", "osd.2"])
    world.until("osd.2 to be rebuilt", 300, lambda: "rebuild" in milestones(world, 2), pause=0.1)
    end_runner(world, job)
    world.kubectl("label", "cephcluster", "rook-ceph", f"{rook.FENCE}-")
    unfence = "kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=0"
    world.until("the run to say how Rook is ended", 120, lambda: f"If it never does: {unfence}" in world.log(job))
    world.lab(*unfence.split())
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    assert unfence.replace("=0", "=1") in world.log(job), world.log(job)
    world.lab(*unfence.replace("=0", "=1").split())
    met, done = [*operator.refilled], operator.done
    world.until("Rook to reconcile what was made", 300, lambda: operator.done >= done + 2)
    world.until("Rook's budget, which it took down for a drain", 120, lambda: world.get("pdb", rook.BUDGET))
    operator.end()
    world.expect_migrated(before, fsids, [0, 2, 3], {osd: world.stores()[osd] for osd in (1, 4, 5)})
    assert not operator.trouble and not operator.started and operator.refilled == met, (operator.trouble, operator.started, operator.refilled)
    restarts(world, [2])
    world.say(f"unfenced in the middle: Rook met slots {met}, and was ended as the run says; finished once, under the same id")


def reject_pdbs(world):
    """Takes the right from the run's Role; an upgrade gives it back."""
    world.may_be_refused.add(("osd-migrate", "create", "policy", "poddisruptionbudgets"))
    rules = [rule for rule in world.get("role", "osd-migrate")["rules"] if rule != MAKES_BUDGETS]
    patch = json.dumps({"rules": rules})
    assert "poddisruptionbudgets" in patch
    world.kubectl("patch", "role", "osd-migrate", "--type", "merge", "-p", patch)
    world.kubectl("delete", "pdb", rook.BUDGET, "--ignore-not-found")


def restored(world, operator):
    """What a run that was deleted or killed has left is as it was after a run that is cancelled, and after an uninstall."""
    job = world.start("blocked")
    world.until("the operator to be at 0", 120, lambda: operator.replicas() == 0)
    reject_pdbs(world)
    world.until("it to be told", 120, lambda: "[pdb-rejected]" in world.log(job))
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
        world.until("it to have the operator set aside", 120, sleeper.sleeps)
    finally:
        sleeper.kill()
    assert operator.replicas() == 0 and not world.records(), world.records()
    chart.helm(world, "uninstall")
    as_before(world, operator)
    world.say("deleted before a stop, then cancelled; killed before an OSD was recorded, then uninstalled: all is as before")
    chart.helm(world, "install", values=VALUES)


def fence(world):
    return world.get("cephcluster", "rook-ceph")["metadata"].get("labels", {}).get(rook.FENCE)


def as_before(world, operator):
    assert operator.replicas() == 1 and not world.records() and not fence(world), (operator.replicas(), world.records(), fence(world))
    dump = world.ceph("osd", "dump")
    assert not dump.get("crush_node_flags") and not {"noout", "noin"} & set(dump["osds"][5]["state"]), dump["osds"][5]


def scaled(world, before, fsids):
    operator = taken_over(world, "1.14.3")
    restored(world, operator)
    world.until("Rook's budget", 120, lambda: world.get("pdb", rook.BUDGET))
    job = world.start("scaled")
    world.until("osd.5 to be stopped", 120, lambda: "rebuild" in milestones(world, 5))
    assert (operator.replicas(), world.drain_limit()) == (0, 0), (operator.replicas(), world.drain_limit())
    assert "is scaled to 0" in world.command("status"), world.command("status")
    reject_pdbs(world)
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    assert "can-i create poddisruptionbudgets" in world.log(job) and not world.own_pdb(), world.log(job)
    chart.helm(world, "upgrade", values=[*VALUES, chart.UNCHECKED])
    world.until("Rook's budget", 120, lambda: world.get("pdb", rook.BUDGET))
    assert (operator.replicas(), world.drain_limit()) == (1, 1), (operator.replicas(), world.drain_limit())
    ended(world, operator, [5])
    world.expect_migrated(before, fsids, range(6))
    world.say(f"scaled to 0 and back: {operator.done} reconciles done; nothing of ours was disturbed")


def both(world, before, fsids):
    """What the CephCluster confirms, Rook would do too: one fence for the whole run, and down when nothing is left for Rook."""
    operator = taken_over(world, "1.20.1")
    world.confirm()
    job = world.start("both", ["run", "--select", "osd.1,osd.4"])
    world.until("osd.1 to be migrated", 600, lambda: 4 in world.records())
    assert world.get("cephcluster", "rook-ceph")["metadata"]["labels"].get(rook.FENCE), "the fence was down between two OSDs"
    end_runner(world, job)
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    assert len(operator.fences) == 1, f"fences instead of one: {operator.fences}"
    assert rook.FENCE not in world.get("cephcluster", "rook-ceph")["metadata"].get("labels", {})
    patch = '{"spec": {"storage": {"migration": null, "store": {"updateStore": null}}}}'
    world.kubectl("patch", "cephcluster", "rook-ceph", "--type", "merge", "-p", patch)
    ended(world, operator, [1, 4])
    world.expect_migrated(before, fsids, [0, 1, 2, 3, 4], {5: world.stores()[5]})
    world.say(f"confirmed to both: one fence for two OSDs, {operator.done} reconciles done; nothing of ours was disturbed")


def milestones(world, osd):
    return [word for word, _ in world.records().get(osd, {"milestones": []})["milestones"]]


def end_runner(world, job):
    pod = world.get("pods", "-l", f"batch.kubernetes.io/job-name={job}")["items"][0]["metadata"]["name"]
    world.kubectl("delete", "pod", pod, "--grace-period=0", "--force")


def restarts(world, made):
    """Each that was made anew was restarted once by Rook, at most: ReplicaSets, of which each change makes one."""
    for osd, fsid in world.fsids().items():
        sets = world.get("replicasets", "-l", f"ceph-osd-id={osd}")["items"] if osd in made else []
        of_new = [one for one in sets if fsid in json.dumps(one["spec"]["template"])]
        assert osd not in made or 1 <= len(of_new) <= 2, (osd, [one["metadata"]["name"] for one in of_new])
