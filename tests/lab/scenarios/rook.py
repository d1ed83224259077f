"""A stand-in for Rook's operator: what a reconcile of it does to OSDs, whenever it likes, and what it says where the CephCluster
is fenced, from 1.20 on. Its image is named, never pulled: what counts is that an operator runs. It does what Rook 1.20.6 was seen
to do in a cluster of its own making, and what 1.14.3 has in the same places (`pkg/operator/ceph/cluster/osd`)."""
import json
import os
import threading
import time
import uuid

from . import NAMESPACE

SHAPE = os.path.join(os.path.dirname(__file__), "..", "manifests", "osd-raw.yaml")

FENCE = "ceph.rook.io/do-not-reconcile"
APP = {"app": "rook-ceph-operator"}
# Of the Deployment itself, in Rook's operator.yaml: the label of its pods is not among them.
LABELS = {"operator": "rook", "storage-backend": "ceph", "app.kubernetes.io/name": "rook-ceph"}
DELAY = 4  # seconds between what a reconcile has read and what it does: a real one waits for mons and mgrs first
PREPARES = 3  # seconds that a Job of it looks at the disks of a node
PUT_BY_US = "banzaicloud.com/last-applied"
HOST = "topology-location-host"
BUDGET = "rook-ceph-osd"
CAPS = ["mon", "allow profile osd", "mgr", "allow profile osd", "osd", "allow *"]


class Failed(Exception):
    """What a reconcile ends with where an OSD could not be brought into its words; it is tried again soon."""


