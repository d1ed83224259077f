"""Commands that a person types outside of the cluster, and that run in it as a Job."""
import os
import re
import signal
import subprocess

from . import NAMESPACE
from .world import LAB


def expect_exit_codes(world):
    """Checks that a command ends with the exit code of its Job, and that Jobs that only look are deleted."""
    jobs = names(world)
    cases = [
        (["plan"], 0, "osd.1"),
        (["preflight"], 3, "legacy OSDs"),
        (["run"], 0, "not confirmed"),
        (["provision"], 0, ""),
        (["run", "--select", "osd.99"], 12, "osd.99 is selected and does not exist"),
        (["run", "--approve", "0123456789abcdef"], 2, "no plan 0123456789abcdef is stored"),
        (["plan", "--approve", approve(world)], 0, "osd.1"),
        (["-n", "nowhere", "run"], 2, "nowhere"),
    ]
    for args, code, says in cases:
        done = typed(world, *args)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        assert says in done.stdout + done.stderr, (args, says, done.stdout, done.stderr)
    world.command("cancel")
    assert typed(world, "run").returncode == 3, "a cancelled run"
    world.command("resume")
    left = names(world) - jobs
    assert all(name.startswith(("osd-migrate-run-", "osd-migrate-provision-")) for name in left), left
    for name in left:
        ended = re.search(r"-(run|provision)-", name)[1]
        assert world.result(name) is not None, f"{name} has not ended"
        world.say(f"typed {ended}: Job {name}: {world.result(name)}")
    # Later checks expect that nobody has ever paused or cancelled.
    world.kubectl("delete", "configmap", "osd-migrate-control")
    world.kubectl("delete", "job", *left)


def approve(world, *args):
    """Makes a plan, and returns its hash."""
    plan = world.command("plan", *args)
    return re.search(r"run --approve ([0-9a-f]{16})$", plan, re.MULTILINE)[1]


def expect_a_run_to_be_followed(world):
    """Checks that Ctrl-C does not end a run, and that `follow` prints the log of its Job again."""
    world.command("pause")
    job = world.command("run", "--confirm", "yes-really-migrate-osds", "--detach").strip()
    pods = lambda: [p["metadata"]["name"] for p in world.get("pods", selector=f"batch.kubernetes.io/job-name={job}")["items"]]  # noqa: E731
    follow = subprocess.Popen([LAB, "net", world.binary, "-n", NAMESPACE, "follow", job], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    first = world.until("the pod of the run", 60, pods)[0]
    world.until("the run to have begun", 60, lambda: "finished" in world.log(job) or "paused" in world.log(job))
    follow.send_signal(signal.SIGINT)
    world.command("resume")
    world.say(f"typed run: Job {job}, pod {first}: {world.wait_for(job, 120)}")
    again = typed(world, "follow", job)
    assert again.returncode == world.result(job)[1] and "finished" in again.stdout + again.stderr, (again.stdout, again.stderr)
    follow.wait(30)
    world.delete(job)
    world.kubectl("delete", "configmap", "osd-migrate-control")


class Watched:
    """`status --watch` on a terminal of 80 columns, as a person sees it."""

    def __init__(self, world):
        self.world, self.frames = world, []
        self.session = f"osd-migrate-{os.getpid()}"
        self.tmux("new-session", "-d", "-x", "80", "-y", "40", LAB, "net", world.binary, "-n", NAMESPACE, "status", "--watch")

    def tmux(self, *args):
        # A server of its own: its environment has this lab's LAB_DIR.
        return subprocess.run(["tmux", "-L", self.session, "-f", "/dev/null", *args], check=True, stdout=subprocess.PIPE, text=True).stdout

    def frame(self):
        """Returns what is on the screen, and remembers it."""
        frame = self.tmux("capture-pane", "-p").rstrip()
        if frame and (not self.frames or self.frames[-1] != frame):
            self.frames.append(frame)
        return frame

    def end(self):
        """Ends the command as a person does, and checks all frames."""
        self.tmux("send-keys", "C-c")
        self.world.until("the watch to end", 20, lambda: not self.is_running())
        for frame in self.frames:
            lines = frame.splitlines()
            assert frame.count("CephCluster rook-ceph in namespace") == 1, f"drawn twice:\n{frame}"
            assert all(len(line) <= 80 for line in lines), frame
        assert len(self.frames) > 1, self.frames
        self.world.say(f"status --watch: {len(self.frames)} frames of 80 columns; the last one:\n{self.frames[-1]}")

    def is_running(self):
        return subprocess.run(["tmux", "-L", self.session, "has-session"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def names(world):
    return {job["metadata"]["name"] for job in world.list("jobs")}


def typed(world, *args):
    return world.lab("net", world.binary, *args, check=False)
