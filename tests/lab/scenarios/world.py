"""The lab as the scenarios use it: short methods for kubectl, ceph and the Job."""
import http.client
import json
import os
import re
import subprocess
import sys
import time

from . import NAMESPACE, rights, sessions

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAB = os.path.join(HERE, "lab")
# Objects that remain for the next run.
KEPT = "/osd-migrate-(ledger|status|control|requests|plan-[0-9a-f]{16}|history-[0-9]+)$"
CONFIRMATION = {"spec": {"storage": {"migration": {"confirmation": "yes-really-migrate-osds"}}}}


def items(bucket):
    """Returns the items of a CRUSH bucket with their weights.

    An item that a purge removed is the last of its bucket after it was restored. In a straw2 bucket the order has no
    effect, because each item draws for itself. In a bucket of another kind the order moves data, so it is compared.
    """
    found = [(item["id"], item["weight"]) for item in bucket["items"]]
    return sorted(found) if bucket["alg"] == "straw2" else found


def with_short_retry_pause(args):
    """Returns the arguments of a run with a pause of one second before an agent is retried.

    The default, half a minute, is too long for tests of failures.
    """
    if not args or args[0] != "run" or "--agent-retry-pause" in args:
        return args
    return [*args, "--agent-retry-pause", "1s"]


class CannotRun(Exception):
    """This computer cannot run a lab."""