class Rook:
    """Reconciles one after the other: at each change of the label, every `period` seconds, and again soon after a failure."""

    def __init__(self, world, version, period=20, namespace=NAMESPACE):
        self.world, self.version, self.period = world, version, period
        self.there, self.checked = ("-n", namespace), 0
        numbers = tuple(int(number) for number in version.split("."))
        self.honours, self.takes_bootstrap = numbers >= (1, 20), numbers >= (1, 19)
        self.done, self.skipped, self.failures, self.started, self.refilled, self.trouble = 0, 0, [], [], [], []
        self.hydrated, self.rendered_again = [], []
        self.draining, self.drained, self.fences = "", [], set()
        self.looked, self.look_again = None, 0
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
        self.world.kubectl("delete", "jobs", "-l", "app=rook-ceph-osd-prepare", "--wait=true")
        self.world.kubectl("delete", "configmap", "rook-ceph-pdbstatemap", "--ignore-not-found")

    def runs(self):
        return bool(self.world.get("pods", "-l", "app=rook-ceph-operator", *self.there))

    def replicas(self):
        return self.world.get("deployment", "rook-ceph-operator", *self.there)["spec"]["replicas"]

    def check(self):
        """How Ceph is, as it says it each minute, whether fenced or not; and which image it has taken up."""
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
                self.look_for_drains()
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
            except Exception as why:  # noqa: BLE001 - told at the end; a thread that dies would hide that nobody reconciles
                self.trouble.append(repr(why))

    def skip(self, cluster):
        """As `recorder.Event(cephCluster, ...)` does: about the object that was read."""
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
        """Disks are prepared, Deployments brought into its own words, those that are stopped are started so. It goes on with a
        list of OSDs that it read before."""
        self.touch()
        found = [one["metadata"]["name"] for one in self.world.get("deployments", "-l", "app=rook-ceph-osd")["items"]]
        slots = self.world.ceph("osd", "dump")["osds"]
        self.pause(DELAY)
        self.prepare()
        self.refill([slot["osd"] for slot in slots if "destroyed" in slot["state"]])
        self.hydrate([slot for slot in slots if "destroyed" not in slot["state"] and f"rook-ceph-osd-{slot['osd']}" not in found])
        self.touch()
        whys = self.update(found)
        if whys:
            raise Failed("; ".join(whys))
        if self.takes_bootstrap:
            self.world.lab("ceph", "auth", "del", "client.bootstrap-osd")

    def look_for_drains(self):
        """Its other controller, which knows no fence: an OSD that is down while PGs are not clean counts as a domain that is
        drained. One Deployment without the label, and it gives up. It looks when OSDs or PGs change, and again after a while
        where its budget is not there, lets none be evicted or leaves some out (1.20.6, `reconcilePDBsForOSDs`)."""
        osds = self.world.get("deployments", "-l", "app=rook-ceph-osd")["items"]
        found = [(one["metadata"]["labels"], one["status"]) for one in osds]
        if any(HOST not in labels for labels, _ in found):
            return
        down = {labels["ceph-osd-id"]: labels[HOST] for labels, status in found if not status.get("readyReplicas")}
        clean = all(pgs["state_name"].startswith("active+clean") for pgs in self.world.ceph("status")["pgmap"]["pgs_by_state"])
        if (down, clean) == self.looked and time.monotonic() < self.look_again:
            return
        self.looked = down, clean
        domain = "" if clean else self.draining if self.draining in down.values() else min(down.values(), default=self.draining)
        if domain != self.draining:
            self.draining = domain
            self.drained += [domain] if domain else []
            meta = {"name": "rook-ceph-pdbstatemap", "namespace": NAMESPACE}
            data = {"draining-failure-domain": domain, "set-no-out": ""}  # true where a node is drained
            self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        self.budgets({labels[HOST] for labels, _ in found}, sorted(down) if clean else [])

    def budgets(self, hosts, but):
        """One over all OSDs, some left out; or, where a domain is drained, one for each of the others that lets none go."""
        blocking = hosts - {self.draining} if self.draining else set()
        for host in blocking:
            self.budget(f"{BUDGET}-host-{host}", 0, {"matchLabels": {HOST: host}})
        for host in hosts - blocking:
            self.world.kubectl("delete", "pdb", f"{BUDGET}-host-{host}", "--ignore-not-found")
        if self.draining:
            self.world.kubectl("delete", "pdb", BUDGET, "--ignore-not-found")
            self.look_again = time.monotonic() + 15
            return
        rules = [{"key": "app", "operator": "In", "values": ["rook-ceph-osd"]}]
        rules += [{"key": "osd", "operator": "NotIn", "values": but}] if but else []
        self.budget(BUDGET, 1, {"matchExpressions": rules})
        allowed = self.world.get("pdb", BUDGET).get("status", {}).get("disruptionsAllowed", 0)
        self.look_again = time.monotonic() + (30 if but or not allowed else 3600)

    def budget(self, name, limit, selector):
        spec = {"maxUnavailable": limit, "selector": selector}
        meta = {"name": name, "namespace": NAMESPACE}
        self.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})

    def apply(self, whole):
        self.world.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=rook", "-f", "-", stdin=json.dumps(whole))

    def pause(self, seconds):
        if self.ends.wait(seconds) or not self.runs():
            raise Failed("ended in the middle")

    def touch(self):
        """Its status, which it writes a dozen times: the CephCluster changes without anybody's word."""
        self.world.kubectl("annotate", "cephcluster", "rook-ceph", f"lab.local/reconciled={time.time_ns()}", "--overwrite")

    def prepare(self):
        """The Jobs of all nodes, made anew: between the old ones' end and the new ones' begin there is none."""
        labels = {"app": "rook-ceph-osd-prepare"}
        self.world.kubectl("delete", "jobs", "-l", "app=rook-ceph-osd-prepare", "--wait=true")
        self.pause(1)
        # Where it is there with other words for the same, it stays as it is.
        self.world.lab("ceph", "auth", "get-or-create", "client.bootstrap-osd", "mon", "allow profile bootstrap-osd", check=False)
        sleep = ["sleep", str(PREPARES)]
        container = {"name": "provision", "image": "lab.local/osd-migrate:dev", "imagePullPolicy": "Never", "command": sleep}
        for node in self.world.hosts:
            pod = {"nodeName": node, "hostNetwork": True, "restartPolicy": "OnFailure", "containers": [container]}
            meta = {"name": f"rook-ceph-osd-prepare-{node}", "namespace": NAMESPACE, "labels": labels}
            spec = {"template": {"metadata": {"labels": labels}, "spec": pod}}
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
            self.world.kubectl("create", "-f", "-", stdin=json.dumps(job))
        for _ in range(120):
            jobs = self.world.get("jobs", "-l", "app=rook-ceph-osd-prepare")["items"]
            if all(job["status"].get("succeeded") for job in jobs):
                return
            self.pause(0.5)
        self.trouble.append("Rook's Jobs did not end")

    def refill(self, destroyed):
        """A disk that is blank becomes an OSD, under a new id. Its slot is told of in any case: what Rook finds there is ours."""
        self.refilled += destroyed
        for osd in destroyed:
            facts = self.world.facts(osd)
            blank = self.world.lab("on", facts["host"], "cmp", "-n", str(4 << 20), facts["disk"], "/dev/zero", check=False)
            if blank.returncode == 0:
                self.world.lab("ceph", "osd", "new", str(uuid.uuid4()))

    def hydrate(self, bare):
        """What its Jobs find whole on a disk, and that has no Deployment, gets one. (They list all disks; here the one that the lab
        noted is looked at.)"""
        for slot in bare:
            facts = self.world.facts(slot["osd"])
            disk = facts["disk"]
            shown = self.world.lab("on", facts["host"], "ceph-bluestore-tool", "show-label", "--dev", disk, check=False)
            label = json.loads(shown.stdout)[disk] if shown.returncode == 0 else {}
            if (label.get("whoami"), label.get("osd_uuid")) == (str(slot["osd"]), slot["uuid"]):
                self.deploy(slot["osd"], label, facts)
                self.hydrated.append(slot["osd"])

    def deploy(self, osd, label, facts):
        """In the shape that the lab's own OSDs have, which is Rook's."""
        version = label["ceph_version_when_created"].split()[2] if "ceph_version_when_created" in label else "16.2.15"
        values = {"ID": str(osd), "HOST": facts["host"], "UUID": label["osd_uuid"], "BLOCK": facts["disk"]}
        made = self.rendered({**values, "FSID": label["ceph_fsid"], "VERSION": version})
        made["spec"]["template"]["metadata"].setdefault("annotations", {})["rook.io/written"] = self.version
        self.world.kubectl("create", "-f", "-", stdin=json.dumps(made))

    def rendered(self, values):
        cluster = self.world.get("cephcluster", "rook-ceph")
        image, owner = cluster["spec"]["cephVersion"]["image"], cluster["metadata"]["uid"]
        values = {**values, "IMAGE": image, "OWNER": owner, "DB_ENV": "", "ACTIVATE_DB": ""}
        with open(SHAPE, encoding="utf-8") as file:
            text = file.read()
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        return json.loads(self.world.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=text))

    def anew(self, deployment):
        """Its spec, rendered from what Rook reads back of it: nothing else of it counts. One in an older shape stays as it is."""
        pod, labels = deployment["spec"]["template"]["spec"], deployment["metadata"]["labels"]
        if not any(container["name"] == "activate" for container in pod.get("initContainers", [])):
            return deployment["spec"]
        values = read_back(pod, labels)
        made = self.rendered({**values, "VERSION": labels["ceph-version"].removesuffix("-0")})["spec"]
        made["selector"] = deployment["spec"]["selector"]  # which nobody can change
        made["template"]["metadata"]["labels"].update(made["selector"]["matchLabels"])
        self.rendered_again.append(int(values["ID"]))
        return made

    def update(self, names):
        """All of one host at a time, whatever may be down together by `ok-to-stop`. What it could not do."""
        queue, whys = list(names), []
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
                if is_legacy(deployment):
                    whys.append(f"no legacy OSD block path in deployment {name}: failed to find activate init container")
                elif self.put(name, deployment):
                    put.append(name)
            for name in put:
                self.world.kubectl("rollout", "status", "deployment", name, "--timeout=120s", check=False)
        self.trouble.append(f"{queue} could not be rolled")
        return whys

    def put(self, name, deployment):
        """The whole of it, in its own words, over whatever version is there: no annotation of others stays, and it is to run."""
        meta, spec = deployment["metadata"], deployment["spec"]
        words = spec["template"]["metadata"].get("annotations", {})
        if words.get("rook.io/written") == self.version and spec["replicas"] == 1:
            return False
        if spec["replicas"] == 0:
            self.started.append((name, meta.get("annotations", {})))
            # By its pod, before it starts.
            self.world.lab("ceph", "auth", "get-or-create", f"osd.{name.rsplit('-', 1)[1]}", *CAPS, check=False)
        spec = self.anew(deployment)
        spec["template"]["metadata"].setdefault("annotations", {})["rook.io/written"] = self.version
        kept = {key: meta[key] for key in ("name", "namespace", "labels", "ownerReferences") if key in meta}
        whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**kept, "annotations": {PUT_BY_US: self.version}}}
        whole["spec"] = {**spec, "replicas": 1}
        self.world.kubectl("replace", "-f", "-", stdin=json.dumps(whole))
        return True


