"""A simulated Rook operator.

It does to OSDs what a reconcile does, at any time, and from 1.20 on it publishes the event of a fenced CephCluster. Its
image is never pulled: osd-migrate only observes that an operator is running. It does what Rook 1.20.6 did in a cluster
that it had created, and what 1.14.3 does in the same places (`pkg/operator/ceph/cluster/osd`).
"""
import json
import os
import threading
import time
import uuid

from . import NAMESPACE
from .rook_shape import HOST, PVC, differs, is_legacy, read_back

SHAPE = os.path.join(os.path.dirname(__file__), "..", "manifests", "osd-raw.yaml")

FENCE = "ceph.rook.io/do-not-reconcile"
APP = {"app": "rook-ceph-operator"}
# Labels of the Deployment itself, in Rook's operator.yaml. The label of its pods is not one of them.
LABELS = {"operator": "rook", "storage-backend": "ceph", "app.kubernetes.io/name": "rook-ceph"}
DELAY = 4  # seconds between the reads and the writes of a reconcile: a real one waits for mons and mgrs first
PREPARES = 3  # seconds for which a prepare Job reads the disks of a node
LAST_APPLIED = "banzaicloud.com/last-applied"
PDB = "rook-ceph-osd"
CAPS = ["mon", "allow profile osd", "mgr", "allow profile osd", "osd", "allow *"]
OF_PREPARES = "app=rook-ceph-osd-prepare"


def create_prepare_job(world, node, command):
    """Creates a Job as those in which Rook prepares OSDs: its pod is pinned to the node by the hostname."""
    labels = dict([OF_PREPARES.split("=")])
    image = world.get("cephcluster", "rook-ceph")["spec"]["cephVersion"]["image"]
    container = {"name": "provision", "image": image, "imagePullPolicy": "Never", "command": command}
    selector = {"kubernetes.io/hostname": node}
    pod = {"nodeSelector": selector, "hostNetwork": True, "restartPolicy": "OnFailure", "containers": [container]}
    meta = {"name": f"rook-ceph-osd-prepare-{node}", "namespace": NAMESPACE, "labels": labels}
    spec = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    world.kubectl("create", "-f", "-", stdin=json.dumps(job))


def delete_prepare_jobs(world):
    world.kubectl("delete", "jobs", "-l", OF_PREPARES, "--wait=true")


class Failed(Exception):
    """The end of a reconcile in which an OSD could not be updated, and that is retried soon."""


