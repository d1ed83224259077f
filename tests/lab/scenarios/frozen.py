"""Runners and agents that sleep in the middle of what they do and wake up when others have finished it: nothing that they
had decided goes through.

`relay`: one OSD's whole way is done by a chain of runners outside Kubernetes. Each is stopped by SIGSTOP (src/failpoint.rs)
right before one act; the next takes the Lease over, since its holder's pod does not exist, does that act and is stopped
before the one after it. A Job finishes. Then all of them wake up.
The agent of that rebuild is held too, and others are started by hand beside it. `frozen_pod`: a runner's pod is stopped by
SIGSTOP, and taken over when its Lease has run out.
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

from .world import LAB

RUN = ["run", "--confirm", "yes-really-migrate-osds", "--select"]
# What a runner does for one OSD, in this order, and is stopped before.
WAY = [
    "save-record", "agent-inspect", "save-proof", "back-up", "save-stop", "save-fence", "fence", "set-osd-flags", "save-pdb", "limit-drains", "stop",
    "save-down", "destroy", "save-rebuild", "agent-rebuild", "save-new", "deploy", "save-up", "unset-osd-flags", "unfence", "save-unfenced",
    "save-closing", "limit-drains", "save-pdb-restored", "clean-up", "save-closed",
]  # fmt: skip
# The same where Rook has made no budget for drains.
WAY_OF_OWN_BUDGET = [
    {"limit-drains": "create-pdb", "save-pdb-restored": "delete-pdb"}.get(step, step)
    for at, step in enumerate(WAY)
    if step != "save-pdb" and (step != "limit-drains" or at < WAY.index("stop"))
]
# Written by every runner as it goes along; nothing is decided by it.
TOLD = {("leases", "osd-migrate"), ("configmaps", "osd-migrate-status")}
AGENTS = "/var/lib/rook/osd-migrate"  # the agents' folder on each host


def run(world):
    # One more to do where there is time.
    world.up(layout="0=bluestore-dev,1=filestore-part,3=bluestore-dev,5=bluestore-dev" if world.full else None)
    world.lab("write", "200")
    before, fsids = world.shape(), world.fsids()
    relay(world, 0, "", WAY, busy_agent)
    migrated = [0]
    if world.full:
        # Past the look at the ledger with which each act begins: there each act has only its own conditions left.
        relay(world, 1, "late-", WAY, thawed_agent)
        frozen_pod(world, 5)
        rooks = world.get("pdb", "rook-ceph-osd")
        world.kubectl("delete", "pdb", "rook-ceph-osd")
        relay(world, 3, "late-", WAY_OF_OWN_BUDGET, thawed_agent)
        made = {"apiVersion": rooks["apiVersion"], "kind": rooks["kind"], "metadata": {"name": "rook-ceph-osd"}, "spec": rooks["spec"]}
        world.kubectl("create", "-f", "-", stdin=json.dumps(made))
        migrated = [0, 1, 3, 5]
    quarantined = {} if 1 in migrated else {1: "filestore"}
    world.expect_migrated(before, fsids, migrated, quarantined)


def busy_agent(world, osd, go_on):
    """The agent sleeps with the disk its own, before the first write. Neither the lock nor, where somebody took that
    away, the disk itself lets a second one in."""
    with HeldAgent(world, osd, "wipe", go_on) as first:
        before = first.disk()
        report = first.by_hand("second-agent")
        assert report["problem"]["kind"] == "busy", report
        first.remove_lock()
        report = first.by_hand("third-agent")
        assert report["problem"]["kind"] == "refused" and "is in use" in report["problem"]["message"], report
        first.assert_unwritten(before, "somebody beside the first agent")
        world.say(f"osd.{osd}: a second agent is kept out by the lock; without the lock, by the disk: {report['problem']['message']}")
        first.wake()


def thawed_agent(world, osd, go_on):
    """The agent sleeps before it has the disk for itself, its lock is taken away, and a second one makes the new OSD."""
    with HeldAgent(world, osd, "open", go_on) as first:
        report = first.by_hand("second-agent")
        assert report["problem"]["kind"] == "busy", report
        first.remove_lock()
        report = first.by_hand("third-agent")
        assert not report["problem"] and "finished" in json.dumps(report["inspection"]).lower(), report
        made = first.disk()
        first.wake()
        report = first.report()
        assert report["problem"]["kind"] == "refused" and "expected destroyed" in report["problem"]["message"], report
        first.assert_unwritten(made, "the first agent")
        world.say(f"osd.{osd}: an agent that woke up after another had made the OSD: {report['problem']['message']}; not a byte was written")


class HeldAgent:
    """The agent of a rebuild, stopped by SIGSTOP from its host where src/failpoint.rs holds it."""

    def __init__(self, world, osd, place, go_on):
        self.world, self.osd, self.host = world, osd, f"h{osd % 3 + 1}"
        self.on("bash", "-c", f"echo {place} > {AGENTS}/failpoint")
        go_on()
        self.name = world.until("the node Job", 60, self.job)
        world.until(f"the agent to be suspended before {place}", 60, lambda: f"suspended before {place}" in world.log(self.name), pause=0.1)
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
        found = self.world.get("jobs", "-l", selector)
        return found and found["items"][0]["metadata"]["name"]

    def wake(self):
        self.on("kill", "-CONT", self.pid, check=False)

    def remove_lock(self):
        self.on("rm", f"{AGENTS}/osd-{self.osd}.lock")

    def disk(self):
        """{MiB: SHA-256} of the disk where it is not all zeros. Of its backing file: which zeros are holes there changes by itself."""
        self.on("bash", "-c", f"blockdev --flushbufs $(readlink -f /dev/disk/by-id/lab-osd{self.osd})")
        size, found = 1 << 20, {}
        with open(os.path.join(self.world.lab_dir, "img", f"osd{self.osd}.img"), "rb") as file:
            end, at = os.fstat(file.fileno()).st_size, 0
            while at < end:
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA) // size * size
                except OSError:  # only a hole is left
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
        """A second agent with the very request of the first, as somebody may start it by hand; its report."""
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
    """A runner outside Kubernetes that stops itself at a place. Its pod does not exist, so its Lease can be taken over."""

    def __init__(self, world, place, osd, more=()):
        self.world, self.place = world, place
        name = f"asleep-{place}-{osd}"
        env = {
            **os.environ, "POD_NAME": name, "POD_NAMESPACE": "rook-ceph", "POD_UID": str(uuid.uuid4()),
            "OSD_MIGRATE_OWN_IMAGE": "lab.local/osd-migrate:dev", "OSD_MIGRATE_FAILPOINT": place,
        }  # fmt: skip
        self.output = tempfile.TemporaryFile(mode="w+")
        args = [LAB, "net", world.binary, *RUN, f"osd.{osd}", *more]
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
        """What it said after it woke up; it must end well."""
        code = self.process.wait(90)
        after = re.sub(r"\x1b\[[0-9;]*m", "", self.said()).partition("resumes with")[2].partition("\n")[2]
        assert code == 0, f"{self.place}: exit {code}\n{self.said()}"
        return [line.split(maxsplit=2)[-1] for line in after.splitlines()]

    def kill(self):
        """For the end of a test that failed."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def relay(world, osd, prefix, way, while_agent_is_held):
    sleepers = []
    try:
        for step in way:
            place = step if step.startswith("save-") else prefix + step
            if step == "save-closing":
                # Then the drains are first in what closes a record; while its pod is not ready, the flag would be.
                world.until(f"the pod of osd.{osd} to be ready", 120, lambda: world.is_ready(osd))
            if step == "save-new":
                while_agent_is_held(world, osd, lambda p=place: sleepers.append(Sleeper(world, p, osd)))
            else:
                sleepers.append(Sleeper(world, place, osd))
            world.until(f"a runner to sleep before {place}", 120, sleepers[-1].sleeps, pause=0.1)
        world.say(f"osd.{osd}: {len(sleepers)} runners sleep, one before each act: {', '.join(s.place for s in sleepers)}")
        finisher = world.start(f"finish-{osd}", [*RUN, f"osd.{osd}"])
        assert world.wait_for(finisher, 120) == ("Complete", 0), world.log(finisher)
        assert not world.records(), "the record is still open"
        world.lab("wait-clean", "120")
        wake_up(world, osd, sleepers)
    finally:
        for sleeper in sleepers:
            sleeper.kill()


