"""A failed part never blocks the healthy rest, and no OSD stays down without a way to recover.

On one cluster: a dead OSD with a second Deployment to debug it, a cordoned node with a prepare Job of
Rook that never starts, a tenant at its quota, a disk without a name under /dev/disk/by-id, PGs that
merge and are repaired while OSDs are stopped; then a new OSD whose init container fails repeatedly. With
--full also ten stops during merges and repairs under `rados bench`, none of them while the OSDs need longer
to commit a write than the run allows, and a node that is lost during a rebuild.
"""

import json
import subprocess
import time

from . import NAMESPACE, rook, sick
from .world import LAB

LEGACY = [0, 1, 2, 5]
LAYOUT = ",".join(f"{osd}=bluestore-dev" for osd in LEGACY)
DEAD, CORDONED, NAMELESS = 0, 1, 5
HEALTHY = [2, NAMELESS]
RUN = ["run", "--confirm", "yes-really-migrate-osds"]
# Seconds instead of the default minutes. A healthy start takes half of them while three other labs are running.
SKIP_SOON = ["--skip-after", "20s"]
START_LIMIT = ["--start-limit", "45s"]
NOOUT_LIMIT = ["--noout-limit", "40s"]
SOME_NOT_MIGRATED, QUARANTINED = 12, 11


def run(world):
    world.up(layout=LAYOUT)
    world.lab("write", "200")
    fsids = world.fsids()
    the_rest_goes_on(world, fsids)
    init_container_fails(world)
    expect_end(world, fsids)
    if world.full:
        world.down_completely()
        merges_and_repairs(world)
        world.down_completely()
        node_lost(world)


# ---- failed parts and the healthy rest


def the_rest_goes_on(world, fsids):
    sick.kill_osd(world, DEAD)
    debug(world, DEAD)
    sick.fill_tenant(world)
    sick.merging_pool(world, 24)
    world.lab("no-id", f"osd{NAMELESS}")
    world.kubectl("cordon", f"h{CORDONED + 1}")
    rook.create_prepare_job(world, f"h{CORDONED + 1}", ["true"])
    repairs = sick.repair_continuously(world)
    job = world.start("rest", [*RUN, *SKIP_SOON])
    for number, osd in enumerate(HEALTHY):
        reach(world, job, osd, "stop")
        sick.set_pg_num(world, 20 - 4 * number)
    result = world.wait_for(job, 400)
    sick.end(world, repairs)
    log = world.log(job)
    assert result == ("Failed", SOME_NOT_MIGRATED), (result, log)
    sick.expect_untouched(world, fsids, DEAD, CORDONED)
    changed = {osd for osd, fsid in world.fsids().items() if fsid != fsids[osd]}
    assert changed == {*HEALTHY}, f"rebuilt: {changed}\n{log}"
    assert not sick.reverted(world), f"stops reverted: {sick.reverted(world)}\n{log}"
    last = log.splitlines()[-1]
    for osd, word in ((DEAD, "is down"), (CORDONED, f"node h{CORDONED + 1} is cordoned")):
        assert f"osd.{osd}" in last and word in last, f"the last line does not report osd.{osd} with `{word}`:\n{log}"
    world.say(f"{HEALTHY} were migrated despite a dead OSD, a cordoned node, a full tenant: {last[:600]}")
    sick.drop_tenant(world)
    world.kubectl("delete", "deployment", f"rook-ceph-osd-{DEAD}-debug")
    rook.delete_prepare_jobs(world)
    world.kubectl("uncordon", f"h{CORDONED + 1}")


def debug(world, osd):
    """Creates a second Deployment of the OSD, as the debug mode of Rook's kubectl plugin does, but without a pod."""
    item = world.get("deployment", f"rook-ceph-osd-{osd}")
    labels = {**item["metadata"]["labels"], "ceph.rook.io/do-not-reconcile": "true"}
    metadata = {"name": f"rook-ceph-osd-{osd}-debug", "namespace": NAMESPACE, "labels": labels}
    second = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {**item["spec"], "replicas": 0}}
    world.kubectl("create", "-f", "-", stdin=json.dumps(second))


def reach(world, job, osd, word):
    """Waits until the OSD's record has a milestone, and fails if the Job ends before."""
    observations = 0

    def is_reached():
        nonlocal observations
        observations += 1
        assert observations % 20 or not world.result(job), f"osd.{osd} did not reach {word}:\n{world.log(job)}"
        return sick.has_reached(world, osd, word)

    world.until(f"osd.{osd} to reach {word}", 200, is_reached, pause=0.1)


# ---- a new OSD that does not start


def init_container_fails(world):
    """Checks that an OSD whose disk fails before its start is quarantined, and that noout is unset."""
    job = world.start("init-fails", [*RUN, *START_LIMIT, "--select", f"osd.{CORDONED}"])
    pull_before_start(world, job, CORDONED)
    assert sick.has_noout(world, CORDONED), "noout was not set for the stop"
    took = sick.seconds_until(world, "noout to be unset", 150, lambda: not sick.has_noout(world, CORDONED))
    result = world.wait_for(job, 120)
    log = world.log(job)
    assert result == ("Failed", QUARANTINED), (result, log)
    why = world.records()[CORDONED]["quarantine"]["why"]
    assert not sick.has_noout(world, CORDONED)
    world.say(
        f"osd.{CORDONED}: init container fails; noout unset after {took:.0f} s; quarantined: {why[:300]}"
    )


