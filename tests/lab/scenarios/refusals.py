"""Wrong input and failures: each run ends with a message that names the object and a command.

Nothing is destroyed. The lab must be one in which nothing was migrated yet.
"""
import json

from . import own_user

SELECT = ["run", "--confirm", "yes-really-migrate-osds", "--select", "osd.0", "--ceph-timeout", "5"]


def run(world):
    world.up()
    on_running_lab(world)


def on_running_lab(world):
    written, fsids = world.written(), world.fsids()
    no_ceph_cluster(world)
    key_refused(world)
    no_mon(world)
    role_too_small(world)
    ledger_unusable(world)
    starts_in_vain(world)
    device_missing(world)
    image_without_tools(world)
    # The first act, a node Job that inspects a disk, creates the Ceph user of the runs.
    new = [line for line in world.written()[len(written) :] if not own_user.CREATE_USER.search(line)]
    assert not new, f"something was written to Ceph: {new}"
    assert world.fsids() == fsids, "an OSD was recreated"
    assert all(osd["up"] for osd in world.ceph("osd", "dump")["osds"]), "an OSD is down"
    assert not world.records(), "a record is open"


def expect(world, name, args, code, *words):
    job = world.start(name, args)
    result = world.wait_for(job, 120)
    log = world.log(job)
    assert result == ("Complete" if code == 0 else "Failed", code), (name, result, log)
    for word in words:
        assert word in log, f"{name}: `{word}` is not in:\n{log}"
    world.say(f"{name}: exit {code}, with its message")
    return log


def no_ceph_cluster(world):
    expect(world, "no-cluster", ["run", "--cluster", "nobody"], 2, "no CephCluster nobody", "kubectl get cephclusters -A")
    expect(world, "pause-nowhere", ["pause", "--cluster", "nobody"], 2, "no CephCluster nobody")
    assert not world.get("configmap", "osd-migrate-control"), "a pause was written without a CephCluster"


def key_refused(world):
    good = world.get("secret", "rook-ceph-mon")["data"]["ceph-secret"]
    patch = lambda key: world.kubectl("patch", "secret", "rook-ceph-mon", "-p", json.dumps({"data": {"ceph-secret": key}}))  # noqa: E731
    # A valid key that no user has, in base64 as in Secrets.
    world.kubectl("patch", "secret", "rook-ceph-mon", "-p", json.dumps({"stringData": {"ceph-secret": "AQBpmTxlAAAAABAAmnQ2TWvfR4nDbXIdyUhE8g=="}}))
    log = expect(world, "key-refused", SELECT, 10, "refuse the key of client.admin", "describe secret rook-ceph-mon")
    assert "AQBpmTxl" not in log, "the key is in the log"
    patch(good)


def no_mon(world):
    good = world.get("configmap", "rook-ceph-mon-endpoints")["data"]["data"]
    patch = lambda data: world.kubectl("patch", "configmap", "rook-ceph-mon-endpoints", "-p", json.dumps({"data": {"data": data}}))  # noqa: E731
    patch("a=10.99.0.11:3300")  # a host without a mon
    job = world.start("no-mon", SELECT)
    world.until("the runner to report that no mon answers", 60, lambda: "-l app=rook-ceph-mon" in world.log(job))
    assert world.result(job) is None, "the run did not wait for the mon"
    world.delete(job)
    patch(good)
    world.say("no-mon: reported, and retried")


def role_too_small(world):
    world.may_be_refused.add(("osd-migrate", "list", "apps", "deployments"))
    role = world.get("role", "osd-migrate")
    for rule in role["rules"]:
        if "deployments" in rule["resources"]:
            rule["verbs"] = [verb for verb in rule["verbs"] if verb != "list"]
    world.kubectl("replace", "-f", "-", stdin=json.dumps({k: role[k] for k in ("apiVersion", "kind", "rules")} | {"metadata": {"name": "osd-migrate"}}))
    expect(world, "role-too-small", SELECT, 10, "does not allow the verb `list` on `deployments.apps`", "kubectl auth can-i list deployments.apps")
    world.lab("job")


