"""Runners and agents that are suspended: none of their decisions takes effect after they are resumed.

`relay`: a chain of runners outside Kubernetes migrates one OSD. SIGSTOP (src/failpoint.rs) suspends each runner right
before one act. The next runner acquires the Lease, because the pod of its holder does not exist, does that act, and is
suspended before the following act. A Job completes the migration. Then all runners are resumed. The agent of the
rebuild is suspended too, and other agents are started by hand meanwhile. With --full also one OSD that is emptied first,
one whose removal is taken back after its weight was dropped, and one that is removed.
`frozen_pod`: SIGSTOP suspends a runner's pod. Another runner replaces it after its Lease has expired.
"""
import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import uuid

from . import remove
from .frozen_ways import WAY, WAY_OF_EMPTIED, WAY_OF_KEPT, WAY_OF_OWN_PDB, WAY_OF_REMOVED
from .world import LAB

RUN = ["run", "--confirm", "yes-really-migrate-osds", "--select"]
# Objects that every runner writes continuously. No decision depends on them.
STATUS_OBJECTS = {("leases", "osd-migrate"), ("configmaps", "osd-migrate-status")}
REMOVED = 4  # on h2, as osd.1
AGENTS = "/var/lib/rook/osd-migrate"  # the agents' folder on each host


def run(world):
    # Legacy OSDs more with --full.
    more = "2=bluestore-dev,3=bluestore-dev,5=bluestore-dev"
    world.up(layout=f"0=bluestore-dev,1=filestore-part,{more}" if world.full else None)
    world.lab("write", "200")
    before, fsids = world.shape(), world.fsids()
    relay(world, 0, "", WAY, {"save-new": busy_agent})
    migrated = [0]
    if world.full:
        # After the read of the ledger with which each act starts: only the act's own conditions remain.
        relay(world, 1, "late-", WAY, {"save-new": resumed_agent})
        frozen_pod(world, 5)
        rooks = world.get("pdb", "rook-ceph-osd")
        world.kubectl("delete", "pdb", "rook-ceph-osd")
        relay(world, 3, "late-", WAY_OF_OWN_PDB, {"save-new": resumed_agent})
        pdb = {"apiVersion": rooks["apiVersion"], "kind": rooks["kind"], "metadata": {"name": "rook-ceph-osd"}, "spec": rooks["spec"]}
        world.kubectl("create", "-f", "-", stdin=json.dumps(pdb))
        relay(world, 2, "late-", WAY_OF_EMPTIED, {}, [*RUN, "osd.2", "--empty", "all"])
        migrated = [0, 1, 2, 3, 5]
    quarantined = {} if 1 in migrated else {1: "filestore"}
    world.expect_migrated(before, fsids, migrated, quarantined)
    if world.full:
        kept(world)
        removed(world)


def kept(world):
    """Checks that a runner that would drop a weight does not, after the removal was taken back."""
    before = world.shape()
    remove.request(world, REMOVED)
    relay(world, REMOVED, "late-", WAY_OF_KEPT, {"restore-weight": keep}, remove.RUN)
    assert world.shape() == before and not remove.requests(world), (world.shape(), remove.requests(world))


def keep(world, osd, go_on):
    assert remove.crush_weight(world, osd) == 0, "its weight was not dropped"
    remove.person(world, "keep", f"osd.{osd}")
    go_on()


def removed(world):
    before = world.shape()
    remove.request(world, REMOVED)
    relay(world, REMOVED, "late-", WAY_OF_REMOVED, {}, remove.RUN)
    remove.gone(world, REMOVED, before)
    assert remove.ends(world, REMOVED) == 0, "its disk is not blank"
    world.lab("verify")


def busy_agent(world, osd, go_on):
    """Checks that no second agent works while one is suspended before its first write.

    The lock prevents a second agent. If a person removes the lock, the disk, which is open exclusively, prevents it.
    """
    with SuspendedAgent(world, osd, "wipe", go_on) as first:
        before = first.disk()
        report = first.by_hand("second-agent")
        assert report["problem"]["kind"] == "busy", report
        first.remove_lock()
        report = first.by_hand("third-agent")
        assert report["problem"]["kind"] == "refused" and "is in use" in report["problem"]["message"], report
        first.assert_unwritten(before, "another process than the first agent")
        world.say(f"osd.{osd}: the lock prevents a second agent; without the lock, the disk does: {report['problem']['message']}")
        first.wake()


