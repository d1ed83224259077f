"""A stand-in for Rook's operator: what a reconcile of it does to OSDs, whenever it likes, and what it says where the CephCluster
is fenced, from 1.20 on. Its image is named, never pulled: what counts is that an operator runs."""
import json
import threading
import time

from . import NAMESPACE

FENCE = "ceph.rook.io/do-not-reconcile"
APP = {"app": "rook-ceph-operator"}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "rook-ceph-osd", "namespace": NAMESPACE},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "rook-ceph-osd"}}},
}
DELAY = 4  # seconds between what a reconcile has read and what it does: a real one waits for mons and mgrs first


class Rook:
    """Reconciles one after the other: at each change of the label, and every `period` seconds."""

    def __init__(self, world, version, period=20):
        self.world, self.version, self.period = world, version, period
        self.honours = tuple(int(number) for number in version.split(".")) >= (1, 20)
        self.done, self.skipped, self.started, self.refilled, self.trouble = 0, 0, [], [], []
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def start(self):
        self.appear()
        self.thread.start()

    def appear(self):
        """Its Deployment, and a pod of it that is there: all that is seen of an operator which says nothing."""
        container = {"name": "rook-ceph-operator", "image": f"rook/ceph:v{self.version}", "imagePullPolicy": "Never"}
        template = {"metadata": {"labels": APP}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "selector": {"matchLabels": APP}, "template": template}
        meta = {"name": "rook-ceph-operator", "namespace": NAMESPACE, "labels": APP}
        operator = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
        for thing in (operator, BUDGET):
            self.world.kubectl("apply", "-f", "-", stdin=json.dumps(thing))
        self.world.until("the operator's pod", 60, self.runs)

    def end(self):
        self.ends.set()
        self.thread.join()
        self.vanish()

    def vanish(self):
        self.world.kubectl("delete", "deployment", "rook-ceph-operator", "--wait=true")

    def runs(self):
        return bool(self.world.get("pods", "-l", "app=rook-ceph-operator"))

    def work(self):
        label, last = None, 0
        while not self.ends.wait(0.5):
            try:
                if not self.runs():
                    label, last = None, 0
                    continue
                cluster = self.world.get("cephcluster", "rook-ceph")
                seen = cluster["metadata"].get("labels", {}).get(FENCE)
                if seen != label or time.monotonic() - last > self.period:
                    label, last = seen, time.monotonic()
                    self.skip(cluster) if seen is not None and self.honours else self.reconcile(cluster)
            except Exception as why:  # noqa: BLE001 - told at the end; a thread that dies would hide that nobody reconciles
                self.trouble.append(repr(why))

    def skip(self, cluster):
        """As `recorder.Event(cephCluster, ...)` does: about the object that was read."""
        meta = cluster["metadata"]
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{time.time_ns() % 10**9 // 1000:06}Z"
        regarding = {"apiVersion": cluster["apiVersion"], "kind": "CephCluster", "name": meta["name"], "namespace": NAMESPACE}
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"rook-ceph.{time.time_ns():x}", "namespace": NAMESPACE},
            "regarding": {**regarding, "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "reason": "ReconcileSkipped",
            "action": "ReconcileSkipped",
            "type": "Normal",
            "note": f"reconcile was skipped because of the label {FENCE}",
            "eventTime": now,
            "reportingController": "rook-ceph-cluster-controller",
            "reportingInstance": "rook-ceph-operator",
        }
        self.world.kubectl("create", "-f", "-", stdin=json.dumps(event))
        self.skipped += 1

    def reconcile(self, cluster):
        """OSDs that are stopped are started, Deployments brought into its own words, destroyed slots refilled."""
        found = self.world.get("deployments", "-l", "app=rook-ceph-osd")["items"]
        slots = self.world.ceph("osd", "dump")["osds"]
        time.sleep(DELAY)
        if not self.runs():  # ended in the middle
            return
        for deployment in found:
            name = deployment["metadata"]["name"]
            if deployment["spec"]["replicas"] == 0:
                self.started.append((name, deployment["metadata"].get("annotations", {})))
                self.world.kubectl("scale", "deployment", name, "--replicas=1")
            template = deployment["spec"]["template"]["metadata"]
            if template.get("annotations", {}).get("rook.io/written") != self.version:
                patch = {"spec": {"template": {"metadata": {"annotations": {"rook.io/written": self.version}}}}}
                self.rolled(name, patch)
        self.refilled += [slot["osd"] for slot in slots if "destroyed" in slot["state"]]
        # Its status: the CephCluster changes without anybody's word.
        self.world.kubectl("annotate", "cephcluster", "rook-ceph", f"lab.local/reconciled={self.done}", "--overwrite")
        self.done += 1

    def rolled(self, name, patch):
        """One OSD after the other, each when Ceph says `ok-to-stop`."""
        osd = name.rsplit("-", 1)[1]
        for _ in range(60):
            if self.world.lab("ceph", "osd", "ok-to-stop", osd, check=False).returncode == 0:
                self.world.kubectl("patch", "deployment", name, "--type", "merge", "-p", json.dumps(patch))
                self.world.lab("wait-clean", "120")
                return
            time.sleep(1)
        self.trouble.append(f"{name} could not be rolled")
