"""The node of the runner loses power while an OSD of another node is stopped.

The pod of the runner never ends, and its Job creates no other one. A second run continues without a person: the OSD is up
again, although OSDs of the lost node are down. When Ceph has healed without that node, the OSD is migrated.
"""

import re
import time

from . import course, faults, sick

OSD, HOST = 0, "h1"
LOST, LOST_OSDS = "h2", (1, 5)
OTHER = "h3"


def run(world):
    world.up(osds=8, layout=f"{OSD}=bluestore-dev", hosts=4)
    world.lab("write", "200")
    first = world.start("first", faults.select(OSD), node=LOST)
    world.until(f"osd.{OSD} to be stopped", 120, lambda: faults.milestone(world, OSD, "stop"), pause=0.05)
    world.lab("power-off", LOST)
    world.until("its OSDs to be down", 120, lambda: not any(faults.is_up(world, osd) for osd in LOST_OSDS))
    world.until("the node not to be Ready", 180, lambda: not is_ready(world, LOST))
    lasts = world.get("lease", "osd-migrate")["spec"]["leaseDurationSeconds"]
    world.until("the Lease to expire", lasts + 60, lambda: age_of_lease(world) > lasts)
    second = world.start("second", faults.select(OSD), node=OTHER)
    log = waits_for(world, second, f"node {LOST} of pod first-")
    world.say(f"the node of the first runner is lost, and the second one says: {log.splitlines()[-1]}")
    waits_for(world, second, "acquired the Lease of pod first-", 400)
    held = age_of_lease(world)
    assert held < lasts, f"the Lease was renewed {held:.0f} s ago"
    world.until(f"osd.{OSD} to be up again", 300, lambda: faults.is_up(world, OSD))
    assert old_pods(world, first), "a person or Kubernetes has deleted the first pod"
    world.say(f"osd.{OSD} is up again; the pod of the first runner still exists")
    for osd in LOST_OSDS:
        world.lab("ceph", "osd", "out", str(osd))
    world.until("all PGs to be clean", 300, lambda: sick.pg_states(world) == {"active+clean"})
    assert world.wait_for(second, 600) == ("Complete", 0), world.log(second)
    assert re.search(rf"osd\.{OSD}: done: .* \[closing\]", world.log(second)), world.log(second)
    assert not world.records(), world.records()
    assert old_pods(world, first) and world.result(first) is None
    world.lab("verify")
    world.say(f"osd.{OSD} was migrated, and nobody touched the first Job")


def is_ready(world, name):
    conditions = world.get("node", name)["status"]["conditions"]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def age_of_lease(world):
    return time.time() - course.seconds(world.get("lease", "osd-migrate")["spec"]["renewTime"])


def old_pods(world, job):
    return world.get("pods", selector=f"batch.kubernetes.io/job-name={job}")["items"]


def waits_for(world, job, words, seconds=120):
    return world.until(f"the log to have '{words}'", seconds, lambda: words in (log := world.log(job)) and log)