def resumed_agent(world, osd, go_on):
    """Checks that an agent writes nothing if it is resumed after a second agent has created the new OSD.

    It is suspended before it opens the disk, and its lock is removed.
    """
    with SuspendedAgent(world, osd, "open", go_on) as first:
        report = first.by_hand("second-agent")
        assert report["problem"]["kind"] == "busy", report
        first.remove_lock()
        report = first.by_hand("third-agent")
        assert not report["problem"] and "finished" in json.dumps(report["inspection"]).lower(), report
        created = first.disk()
        first.wake()
        report = first.report()
        assert report["problem"]["kind"] == "refused" and "expected destroyed" in report["problem"]["message"], report
        first.assert_unwritten(created, "the first agent")
        world.say(f"osd.{osd}: an agent resumed after another had created the OSD: {report['problem']['message']}; it wrote nothing")


class SuspendedAgent:
    """The agent of a rebuild, which SIGSTOP from its host suspends at a place of src/failpoint.rs."""

    def __init__(self, world, osd, place, go_on, host=None, seconds=60):
        self.world, self.osd, self.host = world, osd, host or f"h{osd % 3 + 1}"
        self.on("bash", "-c", f"echo {place} > {AGENTS}/failpoint")
        go_on()
        self.name = world.until("the node Job", seconds, self.job)
        world.until(f"the agent to be suspended before {place}", seconds, lambda: f"suspended before {place}" in world.log(self.name), pause=0.1)
        self.pid = self.on("pgrep", "-f", "^/opt/osd-migrate/osd-migrate node agent")
        self.on("kill", "-STOP", self.pid)
        self.on("rm", f"{AGENTS}/failpoint")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wake()

    def on(self, *args, **more):
        return self.world.lab("on", self.host, *args, **more).stdout.strip()

    def job(self):
        selector = f"osd-migrate.io/osd={self.osd},osd-migrate.io/task=rebuild"
        found = self.world.get("jobs", selector=selector)
        return found and found["items"][0]["metadata"]["name"]

    def wake(self):
        self.on("kill", "-CONT", self.pid, check=False)

    def remove_lock(self):
        self.on("rm", f"{AGENTS}/osd-{self.osd}.lock")

    def disk(self):
        """Returns {MiB: SHA-256} of the disk's backing file, without MiB that are all zeros.

        The holes of the file are no measure: they change without a write.
        """
        self.on("bash", "-c", f"blockdev --flushbufs $(readlink -f /dev/disk/by-id/lab-osd{self.osd})")
        size, found = 1 << 20, {}
        with open(os.path.join(self.world.lab_dir, "img", f"osd{self.osd}.img"), "rb") as file:
            end, at = os.fstat(file.fileno()).st_size, 0
            while at < end:
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA) // size * size
                except OSError:  # the rest is a hole
                    break
                piece = os.pread(file.fileno(), size, at)
                if piece.count(0) < len(piece):
                    found[at // size] = hashlib.sha256(piece).hexdigest()
                at += size
        return found

    def assert_unwritten(self, before, who):
        now = self.disk()
        written = sorted({mib for mib, _ in now.items() ^ before.items()})
        assert not written, f"{who} wrote to the disk, in these MiB: {written}"

    def report(self, name=None):
        name = name or self.name
        assert self.world.wait_for(name, 90) == ("Complete", 0), self.world.log(name)
        return json.loads(self.world.get("configmap", name)["data"]["report"])

    def by_hand(self, name):
        """Runs a second agent with the request of the first, as a person may do, and returns its report."""
        job = self.world.get("job", self.name)
        spec = job["spec"]["template"]["spec"]
        for variable in spec["containers"][0]["env"]:
            if variable["name"] == "OSD_MIGRATE_REPORT":
                variable["value"] = name
        spec["restartPolicy"] = "Never"
        copy = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": spec}}}
        self.world.kubectl("create", "configmap", name)
        self.world.kubectl("create", "-f", "-", stdin=json.dumps(copy))
        report = self.report(name)
        self.world.kubectl("delete", f"job/{name}", f"configmap/{name}", "--wait=false")
        return report


class Sleeper:
    """A runner outside Kubernetes that suspends itself at a place.

    Its pod does not exist, so another runner can acquire its Lease.
    """

    def __init__(self, world, place, osd, more=(), run=None):
        self.world, self.place = world, place
        name = f"asleep-{place}-{osd}-{uuid.uuid4().hex[:4]}"  # two may be suspended before the same step
        env = {
            **os.environ, "POD_NAME": name, "POD_NAMESPACE": "rook-ceph", "POD_UID": str(uuid.uuid4()),
            "OSD_MIGRATE_OWN_IMAGE": "lab.local/osd-migrate:dev", "OSD_MIGRATE_FAILPOINT": place,
        }  # fmt: skip
        self.output = tempfile.TemporaryFile(mode="w+")
        args = [LAB, "net", world.binary, *(run or [*RUN, f"osd.{osd}", *more])]
        self.process = subprocess.Popen(args, env=env, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = None

    def said(self):
        return os.pread(self.output.fileno(), 1 << 20, 0).decode()

    def sleeps(self):
        assert self.process.poll() is None, f"it ended with {self.process.poll()} before {self.place}:\n{self.said()}"
        found = re.search(r"suspended before \S+, process (\d+)", self.said())
        if not found:
            return False
        self.pid = int(found[1])
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "T"

    def wake(self):
        os.kill(self.pid, signal.SIGCONT)

    def end(self):
        """Waits for its end, which must be successful, and returns its log after it was resumed."""
        code = self.process.wait(90)
        after = re.sub(r"\x1b\[[0-9;]*m", "", self.said()).partition("resumes with")[2].partition("\n")[2]
        assert code == 0, f"{self.place}: exit {code}\n{self.said()}"
        return [line.split(maxsplit=2)[-1] for line in after.splitlines()]

    def kill(self):
        """Kills it, if a failed test did not end it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def relay(world, osd, prefix, way, meanwhile, run=None):
    """Suspends a runner before each step, lets a Job finish, and resumes all.

    `meanwhile`: what is done when the runner of a step is to be started, by the step; it starts that runner.
    """
    sleepers, run = [], run or [*RUN, f"osd.{osd}"]
    try:
        for step in way:
            place = step if step.startswith(("save-", "placed-")) else prefix + step
            if step == "save-closing":
                # Then `limit-drains` is the first act of the close. While the pod is not ready, `unset-osd-flags` would be.
                world.until(f"the pod of osd.{osd} to be ready", 120, lambda: world.is_ready(osd))
            go_on = lambda p=place: sleepers.append(Sleeper(world, p, osd, run=run))  # noqa: E731
            meanwhile.get(step, lambda _world, _osd, go_on: go_on())(world, osd, go_on)
            world.until(f"a runner to be suspended before {place}", 120, sleepers[-1].sleeps, pause=0.1)
        world.say(f"osd.{osd}: {len(sleepers)} runners are suspended, one before each step: {', '.join(s.place for s in sleepers)}")
        finisher = world.start(f"finish-{osd}-{len(way)}", run)
        assert world.wait_for(finisher, 120) == ("Complete", 0), world.log(finisher)
        assert not world.records(), "the record is still open"
        if osd in world.fsids():  # no data moves after the purge of an OSD without weight
            world.lab("wait-clean", "120")
        wake_up(world, osd, sleepers)
    finally:
        for sleeper in sleepers:
            sleeper.kill()


def wake_up(world, osd, sleepers):
    """Resumes all runners, and checks in the logs of mon and API server that their decisions have no effect."""
    written, objects, fsids, shape = world.written(), versions(world), world.fsids(), world.shape()
    requests = len(api_writes(world))
    for sleeper in sleepers:
        sleeper.wake()
    for sleeper in sleepers:
        said = sleeper.end()[0]
        world.say(f"  {sleeper.place}: {said}")
        # A runner that was suspended after the read of the ledger may find its goal already reached. After a forecast, the
        # record is read again.
        refused = said.startswith(("not done: ", "another process wrote the ledger", "could not observe the cluster: "))
        assert refused or sleeper.place.startswith("late-"), f"{sleeper.place}: {said}"
    api = [(verb, what) for verb, what in api_writes(world)[requests:] if not is_status(what) and what[0] != "events"]
    # An act that creates an object and checks afterwards deletes the object again.
    back = {what for verb, what in api if verb == "delete"} & {what for verb, what in api if verb == "create"}
    api = [(verb, what) for verb, what in api if what not in back]
    assert not back or sleepers[1].place.startswith("late-"), back
    mon = world.written()[len(written) :]
    changed = {name for name, version in versions(world).items() ^ objects.items()}
    assert not (mon or api or changed), f"written to Ceph: {mon}\nto Kubernetes: {api}\nchanged: {changed}"
    assert (world.fsids(), world.shape()) == (fsids, shape), "the cluster changed"
    world.say(f"osd.{osd}: all {len(sleepers)} were resumed and ended successfully; no act or save of theirs took effect")


def is_status(what):
    # Each runner stores its plan before it works.
    return what in STATUS_OBJECTS or what[1].startswith("osd-migrate-plan-")


def versions(world):
    """Returns the resourceVersions of all objects that a runner may write."""
    found = {}
    for item in world.get("cephclusters,configmaps,secrets,jobs,deployments,poddisruptionbudgets")["items"]:
        name = (item["kind"].lower() + "s", item["metadata"]["name"])
        if not is_status(name) and "rook-ceph-osd" not in name[1]:
            found[name] = item["metadata"]["resourceVersion"]
        if item["kind"] in ("Deployment", "PodDisruptionBudget"):  # other controllers change their status
            found[name] = (item["metadata"]["uid"], item["metadata"]["generation"])
    return found


def api_writes(world):
    """Returns (verb, (resource, name)) of all writes of the runners, from the API server's audit log."""
    found = []
    with open(os.path.join(world.lab_dir, "audit.log"), encoding="utf-8") as log:
        for line in log:
            if '"verb":"get"' in line or '"verb":"list"' in line or '"verb":"watch"' in line:
                continue
            entry = json.loads(line)
            kubectl = entry.get("userAgent", "").startswith("kubectl")
            own = entry["user"]["username"] in ("admin", "system:serviceaccount:rook-ceph:osd-migrate")
            if own and not kubectl and entry.get("responseStatus", {}).get("code", 0) < 400:
                ref = entry.get("objectRef", {})
                found.append((entry["verb"], (ref.get("resource"), ref.get("name"))))
    return found


def frozen_pod(world, osd):
    """Checks that a Job replaces a runner whose pod exists and does nothing.

    The Job deletes the pod, waits until the kubelet has removed it, and continues.
    """
    first = world.start("frozen-pod", [*RUN, f"osd.{osd}"])
    world.until(f"osd.{osd} to be stopped", 60, lambda: "stop" in world.milestones(osd), pause=0.1)
    pod = world.get("pods", selector=f"batch.kubernetes.io/job-name={first}")["items"][0]
    host, name, pattern = pod["spec"]["nodeName"], pod["metadata"]["name"], "^/opt/osd-migrate/osd-migrate run"
    world.lab("on", host, "pkill", "-STOP", "-f", pattern)
    second = world.start("too-early", [*RUN, f"osd.{osd}"])
    assert world.wait_for(second, 60) == ("Complete", 0) and "leaving the work to that Job" in world.log(second), world.log(second)
    lasts = world.get("lease", "osd-migrate")["spec"]["leaseDurationSeconds"]
    world.say(f"{name} is suspended; its Lease lasts {lasts} s; a Job that was started meanwhile ended")
    time.sleep(lasts)
    third = world.start("takes-over", [*RUN, f"osd.{osd}"])
    world.until("the new runner to wait for the old pod", 60, lambda: "waiting until pod " in world.log(third))
    gone = world.until("the old pod to be gone", 60, lambda: not world.get("pod", name) and time.monotonic())
    assert world.wait_for(third, 200) == ("Complete", 0), world.log(third)
    # The Job of the suspended pod creates another pod, which waits for a runner at work, and finds nothing left to do.
    assert world.wait_for(first, 60) == ("Complete", 0), world.log(first)
    assert re.search(rf"osd\.{osd}: done: .* \[closing\]", world.log(third)), world.log(third)
    world.say(f"the new runner waited until the kubelet had removed {name} ({time.monotonic() - gone:.0f} s before its end), and finished")