def pull_before_start(world, job, osd):
    """Removes the disk of a recreated OSD before its first start."""
    prefix = f"osd-migrate-rebuild-{osd}-"
    pods = lambda: [pod["metadata"]["name"] for pod in world.get("pods")["items"]]  # noqa: E731
    world.until("the agent of the rebuild", 120, lambda: any(pod.startswith(prefix) for pod in pods()))
    world.kubectl("create", "quota", "lab-no-pods", "--hard=pods=0")  # so the new OSD gets no pod
    reach(world, job, osd, "new")
    world.lab("pull", f"osd{osd}")
    world.kubectl("delete", "quota", "lab-no-pods")


def expect_end(world, fsids):
    """Checks that the next run migrates the remaining OSDs after the disk was attached again."""
    world.lab("plug", f"h{CORDONED + 1}", f"osd{CORDONED}")
    world.command("retry", f"osd.{CORDONED}")
    job = world.start("rest-again", [*RUN, *SKIP_SOON])
    result = world.wait_for(job, 300)
    assert result == ("Failed", SOME_NOT_MIGRATED), (result, world.log(job))
    changed = {osd for osd, fsid in world.fsids().items() if fsid != fsids[osd]}
    assert changed == {*LEGACY} - {DEAD}, f"rebuilt: {changed}\n{world.log(job)}"
    world.until("all PGs to be clean", 120, lambda: sick.pg_states(world) == {"active+clean"})
    world.lab("verify")
    world.expect_nothing_left()
    world.say("all OSDs except the dead one are migrated; every object equal; nothing left behind")


# ---- --full: ten stops during merges and repairs, under load


TEN = 10


def merges_and_repairs(world):
    world.up(layout=",".join(f"{osd}=bluestore-dev" for osd in range(TEN)), osds=TEN)
    world.lab("write", "200")
    before, fsids = world.shape(), world.fsids()
    pg_num, low, high = 0, 16, 48
    sick.merging_pool(world, high)
    repairs, bench = sick.repair_continuously(world), start_bench(world)
    clients_first(world)
    job, done = world.start("merges", RUN), set()
    while not world.result(job):
        for osd, record in world.records().items():
            if osd not in done and "stop" in sick.milestones(record):
                done.add(osd)
                pg_num = low if pg_num != low else high
                sick.set_pg_num(world, pg_num)
        time.sleep(0.1)
    assert world.result(job) == ("Complete", 0), (world.result(job), world.log(job))
    sick.end(world, repairs)
    end_bench(world, bench)
    assert len(done) == TEN and not sick.reverted(world), (
        f"{done}; reverted: {sick.reverted(world)}\n{world.log(job)}"
    )
    world.expect_migrated(before, fsids, range(TEN))
    world.say(f"{TEN} stops during merges, repairs and rados bench: none was reverted")


def clients_first(world):
    """Checks that a run with a limit below what the disks can do starts no OSD, and says so."""
    job = world.start("clients-first", [*RUN, "--max-commit-latency", "1ms"])
    log = world.until("the run to wait", 60, lambda: "[commit-latency]" in world.log(job) and world.log(job))
    assert not world.records() and world.result(job) is None, log
    world.delete(job)
    world.say(next(line for line in reversed(log.splitlines()) if "[commit-latency]" in line)[:300])


def start_bench(world):
    """Starts writes of 64 KiB, four at a time, until `end_bench`.

    Each iteration deletes its objects. Otherwise the objects of an hour would fill the lab's disks, and each OSD would
    have more data to backfill than the previous one.
    """
    script = "while rados bench -p labpool 15 write -b 65536 -t 4 --run-name lab-bench; do :; done"
    process = subprocess.Popen(
        [LAB, "on", "adm", "bash", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    world.background.append(process)
    return process


def end_bench(world, process):
    assert process.poll() is None, f"rados bench ended unexpectedly: {process.returncode}"
    world.background.remove(process)
    # Kill the loop first. (It also ends when rados bench fails.)
    world.lab("on", "adm", "pkill", "-f", "while rados bench", check=False)
    world.lab("on", "adm", "pkill", "-f", "rados bench", check=False)
    process.wait(60)
    world.lab("on", "adm", "rados", "-p", "labpool", "cleanup", "--run-name", "lab-bench")


# ---- --full: a node that is lost


def node_lost(world):
    """Checks that noout is unset if a node loses power permanently during a rebuild."""
    lost = 5
    world.up(layout="2=bluestore-dev,5=bluestore-dev")
    world.lab("write", "100")
    job = world.start("node-lost", [*RUN, *NOOUT_LIMIT, "--select", f"osd.{lost}"], node="h1")
    reach(world, job, lost, "rebuild")
    world.lab("power-off", "h3")
    assert sick.has_noout(world, lost)
    took = sick.seconds_until(world, "noout to be unset", 180, lambda: not sick.has_noout(world, lost))
    world.say(f"h3 is lost during the rebuild of osd.{lost}: noout unset after {took:.0f} s")
    # The run ends only after half an hour without a heartbeat: the node may return, and its agent with it.
    log = world.until("the runner to report it", 60, lambda: "[noout-lifted]" in world.log(job) and world.log(job))
    assert world.result(job) is None and not sick.has_noout(world, lost), log
    world.say(next(line for line in reversed(log.splitlines()) if "noout" in line)[:300])