def wake_up(world, osd, sleepers):
    """Nothing that they had decided goes through, by the logs of the mon and of the API server."""
    written, objects, fsids, shape = world.written(), versions(world), world.fsids(), world.shape()
    requests = len(api_writes(world))
    for sleeper in sleepers:
        sleeper.wake()
    for sleeper in sleepers:
        said = sleeper.end()[0]
        world.say(f"  {sleeper.place}: {said}")
        # One that sleeps past the look may find that what it wants is so already.
        refused = said.startswith(("not done: ", "another process wrote the ledger", "could not observe the cluster: "))
        assert refused or sleeper.place.startswith("late-"), f"{sleeper.place}: {said}"
    api = [(verb, what) for verb, what in api_writes(world)[requests:] if what not in TOLD and what[0] != "events"]
    # What is made first and looked after: made and taken back.
    back = {what for verb, what in api if verb == "delete"} & {what for verb, what in api if verb == "create"}
    api = [(verb, what) for verb, what in api if what not in back]
    assert not back or sleepers[1].place.startswith("late-"), back
    mon = world.written()[len(written) :]
    changed = {name for name, version in versions(world).items() ^ objects.items()}
    assert not (mon or api or changed), f"went through to Ceph: {mon}\nto Kubernetes: {api}\nchanged: {changed}"
    assert (world.fsids(), world.shape()) == (fsids, shape), "the cluster changed"
    world.say(f"osd.{osd}: all {len(sleepers)} woke up and ended well; not one act or save of theirs went through")


