"""Beside a Rook that runs: the Job fences it OSD by OSD, begins when it was heard, and Rook takes over what was made. The runner
is killed in between: the fence is there when it comes back, and gone in the end."""
import json

from . import rook

LEGACY = [0, 1, 5]


def run(world):
    world.up()
    world.lab("write", "100")
    world.adorn()
    operator = rook.Rook(world)
    operator.start()
    # It brings all that is there into its own words first: from then on a restart is told by a new ReplicaSet.
    world.until("Rook to have reconciled", 600, lambda: operator.done >= 1)
    world.lab("wait-clean", "120")
    before, fsids = world.shape(), world.fsids()
    confirmed_by_both(world)
    job = world.start("beside", ["run", "--confirm", "yes-really-migrate-osds"])
    world.until("the fence to be heard", 120, lambda: operator.skipped)
    pod = world.get("pods", "-l", f"batch.kubernetes.io/job-name={job}")["items"][0]["metadata"]["name"]
    world.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    assert world.wait_for(job, 900) == ("Complete", 0), world.log(job)
    assert "left to Rook" in world.log(job), world.log(job)
    # Rook takes over the last one, too.
    done = operator.done
    world.until("Rook to reconcile what was made", 300, lambda: operator.done >= done + 2)
    operator.end()
    assert not operator.trouble, operator.trouble
    assert not operator.started, f"Rook found stopped and started: {operator.started}"
    assert not operator.refilled, f"Rook found slots destroyed: {operator.refilled}"
    assert operator.skipped >= len(LEGACY), operator.skipped
    world.expect_migrated(before, fsids, LEGACY)
    restarts(world)
    world.say(f"beside Rook: {operator.skipped} reconciles skipped, {operator.done} done; nothing of ours was disturbed")


def confirmed_by_both(world):
    """What the CephCluster confirms, Rook would do too: refused, with both ways out."""
    world.confirm()
    job = world.start("confirmed-by-both")
    world.until("the refusal", 60, lambda: "confirms Rook's own migration" in world.log(job))
    assert not world.records(), world.records()
    world.delete(job)
    world.until("its runner to be gone", 60, lambda: not world.get("pods", "-l", f"batch.kubernetes.io/job-name={job}")["items"])
    patch = '{"spec": {"storage": {"migration": null, "store": {"updateStore": null}}}}'
    world.kubectl("patch", "cephcluster", "rook-ceph", "--type", "merge", "-p", patch)


def restarts(world):
    """Each that was made anew was restarted once by Rook, at most: ReplicaSets, of which each change makes one."""
    for osd, fsid in world.fsids().items():
        if osd not in LEGACY:
            continue
        sets = world.get("replicasets", "-l", f"ceph-osd-id={osd}")["items"]
        of_new = [one for one in sets if fsid in json.dumps(one["spec"]["template"])]
        assert 1 <= len(of_new) <= 2, (osd, [one["metadata"]["name"] for one in of_new])
