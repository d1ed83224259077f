"""A Job of Rook's key rotation that only sleeps: the run does not stop the OSD whose key it rotates.

In Rook's shape (1.20.6, pkg/operator/ceph/cluster/osd/key_rotation.go): the label of the pod, the name of the Job, and
the affinity to the pod of the OSD.
"""
import json

from . import NAMESPACE

LABEL = "rook-ceph-osd-key-rotation"
SLEEPS = "sleep 77777"


class Rotation:
    """A rotation of the key of an encrypted OSD on u1, as the OSD's CronJob starts it."""

    def __init__(self, world, osd, time):
        self.world, self.osd, self.name = world, osd, f"{LABEL}-{osd}-{time}"
        of_osd = {"app": "rook-ceph-osd", "ceph-osd-id": str(osd), "rook_cluster": NAMESPACE}
        term = {"labelSelector": {"matchLabels": of_osd}, "topologyKey": "kubernetes.io/hostname"}
        image = world.get("cephcluster", "rook-ceph")["spec"]["cephVersion"]["image"]
        container = {"name": LABEL, "image": image, "imagePullPolicy": "Never", "command": ["bash", "-c", f"{SLEEPS} || true"]}
        pod = {"hostNetwork": True, "restartPolicy": "OnFailure", "containers": [container]}
        pod["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        labels = {"app": LABEL, "rook_cluster": NAMESPACE}
        spec = {"template": {"metadata": {"labels": labels}, "spec": pod}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": self.name, "namespace": NAMESPACE}, "spec": spec}
        world.kubectl("create", "-f", "-", stdin=json.dumps(job))

    def pods(self):
        return self.world.list("pods", selector=f"batch.kubernetes.io/job-name={self.name}")

    def node(self):
        """Returns the node of its pod, or None if the pod waits for one."""
        return next((pod["spec"].get("nodeName") for pod in self.pods()), None)

    def waits(self):
        """Returns whether the scheduler has found no node for its pod."""
        conditions = [one for pod in self.pods() for one in pod["status"].get("conditions", [])]
        return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)

    def begins(self):
        """Waits until its pod is on the node of the OSD."""
        self.world.until(f"{self.name} to begin", 60, lambda: self.node() == "u1")

    def ends(self):
        """Lets it end, as a rotation does after some seconds."""
        self.world.until(f"{self.name} to sleep", 60, self.is_killed)
        self.world.until(f"{self.name} to end", 60, lambda: self.world.get("job", self.name)["status"].get("succeeded"))

    def is_killed(self):
        return self.world.lab("on", "u1", "pkill", "-f", f"^{SLEEPS}", check=False).returncode == 0


def holds_back(world, job):
    """Checks that a run does not stop an OSD while its key is rotated, and names that; then lets the rotation end.

    When the OSD is stopped and its pod gone, another rotation starts. Returns it: its pod has no node, so it meets no
    agent. While the pod of the OSD ends, the scheduler still takes a rotation, and the run would wait for its end.
    """
    (osd,) = world.until("a record", 600, world.records)
    rotation = Rotation(world, osd, 29401920)
    rotation.begins()
    said = f"Rook is rotating the encryption key of osd.{osd}."
    line = world.until("the run to name the rotation", 300, lambda: line_of(world.log(job), said))
    assert line.endswith("[key-rotation]"), line
    assert world.milestones(osd) and "stop" not in world.milestones(osd) and world.is_ready(osd), world.log(job)
    world.say(f"a rotation is running: {line}")
    rotation.ends()
    world.until(f"osd.{osd} to be down", 120, lambda: "down" in world.milestones(osd), pause=0.1)
    world.until("its pod to be gone", 120, lambda: not world.list("pods", selector=f"app=rook-ceph-osd,ceph-osd-id={osd}"))
    later = Rotation(world, osd, 29412000)
    world.until("the scheduler to find no node for another rotation", 60, later.waits)
    assert "new" not in world.milestones(osd) and not later.node(), world.milestones(osd)
    world.say(f"it ended: osd.{osd} is stopped; another rotation waits for its pod")
    return later


def line_of(log, said):
    return next((line for line in log.splitlines() if said in line), None)