def starts_in_vain(world):
    """Checks that a pod ends its Job with a message if the Job's controller has counted ten failed pods."""
    job = json.loads(world.kubectl("create", "job", "--from=cronjob/osd-migrate", "in-vain", "--dry-run=client", "-o", "json"))
    job["spec"]["suspend"] = True
    job["spec"]["template"]["spec"]["containers"][0]["args"] = SELECT
    world.jobs.append("in-vain")
    world.kubectl("create", "-f", "-", stdin=json.dumps(job))
    world.until("the Job to be suspended", 30, lambda: "conditions" in world.get("job", "in-vain")["status"])
    world.kubectl("patch", "job", "in-vain", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"failed": 10}}))
    world.kubectl("patch", "job", "in-vain", "--type=merge", "-p", json.dumps({"spec": {"suspend": False}}))
    assert world.wait_for("in-vain", 60) == ("Failed", 10), world.log("in-vain")
    uid = world.get("job", "in-vain")["metadata"]["uid"]
    for words in ("the last 10 pods of this Job failed", f"batch.kubernetes.io/controller-uid={uid}"):
        assert words in world.log("in-vain"), world.log("in-vain")
    assert world.kubectl("get", "pods", "--selector", f"batch.kubernetes.io/controller-uid={uid}", "-o", "name"), "the command of the message shows no pod"
    world.say("crash loop: exit 10, with its message")


def ledger_unusable(world):
    for name, data, word in [
        ("ledger-newer", {"format": "99", "run": "{}"}, "has format 99"),
        ("ledger-broken", {"format": "1", "run": "{"}, "key `run` of the ledger cannot be read"),
    ]:
        world.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "osd-migrate-ledger"}, "data": data}))
        expect(world, name, SELECT, 10, word, "kubectl" if name.endswith("broken") else "newer")
        assert world.get("configmap", "osd-migrate-ledger")["data"] == data, "the ledger was written"
        world.kubectl("delete", "configmap", "osd-migrate-ledger")


def expect_quarantined(world, name, word):
    """Checks that osd.0, which cannot be proven, is quarantined before it was changed, until a person retries it."""
    expect(world, name, SELECT, 11, "osd.0 is quarantined", word)
    assert list(world.records()) == [0] and world.records()[0]["quarantine"], world.records()
    status = world.command("status")
    assert "osd.0 is quarantined" in status and "retry osd.0" in status, status


def withdraw_osd_0(world):
    """Removes the record of osd.0: a run that does not select it withdraws the record, and cleans up."""
    expect(world, f"{world.jobs[-1]}-retry", ["retry", "osd.0"], 0)
    expect(world, f"{world.jobs[-1]}-withdraw", ["run", "--confirm", "yes-really-migrate-osds", "--select", "osd.3"], 0)
    assert not world.records(), world.records()


def device_missing(world):
    device = world.lab("on", "h1", "bash", "-c", "readlink -f /dev/disk/by-id/lab-osd0*").stdout.split()[0]
    numbers = world.lab("on", "h1", "stat", "-c", "%Hr %Lr", device).stdout.split()
    world.lab("on", "h1", "mv", device, f"{device}.away")
    expect_quarantined(world, "device-missing", "its disk was not found on node h1")
    world.lab("on", "h1", "bash", "-c", f"[ -b {device} ] || mv {device}.away {device}; rm -f {device}.away; [ -b {device} ] || mknod -m 660 {device} b {' '.join(numbers)}")
    withdraw_osd_0(world)


def image_without_tools(world):
    image = world.get("cephcluster", "rook-ceph")["spec"]["cephVersion"]["image"]
    patch = lambda name: world.kubectl("patch", "cephcluster", "rook-ceph", "--type", "merge", "-p", json.dumps({"spec": {"cephVersion": {"image": name}}}))  # noqa: E731
    patch("lab.local/pause:1")
    expect_quarantined(world, "image-without-tools", "its node agent failed 3 times")
    patch(image)
    withdraw_osd_0(world)