def read_back(pod, labels):
    """What Rook knows of an OSD by its Deployment (`getOSDInfo`, 1.20.6); what is missing is an error of the reconcile. The lab's
    OSDs are raw, of one class, below a host of the root."""
    [osd] = [container for container in pod["containers"] if container["name"] == "osd"]
    env = {one["name"]: one.get("value", "") for one in osd["env"]}
    host = pod["nodeSelector"]["kubernetes.io/hostname"]
    location = f"--crush-location=root=default host={host}"
    found = (env["ROOK_CV_MODE"], env["ROOK_OSD_DEVICE_CLASS"], labels["osd-store"], labels["encrypted"], env["ROOK_NODE_NAME"])
    assert found == ("raw", "hdd", "bluestore", "false", host) and location in osd["args"], (found, osd["args"])
    assert "ROOK_PVC_BACKED_OSD" not in env and not env.get("ROOK_METADATA_DEVICE"), env
    assert labels[HOST] == host and env["ROOK_BLOCK_PATH"] and env["ROOK_OSD_UUID"], (labels, env)
    cluster = osd["args"][osd["args"].index("--fsid") + 1]
    return {"ID": labels["ceph-osd-id"], "HOST": host, "UUID": env["ROOK_OSD_UUID"], "FSID": cluster, "BLOCK": env["ROOK_BLOCK_PATH"]}


def is_legacy(deployment):
    """One of Rook 1.2 and before: no later one can say of it where its data is."""
    pod = deployment["spec"]["template"]["spec"]
    named = {env["name"] for container in pod["containers"] for env in container.get("env", [])}
    activates = any(container["name"] == "activate" for container in pod.get("initContainers", []))
    return not activates and not named & {"ROOK_BLOCK_PATH", "ROOK_LV_PATH"}