class World:
    # Of all scenarios: requests of osd-migrate's accounts, and rights that the chart grants them.
    asked, granted, refused = set(), set(), set()

    def __init__(self, binary, seed, full=False, patience=1):
        self.binary, self.seed, self.full = os.path.abspath(binary), seed, full
        self.lab_dir = os.environ.get("LAB_DIR") or os.path.join(HERE, "..", "..", ".lab")
        self.began = time.monotonic()
        self.jobs = []
        self.background = []  # processes that run in parallel with the scenario, and end with it
        self.hosts = []
        self.may_be_refused = set()  # (account, verb, group, resource) that this scenario expects to be refused
        self.patience = patience  # factor of all timeouts
        self.sessions = sessions.Sessions()

    # ---- output

    def say(self, text):
        print(f"[{time.monotonic() - self.began:6.1f}s] {text}", flush=True)

    def show_trouble(self):
        """Prints what a person would inspect first."""
        for title, args in [
            ("pods", ["kubectl", "-n", NAMESPACE, "get", "pods,jobs", "-o", "wide"]),
            ("ledger", ["kubectl", "-n", NAMESPACE, "get", "configmap", "osd-migrate-ledger", "-o", "jsonpath={.data}"]),
            ("ceph", ["ceph", "-s"]),
            ("tree", ["ceph", "osd", "tree"]),
        ]:
            print(f"---- {title}\n{self.lab(*args, check=False).stdout}", file=sys.stderr)
        for job in self.jobs[-2:]:
            print(f"---- log of {job}\n{self.log(job)[-6000:]}", file=sys.stderr)
        names = self.lab("kubectl", "-n", NAMESPACE, "get", "pods", "-l", "app.kubernetes.io/name=osd-migrate", "-o", "name", check=False)
        for pod in names.stdout.split()[-3:]:
            text = self.lab("kubectl", "-n", NAMESPACE, "logs", pod, "--tail=30", check=False)
            print(f"---- log of {pod}\n{text.stdout}{text.stderr}", file=sys.stderr)

    # ---- the lab

    def lab(self, *args, check=True, stdin=None, timeout=900):
        done = subprocess.run([LAB, *args], input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode == 3 and args and args[0] in ("up", "install", "build"):
            raise CannotRun(done.stderr.strip())
        if check and done.returncode:
            raise RuntimeError(f"lab {' '.join(args)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done

    def up(self, layout=None, osds=None, uml=False, release=None, osd_release=None, manifests=True, hosts=3):
        self.say("lab up")
        options = {"--layout": layout, "--osds": osds, "--release": release, "--osd-release": osd_release, "--hosts": hosts}
        self.hosts = [f"h{number}" for number in range(1, hosts + 1)]
        given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        self.lab("up", *given, *(["--uml"] if uml else []))
        if uml:  # one CPU, and a system call or a page fault takes several times as long: `ceph -s` takes 0.8 s
            self.hosts.append("u1")
            self.patience *= 4
        self.lab("image", self.binary)
        # The balancer creates upmaps when the PGs are clean. Here the upmaps must be the same before and after.
        if release != "18.2":  # Debian's mgr cannot load the module
            self.lab("ceph", "balancer", "off")
        if manifests:
            self.lab("job")
        self.say("the lab is up, the image is imported")

    def down(self):
        """Removes the lab, and returns what it left behind, as text."""
        if os.path.exists(os.path.join(self.folder(), "audit.log")):
            done, refused = rights.asked(self)
            World.asked |= done
            World.refused |= {what for what in refused if what[:4] not in self.may_be_refused}
        for process in self.background:
            process.kill()
            process.wait()
        self.background.clear()
        self.sessions.close()
        self.lab("down", check=False)
        left = self.lab("leftovers", check=False)
        return left.stdout + left.stderr if left.returncode else ""

    def down_completely(self):
        """Removes the lab, before the scenario starts another one, and fails if it leaves something behind."""
        left = self.down()
        assert not left, f"the lab left behind: {left}"

    def folder(self):
        """Returns the lab's LAB_DIR."""
        return os.environ.get("LAB_DIR", os.path.join(HERE, "..", "..", ".lab"))

    def facts(self, osd):
        """Returns what the lab stored when it created the OSD: host, kind, disk, part ... (`set_fact`)."""
        with open(os.path.join(self.folder(), "osd", str(osd)), encoding="utf-8") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)

    def osds(self):
        """Returns the ids of the OSDs that the lab created, whether they still exist or not."""
        return sorted(int(name) for name in os.listdir(os.path.join(self.folder(), "osd")))

    def image(self, disk):
        """Returns the path of the file behind a disk."""
        return os.path.join(self.folder(), "img", f"{disk}.img")

    def kubectl(self, *args, **more):
        return self.lab("kubectl", "-n", NAMESPACE, *args, **more).stdout

    def get(self, kinds, name=None, selector=None, namespace=NAMESPACE):
        """Returns an object, or a list of the objects of one or more kinds; None if it does not exist, or none exists."""
        return self.sessions.kubernetes(lambda session: session.get(kinds, name, selector, namespace))

    def list(self, kinds, selector=None):
        """Returns the objects of a kind."""
        return (self.get(kinds, selector=selector) or {"items": []})["items"]

    def ceph(self, *words):
        return self.sessions.ceph(lambda session: session.typed(*words))

    # ---- the Job

    def storage(self, **fields):
        """Sets fields of `spec.storage` of the CephCluster; None removes a field."""
        self.kubectl("patch", "cephcluster", "rook-ceph", "--type", "merge", "-p", json.dumps({"spec": {"storage": fields}}))

    def confirm(self):
        self.kubectl("patch", "cephcluster", "rook-ceph", "--type", "merge", "-p", json.dumps(CONFIRMATION))

    def start(self, name, args=None, node=None, env=None):
        """Creates a Job: `kubectl create job --from=cronjob/osd-migrate NAME`.

        Optional: other arguments of the runner, its node, additional environment variables.
        """
        self.jobs.append(name)
        if args is None and not env:
            self.kubectl("create", "job", "--from=cronjob/osd-migrate", name)
            return name
        job = json.loads(self.kubectl("create", "job", "--from=cronjob/osd-migrate", name, "--dry-run=client", "-o", "json"))
        container = job["spec"]["template"]["spec"]["containers"][0]
        container["args"] = with_short_retry_pause(args) or container["args"]
        container["env"] += [{"name": key, "value": value} for key, value in (env or {}).items()]
        if node:
            job["spec"]["template"]["spec"]["nodeName"] = node
        self.kubectl("create", "-f", "-", stdin=json.dumps(job))
        return name

    def command(self, *args):
        """Runs osd-migrate as a person does on a computer with kubectl and without Ceph, and returns its stdout."""
        return self.lab("net", self.binary, *args).stdout

    def delete(self, job):
        self.kubectl("delete", "job", job, "--cascade=background", "--wait=false", check=False)

    def log(self, job):
        """Returns the log of all pods of the Job; nothing while the API server is away."""
        try:
            return self.sessions.kubernetes(lambda session: session.log(job, NAMESPACE))
        except (RuntimeError, OSError, http.client.HTTPException):
            return ""

    def result(self, job):
        """Returns (`Complete` or `Failed`, exit code of its last pod), or None while the Job is running."""
        status = self.get("job", job)["status"]
        ends = [c["type"] for c in status.get("conditions", []) if c["status"] == "True" and c["type"] in ("Complete", "Failed")]
        if not ends:
            return None
        codes = [
            (state["terminated"]["finishedAt"], state["terminated"]["exitCode"])
            for pod in self.get("pods", selector=f"batch.kubernetes.io/job-name={job}")["items"]
            for container in pod["status"].get("containerStatuses", [])
            for state in [container.get("state", {})]
            if "terminated" in state
        ]
        return ends[0], max(codes)[1] if codes else None

    def wait_for(self, job, seconds):
        return self.until(f"{job} to end", seconds, lambda: self.result(job))

    def until(self, what, seconds, condition, pause=0.4):
        """Waits for a condition. Some conditions start kubectl, which takes 0.2 s of one core."""
        seconds *= self.patience
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = condition()
            if found:
                return found
            time.sleep(pause)
        raise AssertionError(f"timeout after {seconds} s: waited for {what}")

    def records(self):
        """Returns the open records of the ledger, by OSD id."""
        ledger = self.get("configmap", "osd-migrate-ledger") or {"data": {}}
        return {int(k[4:]): json.loads(v) for k, v in ledger.get("data", {}).items() if k.startswith("osd-")}

    def milestones(self, osd):
        """Returns the codes of what an OSD in progress has reached; nothing if it is not in progress."""
        return [word for word, _ in self.records().get(osd, {"milestones": []})["milestones"]]

    def nodes(self):
        """Returns the progress of the new OSDs of each node, from the ledger."""
        ledger = self.get("configmap", "osd-migrate-ledger") or {"data": {}}
        return json.loads(ledger["data"].get("nodes", "{}"))

    def closed(self):
        """Returns the entries of closed records, without those that `retry` writes about quarantines."""
        return [entry for entry in self.history() if entry["outcome"] != "quarantined"]

    def history(self):
        maps = self.get("configmaps")["items"]
        lines = [
            json.loads(line)
            for m in sorted(maps, key=lambda m: m["metadata"]["name"])
            if m["metadata"]["name"].startswith("osd-migrate-history-")
            for key in sorted(m.get("data", {}))
            for line in m["data"][key].splitlines()
            if line.strip()
        ]
        return lines

    # ---- what must be the same before and after

    def shape(self):
        """Returns what a migration must not change.

        That is ids, CRUSH locations and weights, device classes, reweights, affinities, flags and upmaps.
        """
        tree = self.ceph("osd", "tree")["nodes"]
        dump = self.ceph("osd", "dump")
        return {
            "tree": sorted((n["id"], n["name"], n.get("device_class"), n.get("crush_weight"), tuple(sorted(n.get("children", [])))) for n in tree),
            "osds": sorted((o["osd"], o["in"], o["weight"], o["primary_affinity"]) for o in dump["osds"]),
            "flags": dump["flags"],
            "node_flags": dump.get("crush_node_flags", {}),
            "upmaps": sorted(dump.get("pg_upmap_items", []), key=lambda item: item["pgid"]),
            "upmap_primaries": dump.get("pg_upmap_primaries", []),
            "crush": self.crush(),
        }

    def crush(self):
        """Returns the CRUSH map in its own precision (`osd tree` rounds), with the shadow trees of device classes."""
        dump = self.ceph("osd", "crush", "dump")
        return {
            "devices": [(device["id"], device.get("class")) for device in dump["devices"]],
            "buckets": {b["id"]: (b["name"], b["type_name"], b["weight"], items(b)) for b in dump["buckets"]},
            "rules": [(rule["rule_name"], rule["steps"]) for rule in dump["rules"]],
            "choose_args": dump.get("choose_args"),
        }

    def customize(self):
        """Sets what a migration must preserve, and what a purge or a first boot would lose.

        That is a reweight, an affinity, and an upmap onto a legacy OSD.
        """
        self.lab("ceph", "osd", "reweight", "1", "0.9")
        self.lab("ceph", "osd", "primary-affinity", "0", "0.5")
        self.lab("wait-clean", "120")
        pgs = self.ceph("pg", "ls-by-pool", "labpool")["pg_stats"]
        pg = next(pg["pgid"] for pg in pgs if 2 in pg["up"])  # osd.5 is on the same host
        self.lab("ceph", "osd", "pg-upmap-items", pg, "2", "5")
        self.lab("wait-clean", "120")
        assert self.ceph("osd", "dump")["pg_upmap_items"], "Ceph did not accept the upmap"

    def stores(self):
        return {m["id"]: m["osd_objectstore"] for m in self.ceph("osd", "metadata")}

    def fsids(self):
        return {o["osd"]: o["uuid"] for o in self.ceph("osd", "dump")["osds"]}

    def expect_migrated(self, before, fsids_before, legacy, others=None):
        """Checks all promises of a finished run in the cluster, not in the Job.

        `others`: stores of the OSDs that must not be migrated, if those are not BlueStore.
        """
        self.lab("wait-clean", "120")
        assert self.shape() == before, f"the cluster changed its shape:\n{before}\n{self.shape()}"
        stores = self.stores()
        assert stores == {**dict.fromkeys(stores, "bluestore"), **(others or {})}, stores
        changed = {osd for osd, fsid in self.fsids().items() if fsid != fsids_before[osd]}
        assert changed == set(legacy), f"recreated: {changed}, legacy: {legacy}"
        self.expect_nothing_left()
        self.lab("verify")
        self.say("same ids, CRUSH locations and weights; BlueStore; all objects equal; nothing left behind")

    def expect_nothing_left(self):
        """Checks that everything temporary is removed: records, fence, limit of drains, objects."""
        assert not self.records(), f"open records: {list(self.records())}"
        cluster = self.get("cephcluster", "rook-ceph")
        assert "ceph.rook.io/do-not-reconcile" not in cluster["metadata"].get("labels", {}), "the fence is still set"
        assert self.drain_limit() == 1, f"drains are limited: {self.drain_limit()}"
        left = self.left_objects()
        if left:  # Kubernetes deletes a Job a moment after the ConfigMap that owns it
            time.sleep(3)
            left = self.left_objects()
        assert not left, f"left behind: {left}"

    def drain_limit(self):
        """Returns the number of OSD pods that a drain may evict at a time."""
        return self.get("poddisruptionbudget", "rook-ceph-osd")["spec"]["maxUnavailable"]

    def is_ready(self, osd):
        found = self.get("deployment", f"rook-ceph-osd-{osd}")
        return found and found["status"].get("availableReplicas") == 1

    def own_pdb(self):
        """Returns the uid of the run's own PodDisruptionBudget, or None if it does not exist."""
        found = self.get("poddisruptionbudget", "osd-migrate-drains")
        return found and found["metadata"]["uid"]

    def eviction(self, osd):
        """Returns the API server's reason for refusing to evict an OSD's pod, or nothing; it is a dry run."""
        return self.evict(self.get("pods", selector=f"ceph-osd-id={osd}")["items"][0]["metadata"]["name"], dry_run=True)

    def evict(self, pod, dry_run=False):
        """Evicts a pod, as a drain does, and returns the API server's reason for refusing, or nothing."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}
        if dry_run:
            body["deleteOptions"] = {"dryRun": ["All"]}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction{'?dryRun=All' if dry_run else ''}"
        done = self.lab("kubectl", "create", "--raw", path, "-f", "-", stdin=json.dumps(body), check=False)
        return done.stderr.strip() if done.returncode else ""

    def left_objects(self):
        names = [f"{item['kind']}/{item['metadata']['name']}" for item in self.get("jobs,configmaps,secrets,poddisruptionbudgets")["items"]]
        return [name for name in names if "/osd-migrate-" in name and not re.search(KEPT, name)]

    def expect_downs_on_one_host(self, first_epoch):
        """Checks that OSDs of two hosts were never down at the same time since an epoch."""
        print(self.lab("epochs", str(first_epoch)).stdout.strip(), flush=True)

    def written(self):
        """Returns the commands of osd-migrate that changed something, from the mon's audit log.

        The mon logs commands that only read at debug level, and commands that write at info level. The epoch of the
        osdmap is no measure: it also increases without a command (up_thru, pool statistics, the mgr).
        """
        text = self.lab("on", "adm", "cat", "/var/log/ceph/ceph.audit.log").stdout
        lines = [line for line in text.splitlines() if "[INF]" in line and "cmd=" in line]
        own = [line for line in lines if re.search("entity='client.(admin|osd-migrate)'", line) and line.rstrip().endswith("dispatch")]
        # These only read, but need more than the right to read, so the mon logs them as writes. (The lab itself sends `auth ls`
        # and `auth get-key`.)
        # The lab's own commands about `of-lab` may be logged late.
        return [line for line in own if not re.search(r'"prefix": ?"auth (get|get-key|ls)"|of-lab', line)]

    def epoch(self):
        return int(self.lab("epochs", "--now").stdout.split()[-1])