class Rook:
    """An operator that reconciles at each change of the label, every `period` seconds, and soon after a failure.

    `written`: the Deployments are as this operator would write them, so it does not restart them.
    """

    def __init__(self, world, version, period=20, namespace=NAMESPACE, written=False):
        self.world, self.version, self.period, self.written = world, version, period, written
        self.there, self.checked = ("-n", namespace), 0
        numbers = tuple(int(number) for number in version.split("."))
        self.honours, self.takes_bootstrap = numbers >= (1, 20), numbers >= (1, 19)
        self.done, self.skipped, self.failures, self.started, self.refilled, self.trouble = 0, 0, [], [], [], []
        self.hydrated, self.rendered_again, self.reshaped = [], [], []
        self.read, self.reset = [], []
        self.draining, self.drained, self.fences = "", [], set()
        self.observed, self.next_observation = None, 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def start(self):
        self.appear()
        self.thread.start()

    def appear(self):
        """Creates its Deployment and waits for its pod. osd-migrate observes no more of an operator without events."""
        container = {"name": "rook-ceph-operator", "image": f"rook/ceph:v{self.version}", "imagePullPolicy": "Never"}
        template = {"metadata": {"labels": APP}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "selector": {"matchLabels": APP}, "template": template}
        meta = {"name": "rook-ceph-operator", "namespace": self.there[1], "labels": LABELS}
        operator = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
        self.world.kubectl("apply", *self.there, "-f", "-", stdin=json.dumps(operator))
        self.world.until("the operator's pod", 60, self.runs)

    def end(self):
        self.ends.set()
        self.thread.join()
        self.vanish()

    def vanish(self):
        self.world.kubectl("delete", "deployment", "rook-ceph-operator", *self.there, "--wait=true")
        delete_prepare_jobs(self.world)
        self.world.kubectl("delete", "configmap", "rook-ceph-pdbstatemap", "--ignore-not-found")

    def runs(self):
        return bool(self.world.get("pods", selector="app=rook-ceph-operator", namespace=self.there[1]))

    def replicas(self):
        return self.world.get("deployment", "rook-ceph-operator", namespace=self.there[1])["spec"]["replicas"]

    def check(self):
        """Writes Ceph's status into the CephCluster each minute, fenced or not, and the image that it uses."""
        if time.monotonic() - self.checked > 60:
            self.checked = time.monotonic()
            image = self.world.get("cephcluster", "rook-ceph")["spec"]["cephVersion"]["image"]
            status = {"ceph": {"lastChecked": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}, "version": {"image": image}}
            patch = json.dumps({"status": status})
            self.world.kubectl("patch", "cephcluster", "rook-ceph", "--subresource=status", "--type", "merge", "-p", patch)

    def work(self):
        label, last, wait, row = None, 0, 0, 0
        while not self.ends.wait(0.5):
            try:
                if not self.runs():
                    label, last = None, 0
                    continue
                self.check()
                self.observe_drains()
                cluster = self.world.get("cephcluster", "rook-ceph")
                seen = cluster["metadata"].get("labels", {}).get(FENCE)
                if seen == label and time.monotonic() - last <= wait:
                    continue
                label, last, wait = seen, time.monotonic(), self.period
                if seen is not None and self.honours:
                    self.skip(cluster)
                    row = 0
                    continue
                try:
                    self.reconcile()
                    row = 0
                except Failed as why:
                    self.failures.append(str(why))
                    wait, row = min(0.005 * 2**row, 1000), row + 1  # as controller-runtime does
                self.touch()
                self.done += 1
            except Exception as why:  # noqa: BLE001 - reported at the end; a dead thread would hide that nothing reconciles
                self.trouble.append(repr(why))

    def skip(self, cluster):
        """Publishes an event about the object that was read, as `recorder.Event(cephCluster, ...)` does."""
        meta = cluster["metadata"]
        self.fences.add(meta["labels"][FENCE])
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

    def reconcile(self):
        """Prepares disks and updates the Deployments, which starts those that are stopped.

        It uses a list of OSDs that it read before the delay.
        """
        self.touch()
        found = [one["metadata"]["name"] for one in self.world.get("deployments", selector="app=rook-ceph-osd")["items"]]
        slots = self.world.ceph("osd", "dump")["osds"]
        self.pause(DELAY)
        self.prepare()
        destroyed = [slot["osd"] for slot in slots if "destroyed" in slot["state"]]
        self.refill(destroyed)
        fsids = {slot["osd"]: slot["uuid"] for slot in slots}
        known = {*fsids, *self.world.osds()} - {*destroyed}
        self.hydrate([osd for osd in sorted(known) if f"rook-ceph-osd-{osd}" not in found], fsids)
        self.touch()
        whys = self.update(found)
        if whys:
            raise Failed("; ".join(whys))
        self.reset_weights()
        if self.takes_bootstrap:
            self.world.lab("ceph", "auth", "del", "client.bootstrap-osd")

    def observe_drains(self):
        """Simulates Rook's other controller, which ignores the fence (1.20.6, `reconcilePDBsForOSDs`).

        It considers the failure domain of an OSD that is down while PGs are not clean as drained. It does nothing if one
        Deployment does not have the label. It observes when OSDs or PGs change, and again after a while if its
        PodDisruptionBudget does not exist, allows no eviction or excludes OSDs.
        """
        osds = self.world.get("deployments", selector="app=rook-ceph-osd")["items"]
        found = [(one["metadata"]["labels"], one["status"]) for one in osds]
        if any(HOST not in labels for labels, _ in found):
            return
        down = {labels["ceph-osd-id"]: labels[HOST] for labels, status in found if not status.get("readyReplicas")}
        clean = all(pgs["state_name"].startswith("active+clean") for pgs in self.world.ceph("status")["pgmap"]["pgs_by_state"])
        if (down, clean) == self.observed and time.monotonic() < self.next_observation:
            return
        self.observed = down, clean
        domain = "" if clean else self.draining if self.draining in down.values() else min(down.values(), default=self.draining)
        if domain != self.draining:
            self.draining = domain
            self.drained += [domain] if domain else []
            meta = {"name": "rook-ceph-pdbstatemap", "namespace": NAMESPACE}
            data = {"draining-failure-domain": domain, "set-no-out": ""}  # true if a node is drained
            self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        self.apply_pdbs({labels[HOST] for labels, _ in found}, sorted(down) if clean else [])

    def apply_pdbs(self, hosts, excluded):
        """Writes one PodDisruptionBudget for all OSDs except the excluded ones.

        If a failure domain is drained, it writes one for each other domain instead, which allows no eviction.
        """
        blocking = hosts - {self.draining} if self.draining else set()
        for host in blocking:
            self.apply_pdb(f"{PDB}-host-{host}", 0, {"matchLabels": {HOST: host}})
        for host in hosts - blocking:
            self.world.kubectl("delete", "pdb", f"{PDB}-host-{host}", "--ignore-not-found")
        if self.draining:
            self.world.kubectl("delete", "pdb", PDB, "--ignore-not-found")
            self.next_observation = time.monotonic() + 15
            return
        rules = [{"key": "app", "operator": "In", "values": ["rook-ceph-osd"]}]
        rules += [{"key": "osd", "operator": "NotIn", "values": excluded}] if excluded else []
        self.apply_pdb(PDB, 1, {"matchExpressions": rules})
        allowed = self.world.get("pdb", PDB).get("status", {}).get("disruptionsAllowed", 0)
        self.next_observation = time.monotonic() + (30 if excluded or not allowed else 3600)

    def apply_pdb(self, name, limit, selector):
        spec = {"maxUnavailable": limit, "selector": selector}
        meta = {"name": name, "namespace": NAMESPACE}
        self.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})

    def apply(self, whole):
        self.world.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=rook", "-f", "-", stdin=json.dumps(whole))

    def pause(self, seconds):
        if self.ends.wait(seconds) or not self.runs():
            raise Failed("ended during a reconcile")

    def touch(self):
        """Changes the CephCluster, as Rook does when it writes its status many times in a reconcile."""
        self.world.kubectl("annotate", "cephcluster", "rook-ceph", f"lab.local/reconciled={time.time_ns()}", "--overwrite")

    def prepare(self):
        """Deletes the prepare Jobs of all nodes, and creates them again after a moment without any.

        If the CephCluster declares no node, it creates none: each OSD on a PVC of the lab has a Deployment.
        """
        delete_prepare_jobs(self.world)
        self.pause(1)
        # Ceph does not change a user that exists with other capabilities.
        self.world.lab("ceph", "auth", "get-or-create", "client.bootstrap-osd", "mon", "allow profile bootstrap-osd", check=False)
        storage = self.world.get("cephcluster", "rook-ceph")["spec"]["storage"]
        for node in self.world.hosts if storage["useAllNodes"] else []:
            create_prepare_job(self.world, node, ["sleep", str(PREPARES)])
        for _ in range(120):
            jobs = self.world.list("jobs", selector=OF_PREPARES)
            if all(job["status"].get("succeeded") for job in jobs):
                return
            self.pause(0.5)
        self.trouble.append("Rook's prepare Jobs did not end")

    def refill(self, destroyed):
        """Registers a new id for each destroyed OSD whose disk is blank.

        It stores all destroyed slots that Rook finds: they belong to osd-migrate.
        """
        self.refilled += destroyed
        for osd in destroyed:
            facts = self.world.facts(osd)
            blank = self.world.lab("on", facts["host"], "cmp", "-n", str(4 << 20), facts["disk"], "/dev/zero", check=False)
            if blank.returncode == 0:
                self.world.lab("ceph", "osd", "new", str(uuid.uuid4()))

    def hydrate(self, bare, fsids):
        """Creates a Deployment for each complete OSD on a disk that has none.

        Rook's Jobs list all disks, and leave out only ids that Ceph knows as destroyed: the id of an OSD that is found may
        be absent from Ceph. Here only the disks are read that the lab stored for its OSDs.
        """
        for osd in bare:
            facts = self.world.facts(osd)
            disk = facts["disk"]
            shown = self.world.lab("on", facts["host"], "ceph-bluestore-tool", "show-label", "--dev", disk, check=False)
            label = json.loads(shown.stdout)[disk] if shown.returncode == 0 else {}
            self.read.append(osd)
            if label.get("whoami") == str(osd) and fsids.get(osd) in (None, label.get("osd_uuid")):
                self.deploy(osd, label, facts)
                self.hydrated.append(osd)

    def reset_weights(self):
        """Sets the CRUSH weight of each OSD whose weight is less than its size by 1 %, if the CephCluster allows it.

        Rook does that at the end of each reconcile of OSDs (`ResizeOsdCrushWeight`). From a weight of 0, the difference is
        always large enough.
        """
        if not self.world.get("cephcluster", "rook-ceph")["spec"]["storage"].get("allowOsdCrushWeightUpdate"):
            return
        for osd in self.world.ceph("osd", "df")["nodes"]:
            size = osd["kb"] / (1 << 30)
            if size > osd["crush_weight"] * 1.01:
                self.world.lab("ceph", "osd", "crush", "reweight", f"osd.{osd['id']}", f"{size:f}")
                self.reset.append(osd["id"])

    def deploy(self, osd, label, facts):
        """Creates the Deployment of an OSD from the lab's template, which has Rook's shape."""
        version = label["ceph_version_when_created"].split()[2] if "ceph_version_when_created" in label else "16.2.15"
        values = {"ID": str(osd), "HOST": facts["host"], "UUID": label["osd_uuid"], "BLOCK": facts["disk"]}
        rendered = self.render({**values, "FSID": label["ceph_fsid"], "VERSION": version})
        rendered["spec"]["template"]["metadata"].setdefault("annotations", {})["rook.io/written"] = self.version
        self.world.kubectl("create", "-f", "-", stdin=json.dumps(rendered))

    def render(self, values):
        cluster = self.world.get("cephcluster", "rook-ceph")
        image, owner = cluster["spec"]["cephVersion"]["image"], cluster["metadata"]["uid"]
        values = {**values, "IMAGE": image, "OWNER": owner, "DB_ENV": "", "ACTIVATE_DB": ""}
        with open(SHAPE, encoding="utf-8") as file:
            text = file.read()
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        return json.loads(self.world.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=text))

    def render_again(self, deployment):
        """Returns the spec of a Deployment, rendered only from what Rook reads from it.

        A Deployment in an older shape, or of an OSD on a PVC, is not changed.
        """
        pod, labels = deployment["spec"]["template"]["spec"], deployment["metadata"]["labels"]
        if PVC in labels or not any(container["name"] == "activate" for container in pod.get("initContainers", [])):
            return deployment["spec"]
        values = read_back(pod, labels)
        rendered = self.render({**values, "VERSION": labels["ceph-version"].removesuffix("-0")})["spec"]
        rendered["selector"] = deployment["spec"]["selector"]  # which cannot be changed
        rendered["template"]["metadata"]["labels"].update(rendered["selector"]["matchLabels"])
        self.rendered_again.append(int(values["ID"]))
        return rendered

    def update(self, names):
        """Updates the Deployments, together if `ok-to-stop` allows, and returns the reasons for those not updated."""
        queue, whys = list(names), []
        sets = self.world.get("cephcluster", "rook-ceph")["spec"]["storage"].get("storageClassDeviceSets", [])
        for _ in range(120):
            if not queue:
                return whys
            first = queue.pop(0)
            asked = self.world.lab("ceph", "osd", "ok-to-stop", first.rsplit("-", 1)[1], "--max", "20", "-f", "json", check=False)
            if asked.returncode:
                queue.append(first)
                self.pause(1)
                continue
            together = {f"rook-ceph-osd-{osd}" for osd in json.loads(asked.stdout)["osds"]}
            now = [first, *(name for name in queue if name in together)]
            queue = [name for name in queue if name not in together]
            put = []
            for name in now:
                deployment = self.world.get("deployment", name)
                self.reshaped += [name] if differs(deployment, sets) else []
                if is_legacy(deployment):
                    whys.append(f"no legacy OSD block path in deployment {name}: failed to find activate init container")
                elif self.put(name, deployment):
                    put.append(name)
            for name in put:
                self.world.kubectl("rollout", "status", "deployment", name, "--timeout=120s", check=False)
        self.trouble.append(f"{queue} could not be updated")
        return whys

    def put(self, name, deployment):
        """Replaces a Deployment, whatever its resourceVersion: without external annotations, with one replica.

        Returns False if nothing was to change.
        """
        meta, spec = deployment["metadata"], deployment["spec"]
        annotations = spec["template"]["metadata"].get("annotations", {})
        if (self.written or annotations.get("rook.io/written") == self.version) and spec["replicas"] == 1:
            return False
        if spec["replicas"] == 0:
            self.started.append((name, meta.get("annotations", {})))
            # The pod does this before the daemon starts.
            self.world.lab("ceph", "auth", "get-or-create", f"osd.{name.rsplit('-', 1)[1]}", *CAPS, check=False)
        spec = self.render_again(deployment)
        spec["template"]["metadata"].setdefault("annotations", {})["rook.io/written"] = self.version
        kept = {key: meta[key] for key in ("name", "namespace", "labels", "ownerReferences") if key in meta}
        whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**kept, "annotations": {LAST_APPLIED: self.version}}}
        whole["spec"] = {**spec, "replicas": 1}
        self.world.kubectl("replace", "-f", "-", stdin=json.dumps(whole))
        return True