def versions(world):
    """The resourceVersions of all that a runner may write."""
    found = {}
    for item in world.get("cephclusters,configmaps,secrets,jobs,deployments,poddisruptionbudgets")["items"]:
        name = (item["kind"].lower() + "s", item["metadata"]["name"])
        if name not in TOLD and "rook-ceph-osd" not in name[1]:
            found[name] = item["metadata"]["resourceVersion"]
        if item["kind"] in ("Deployment", "PodDisruptionBudget"):  # their status moves by itself
            found[name] = (item["metadata"]["uid"], item["metadata"]["generation"])
    return found


def api_writes(world):
    """(verb, (resource, name)) of everything that runners wrote, from the API server's audit log."""
    found = []
    with open(os.path.join(world.lab_dir, "audit.log"), encoding="utf-8") as log:
        for line in log:
            if '"verb":"get"' in line or '"verb":"list"' in line or '"verb":"watch"' in line:
                continue
            entry = json.loads(line)
            kubectl = entry.get("userAgent", "").startswith("kubectl")
            ours = entry["user"]["username"] in ("admin", "system:serviceaccount:rook-ceph:osd-migrate")
            if ours and not kubectl and entry.get("responseStatus", {}).get("code", 0) < 400:
                ref = entry.get("objectRef", {})
                found.append((entry["verb"], (ref.get("resource"), ref.get("name"))))
    return found


def frozen_pod(world, osd):
    """A runner's pod that is there and does nothing: the next Job deletes it, waits until its kubelet has removed it, goes on."""
    first = world.start("frozen-pod", [*RUN, f"osd.{osd}"])
    world.until(f"osd.{osd} to be stopped", 60, lambda: any(word == "stop" for word, _ in world.records().get(osd, {"milestones": []})["milestones"]), pause=0.1)
    pod = world.get("pods", "-l", f"batch.kubernetes.io/job-name={first}")["items"][0]
    host, name, pattern = pod["spec"]["nodeName"], pod["metadata"]["name"], "^/usr/local/bin/osd-migrate run"
    world.lab("on", host, "pkill", "-STOP", "-f", pattern)
    second = world.start("too-early", [*RUN, f"osd.{osd}"])
    assert world.wait_for(second, 60) == ("Complete", 0) and "leaving the work to that Job" in world.log(second), world.log(second)
    lasts = world.get("lease", "osd-migrate")["spec"]["leaseDurationSeconds"]
    world.say(f"{name} is frozen; its Lease lasts {lasts} s; a Job that came meanwhile left")
    time.sleep(lasts)
    third = world.start("takes-over", [*RUN, f"osd.{osd}"])
    world.until("the new runner to wait for the old pod", 60, lambda: "waiting until pod " in world.log(third))
    gone = world.until("the old pod to be gone", 60, lambda: not world.get("pod", name) and time.monotonic())
    assert world.wait_for(third, 200) == ("Complete", 0), world.log(third)
    # The Job of the frozen pod makes another one; that finds a runner at work, or nothing left to do.
    assert world.wait_for(first, 60) == ("Complete", 0), world.log(first)
    assert re.search(rf"osd\.{osd}: done: .* \[closing\]", world.log(third)), world.log(third)
    world.say(f"the new runner waited until the kubelet had removed {name} ({time.monotonic() - gone:.0f} s before its end), and finished")
