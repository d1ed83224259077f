"""The API server is away while an OSD is stopped, for longer than `--noout-limit`.

First it hangs (SIGSTOP: connections are open and nothing answers), then it has ended (connections are refused) for longer
than a runner waits for it. Each time the runner lets Ceph heal meanwhile, and the OSD is migrated when the API server is
back, without a person.
"""

import os
import signal
import time

from . import faults, sick

HANGS, ENDS = 0, 1  # one OSD for each kind of outage
NOOUT_LIMIT = 40  # seconds
PATIENCE = 330  # seconds after which a runner exits that gets no answer: 100 failures, 3 s apart
LIMIT = ["--noout-limit", f"{NOOUT_LIMIT}s"]


def run(world):
    world.up(layout=f"{HANGS}=bluestore-dev,{ENDS}=bluestore-dev")
    world.lab("write", "200")
    before, fsids = world.shape(), world.fsids()
    hangs(world)
    ends(world)
    world.expect_migrated(before, fsids, [HANGS, ENDS])


def hangs(world):
    """Checks an API server that answers nothing for two minutes: the runner lifts `noout` and waits."""
    job = stopped(world, "hangs", HANGS)
    send(world, signal.SIGSTOP)
    noout_is_lifted(world, HANGS, "hangs")
    time.sleep(60)  # also the Lease and the nodes' heartbeats expire
    send(world, signal.SIGCONT)
    migrated(world, job, HANGS)
    assert pods(world, job) == 1, "the runner has not waited"


def ends(world):
    """Checks an API server that has ended for longer than a runner waits: its Job continues with another pod."""
    job = stopped(world, "ends", ENDS)
    send(world, signal.SIGKILL)
    began = time.monotonic()
    noout_is_lifted(world, ENDS, "has ended")
    time.sleep(max(0, began + PATIENCE - time.monotonic()))
    world.lab("restart", "cp", "kube-apiserver")
    world.until("the API server to be back", 120, lambda: answers(world), pause=1)
    migrated(world, job, ENDS)
    assert pods(world, job) > 1, "the first runner has waited longer than expected"


def stopped(world, name, osd):
    """Starts a run, and waits until it has stopped the OSD."""
    job = world.start(name, [*faults.select(osd), *LIMIT])
    world.until(f"osd.{osd} to be stopped", 120, lambda: faults.milestone(world, osd, "stop"), pause=0.05)
    world.until(f"osd.{osd} to be down", 60, lambda: not faults.is_up(world, osd), pause=0.1)
    assert sick.has_noout(world, osd), "noout was not set for the stop"
    return job


def send(world, number):
    """Sends a signal to the API server, and to the nsenter that started it: it stops itself when its child is stopped."""
    started = f"--tls-private-key-file={os.path.abspath(world.folder())}/pki/apiserver.key"
    found = [pid for pid in os.listdir("/proc") if pid.isdigit() and started in arguments(pid)]
    assert found, "the API server is not running"
    for pid in found:
        os.kill(int(pid), number)


def arguments(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return []


def noout_is_lifted(world, osd, what):
    took = sick.seconds_until(world, "noout to be unset", 150, lambda: not sick.has_noout(world, osd))
    assert not faults.is_up(world, osd), f"osd.{osd} is up"
    world.say(f"the API server {what}: noout of osd.{osd} unset after {took:.0f} s (limit: {NOOUT_LIMIT} s)")


def answers(world):
    return world.lab("kubectl", "get", "--raw", "/readyz", check=False).stdout == "ok"


def migrated(world, job, osd):
    began = time.monotonic()
    assert world.wait_for(job, 400) == ("Complete", 0), world.log(job)
    world.say(f"osd.{osd} was migrated {time.monotonic() - began:.0f} s after the API server was back")


def pods(world, job):
    return len(world.list("pods", selector=f"batch.kubernetes.io/job-name={job}"))
