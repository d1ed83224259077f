"""The times of one OSD's migration: what pods, ceph-volume and Ceph take, and what is left for osd-migrate."""
import threading
from datetime import datetime
from statistics import median

AGENTS = {"inspection": "-inspect-", "recreation": "-rebuild-"}


class Pods:
    """A thread that keeps the last state of each pod, in a `with`: agents' pods are deleted when an OSD is done."""

    def __init__(self, world):
        self.world, self.found, self.ended = world, {}, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def run(self):
        while not self.ended.wait(0.5):
            for pod in self.world.list("pods"):
                self.found[pod["metadata"]["name"]] = pod

    def agent(self, task):
        """Returns when the container of an agent started and ended."""
        name = next(name for name in self.found if AGENTS[task] in name)
        return container(self.found[name], "agent")

    def osd(self, osd):
        """Returns when the container of the new OSD started."""
        pods = [pod for pod in self.found.values() if pod["metadata"].get("labels", {}).get("ceph-osd-id") == str(osd)]
        return container(max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"]), "osd")[0]


def container(pod, name):
    state = next(one["state"] for one in pod["status"]["containerStatuses"] if one["name"] == name)
    (facts,) = state.values()
    return seconds(facts["startedAt"]), seconds(facts["finishedAt"]) if "finishedAt" in facts else None


def seconds(text):
    return datetime.fromisoformat(text).timestamp()


def course(world, osd, pods):
    """Returns (part, seconds of it, whose time it is) of the last migration of an OSD.

    The milestones are those of its history; times of containers have no fractions of a second.
    """
    entry = next(entry for entry in reversed(world.closed()) if entry["osd"] == osd)
    at = {word: seconds(when) for word, when in entry["milestones"]}
    agents = {task: end - begin for task, (begin, end) in ((task, pods.agent(task)) for task in AGENTS)}
    started = pods.osd(osd)
    inspected, recreated = at["proof"] - at["record"], at["new"] - at["rebuild"]
    return [
        ("inspection: its agent", agents["inspection"], "proof"),
        ("inspection: its pod, and the rest", inspected - agents["inspection"], "osd-migrate"),
        ("gates, flags, drains", at["stop"] - at["proof"], "osd-migrate"),
        ("stop, until it is down", at["down"] - at["stop"], "Ceph"),
        ("until its pod is gone", at["rebuild"] - at["down"], "Kubernetes"),
        ("recreation: its agent (proof, wipe, ceph-volume)", agents["recreation"], "ceph-volume"),
        ("recreation: its pod, and the rest", recreated - agents["recreation"], "osd-migrate"),
        ("pod of the new OSD, until its daemon starts", started - at["new"], "Kubernetes"),
        ("daemon, until it is up", at["up"] - started, "Ceph"),
        ("data, until all PGs are clean and have reported", at["closing"] - at["up"], "Ceph"),
    ]


def medians(courses):
    """Returns the parts with the median of the times that each had in several migrations."""
    return [(same[0][0], median(took for _, took, _ in same), same[0][2]) for same in zip(*courses)]


def text(parts):
    lines = [f"| {what} | {took:.1f} s | {whose} |" for what, took, whose in parts]
    return "\n".join(["| part | time | whose |", "| --- | --- | --- |", *lines, f"| together | {sum(took for _, took, _ in parts):.1f} s | |"])
