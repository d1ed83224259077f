"""The chart with a real Helm and its hooks, and the three ways to start a run: each migrates one OSD.

Before, `install` installs it from a registry, by the three commands of the guide.

Also what the accounts may and may not do, when an uninstall is refused, and what an uninstall leaves behind.
"""
import json
import os
import re
import time

from . import NAMESPACE, install, laptop, own_user, rights, rook
from .helm import CHART, run_helm

OF_THE_LAB = ["image.repository=lab.local/osd-migrate", "image.tag=dev", "hostNetwork=true"]
CONFIRMED = "run.confirmation=yes-really-migrate-osds"
UNCHECKED = "preflight.enabled=false"
SECRET = "ceph-of-the-owner"
ELSEWHERE = "rook-operator"  # namespace of Rook's operator, if it is not the cluster's
OLD_ROOK = [f"operatorNamespace={ELSEWHERE}", "run.scaleOperator=true"]
BOOTSTRAP = "client.bootstrap-osd"


def run(world):
    world.up(manifests=False)
    world.lab("write", "100")
    world.customize()
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()

    install.on_running_lab(world)
    umbrella(world)
    helm(world, "install")
    in_its_own_ceph_image(world)
    tested(world)
    assert world.get("cronjob", "osd-migrate")["spec"]["suspend"], "the CronJob is not suspended"
    field_rules(world)
    helm(world, "upgrade", values=["schedule=* * * * *", UNCHECKED])
    can_i(world)
    restricted(world)
    by_schedule_unconfirmed(world)
    preflight_refuses(world)
    by_upgrade(world)
    by_kubectl(world)
    by_schedule(world)
    world.expect_migrated(before, fsids, [0, 1, 5])
    world.expect_downs_on_one_host(epoch)
    events(world, "CephCluster", "rook-ceph", 3)
    preflight_passes(world)
    gone(world)
    once_more(world)
    forbidden(world)


def helm(world, verb, values=(), code=0):
    """Runs `helm VERB` of the release, with these values and those that the lab needs, and returns its output."""
    began, words = time.monotonic(), [verb, "osd-migrate"]
    if verb != "uninstall":
        words += [CHART, *(word for value in (*OF_THE_LAB, *values) for word in ("--set", value))]
    text = run_helm(world, *words, code=code)
    world.say(f"helm {verb} {' '.join(values)}: {'refused' if code else 'done'} in {time.monotonic() - began:.1f} s")
    return text


def umbrella(world):
    """Checks that the preflight guards an umbrella chart with another part, here in place of Rook's own chart."""
    folder = os.path.join(world.folder(), "umbrella")
    os.makedirs(os.path.join(folder, "templates"), exist_ok=True)
    part = {"name": "osd-migrate", "version": "0.1.0", "repository": f"file://{os.path.realpath(CHART)}"}
    chart = {"apiVersion": "v2", "name": "storage", "version": "1.0.0", "dependencies": [part]}
    rook = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rook"}, "data": {"version": "{{ .Values.rook }}"}}
    for path, text in (("Chart.yaml", chart), ("templates/rook.yaml", rook), ("values.yaml", {"rook": "old"})):
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            json.dump(text, file)
    run_helm(world, "dependency", "build", "--skip-refresh", folder)
    values = [word for value in OF_THE_LAB for word in ("--set", f"osd-migrate.{value}")]
    run_helm(world, "install", "storage", folder, *values)
    said = run_helm(world, "upgrade", "storage", folder, *values, "--set", "rook=new", code=1)
    assert "3 legacy OSDs" in said and "pre-upgrade" in said, said
    version = lambda: world.get("configmap", "rook")["data"]["version"]  # noqa: E731
    assert version() == "old", "the upgrade was not refused"
    run_helm(world, "upgrade", "storage", folder, *values, "--set", "rook=new,osd-migrate.preflight.enabled=false")
    assert version() == "new"
    run_helm(world, "uninstall", "storage")
    world.delete("osd-migrate-preflight")
    world.say("as a part of an umbrella chart, the preflight prevents the upgrade of the rest until it is disabled")


def in_its_own_ceph_image(world):
    """Checks that Helm read the image of the runner from the CephCluster."""
    spec = world.get("cronjob", "osd-migrate")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    images = [container["image"] for container in spec["initContainers"] + spec["containers"]]
    ceph = world.get("cephcluster", "rook-ceph")["spec"]["cephVersion"]["image"]
    assert images == ["lab.local/osd-migrate:dev", ceph], images
    world.say(f"Helm read the Ceph image of the runner from the CephCluster: {ceph}")


def tested(world):
    """Checks that `helm test` prints the plan, changes nothing and leaves no pod."""
    written = world.written()
    said = run_helm(world, "test", "osd-migrate")
    assert "Succeeded" in said and all(f"osd.{osd}" in said for osd in (0, 1, 5)), said
    assert world.written() == written and not world.records(), said
    assert not world.get("pod", "osd-migrate-test"), "the Pod of helm test still exists"
    world.say("helm test: prints the plan, changes nothing, leaves no pod")


def field_rules(world):
    """Checks that the API server refuses edits of the CephCluster that are never meant, and only with the value."""
    storage = lambda **fields: {"spec": {"storage": fields}}  # noqa: E731

    def edit(fields):
        words = ["patch", "cephcluster", "rook-ceph", "--dry-run=server", "--type", "merge", "-p", json.dumps(fields)]
        done = world.lab("kubectl", "-n", NAMESPACE, *words, check=False)
        return "" if done.returncode == 0 else done.stderr

    refused = [
        (storage(useAllNodes=False), "useAllNodes becomes false"),
        (storage(useAllDevices=False), "useAllDevices becomes false"),
        ({"spec": {"dataDirHostPath": "/elsewhere"}}, "dataDirHostPath changes"),
        ({"spec": {"network": {"provider": "multus"}}}, "network.provider changes"),
    ]
    allowed = [
        storage(useAllNodes=False, nodes=[{"name": "h1"}]),
        storage(useAllDevices=False, deviceFilter="^sd[bc]$"),
        storage(useAllDevices=False, useAllNodes=False, nodes=[{"name": "h1", "devices": [{"name": "sdb"}]}, {"name": "h2"}]),
        {"metadata": {"labels": {"edited": "yes"}}},
    ]
    storage_before = world.get("cephcluster", "rook-ceph")["spec"]["storage"]
    world.storage(useAllNodes=True, useAllDevices=True)
    for fields, _ in refused:
        assert not edit(fields), f"refused without the policy: {fields}"
    helm(world, "upgrade", values=[UNCHECKED, "validation.enabled=true"])
    # The API server reads a new policy within seconds.
    for fields, why in refused:
        world.until(f"{why} to be refused", 60, lambda fields=fields, why=why: why in edit(fields))
    for fields in allowed:
        assert not edit(fields), f"{fields}: {edit(fields)}"
    policy = world.get("validatingadmissionpolicy", f"osd-migrate-{NAMESPACE}")
    world.say(f"field rules: {len(refused)} edits refused, {len(allowed)} allowed; {policy.get('status', {})}")
    helm(world, "upgrade", values=[UNCHECKED])
    assert not world.get("validatingadmissionpolicy", f"osd-migrate-{NAMESPACE}"), "the policy stays"
    # The API server forgets the policy within seconds, too.
    back = {key: storage_before.get(key) for key in ("useAllNodes", "useAllDevices")}
    world.until("the policy to be gone", 60, lambda: not edit({"spec": {"dataDirHostPath": "/elsewhere"}}))
    world.storage(**back)


def can_i(world):
    """Checks with `kubectl auth can-i` that the accounts have only the rights of their Roles."""
    table = [
        ("get", "secrets/rook-ceph-mon", "yes"),
        ("get", "secrets/other", "no"),
        ("list", "secrets", "no"),
        ("create", "pods", "no"),
        ("create", "pods/exec", "no"),
        ("delete", "nodes", "no"),
        ("delete", "cephclusters.ceph.rook.io/rook-ceph", "no"),
        ("update", "cronjobs.batch", "no"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io", "no"),
        ("delete", "persistentvolumeclaims", "no"),
        ("delete", "namespaces", "no"),
        ("deletecollection", "configmaps", "no"),
        ("patch", "deployments.apps/rook-ceph-operator --subresource=scale", "no"),
        ("escalate", "roles.rbac.authorization.k8s.io", "no"),
        ("impersonate", "serviceaccounts", "no"),
    ]
    of_agents = [("get", "configmaps"), ("get", "secrets/rook-ceph-mon"), ("list", "pods"), ("create", "jobs.batch")]
    may(world, "", table)
    may(world, "-node", [(*what, "no") for what in of_agents])


def may(world, account, table):
    for verb, what, expected in table:
        question = ["auth", "can-i", verb, *what.split(), f"--as={rights.PREFIX}{account}"]
        said = world.lab("kubectl", "-n", NAMESPACE, *question, check=False).stdout.strip()
        assert said == expected, f"osd-migrate{account}: {verb} {what}: {said}"
    world.say(f"rights of osd-migrate{account}: {len(table)}, as the table says")


def restricted(world):
    """Checks that a namespace with the restricted profile admits the runner's pod, without the lab's host network."""
    world.lab("kubectl", "create", "namespace", "restricted")
    world.lab("kubectl", "label", "namespace", "restricted", "pod-security.kubernetes.io/enforce=restricted")
    world.lab("kubectl", "-n", "restricted", "create", "serviceaccount", "osd-migrate")
    spec = world.get("cronjob", "osd-migrate")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    spec["hostNetwork"], spec["dnsPolicy"] = False, "ClusterFirst"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "runner"}, "spec": spec}
    enter = lambda pod: world.lab("kubectl", "-n", "restricted", "create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod), check=False)  # noqa: E731
    let_in = enter(pod)
    assert let_in.returncode == 0, let_in.stderr
    spec["containers"][0]["securityContext"]["privileged"] = True
    spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    kept_out = enter(pod)
    assert kept_out.returncode != 0 and "violates PodSecurity" in kept_out.stderr, kept_out
    world.lab("kubectl", "delete", "namespace", "restricted", "--wait=false")
    world.say("the runner's pod meets the restricted profile")


def preflight_refuses(world):
    revision = helm_revision(world)
    said = helm(world, "upgrade", code=1)
    assert "pre-upgrade hooks failed" in said and world.result("osd-migrate-preflight") == ("Failed", 3), said
    for word in ["3 legacy OSDs", "osd.0 on h1", "osd.1 on h2", "osd.5 on h3", "create job --from=cronjob/osd-migrate", UNCHECKED]:
        assert word in said, f"`{word}` is not in what Helm prints:\n{said}"
    left = [kind for kind in ("serviceaccount", "role", "rolebinding") if world.get(kind, "osd-migrate-preflight")]
    assert helm_revision(world) == revision + 1 and not world.closed()
    world.delete("osd-migrate-preflight")
    # Create again what Helm has deleted of it.
    hooks = [text for text in run_helm(world, "get", "hooks", "osd-migrate").split("\n---\n") if "kind: Job" not in text]
    world.lab("kubectl", "apply", "-f", "-", stdin="\n---\n".join(hooks))
    writes = [("create", "jobs.batch"), ("patch", "cephclusters.ceph.rook.io"), ("update", "configmaps"), ("delete", "pods"), ("list", "secrets")]
    may(world, "-preflight", [("get", "configmaps", "yes"), ("get", "secrets/rook-ceph-mon", "yes"), *((*what, "no") for what in writes)])
    world.say(f"preflight: refused, and names all three OSDs; objects of its account that are left: {left}")


def helm_revision(world):
    secrets = [item["metadata"]["labels"] for item in world.get("secrets", selector="owner=helm,name=osd-migrate")["items"]]
    return max(int(labels["version"]) for labels in secrets)


def stopped(world, osd):
    return "stop" in world.milestones(osd)


def started_again(world, job):
    """Checks that the hook succeeds if its first pod was lost after it had created the Job."""
    hooks = run_helm(world, "get", "hooks", "osd-migrate").split("\n---\n")
    [start] = [hook for hook in hooks if "kind: Job" in hook and "osd-migrate.io/part: start" in hook]
    world.lab("kubectl", "create", "-f", "-", stdin=start)
    assert world.wait_for("osd-migrate-start", 60) == ("Complete", 0), world.log("osd-migrate-start")
    assert f"Job {job} of this revision already exists" in world.log("osd-migrate-start")
    world.delete("osd-migrate-start")
    no = [("delete", "jobs.batch"), ("get", "jobs.batch/other"), ("update", "cronjobs.batch/osd-migrate")]
    no += [("get", "secrets/rook-ceph-mon"), ("get", "configmaps"), ("list", "pods")]
    yes = [("create", "jobs.batch"), ("get", f"jobs.batch/{job}"), ("get", "cronjobs.batch/osd-migrate")]
    may(world, "-start", [(*what, "yes") for what in yes] + [(*what, "no") for what in no])


def by_upgrade(world):
    """Starts a run with Helm: the hook returns, an upgrade does not disturb the run, an uninstall is refused."""
    began = time.monotonic()
    helm(world, "upgrade", values=["start.enabled=true", CONFIRMED, UNCHECKED, "run.select={osd.0}"])
    job = f"osd-migrate-r{helm_revision(world)}"
    assert world.result(job) is None, "Helm waited for the run"
    world.say(f"helm returned after {time.monotonic() - began:.1f} s, {job} is running")
    world.until("osd.0 to be stopped", 90, lambda: stopped(world, 0))
    uid = world.get("job", job)["metadata"]["uid"]
    pods = [pod["metadata"]["uid"] for pod in world.get("pods", selector=f"batch.kubernetes.io/job-name={job}")["items"]]
    refused = helm(world, "uninstall", code=1)
    assert "osd-migrate-uninstall" in refused and world.get("cronjob", "osd-migrate"), refused
    assert "in progress: osd.0" in refused and f"osd-migrate -n {NAMESPACE} cancel" in refused, f"Helm prints no reason: {refused}"
    world.delete("osd-migrate-uninstall")
    # Helm now considers the release partly uninstalled, but nothing of it was deleted.
    run_helm(world, "rollback", "osd-migrate", str(helm_revision(world)))
    helm(world, "upgrade", values=[CONFIRMED, UNCHECKED, "run.select={osd.1}"])
    assert world.wait_for(job, 300) == ("Complete", 0), world.log(job)
    there = world.get("job", job)
    now = [pod["metadata"]["uid"] for pod in world.get("pods", selector=f"batch.kubernetes.io/job-name={job}")["items"]]
    assert there["metadata"]["uid"] == uid and now == pods, f"the run was disturbed: pods {pods}, then {now}"
    assert [record["osd"] for record in world.closed()] == [0], world.closed()
    world.say("helm upgrade: osd.0 is migrated, an upgrade meanwhile did not disturb the run")


def by_kubectl(world):
    """Starts a run of an approved plan with kubectl, with a Ceph user that was created by hand, and without Rook's Secret."""
    own_user.by_hand(world, SECRET)
    approved = laptop.approve(world, "--select", "osd.1")
    helm(world, "upgrade", values=[f"run.approve={approved}", "run.clusterStatus=true", UNCHECKED, f"ceph.secretName={SECRET}"])
    for secret, expected in (("rook-ceph-mon", "no"), (SECRET, "yes")):
        said = world.lab("kubectl", "-n", NAMESPACE, "auth", "can-i", "get", f"secrets/{secret}", f"--as={rights.PREFIX}", check=False)
        assert said.stdout.strip() == expected, (secret, said)
    written = world.written()
    job = world.start("by-hand")
    drained(world, job)
    watched = laptop.Watched(world)
    world.until("the status of the CephCluster", 120, lambda: watched.frame() and cluster_status(world).get("phase") == "Progressing")
    shown = cluster_status(world)
    assert shown["message"].startswith("osd-migrate: ") and shown["storage"]["osd"]["migrationStatus"]["pending"] > 0, shown
    world.until("the OSD to be migrated", 300, lambda: watched.frame() and world.result(job))
    watched.end()
    assert any("osd.1" in frame for frame in watched.frames), watched.frames
    assert world.result(job) == ("Complete", 0), world.log(job)
    left = cluster_status(world)
    assert "phase" not in left and "migrationStatus" not in left["storage"]["osd"] and left["storage"]["osd"]["storeType"], left
    assert not world.get("job", job)["status"].get("failed"), "a pod that was drained counts as failed"
    own_user.expect_acts(world, world.written()[len(written) :], created=0)
    events(world, "Job", job, 1)  # now, because the CronJob retains only its last three Jobs
    not_allowed(world)
    assert [record["osd"] for record in world.closed()] == [0, 1], world.closed()
    world.say("kubectl create job: osd.1 is migrated")


def cluster_status(world):
    return world.get("cephcluster", "rook-ceph").get("status", {})


def drained(world, job):
    """Evicts the runner while an OSD is stopped: the Job creates another pod, and does not count a failure."""
    world.until("osd.1 to be stopped", 120, lambda: stopped(world, 1))
    pods = lambda: world.list("pods", selector=f"batch.kubernetes.io/job-name={job}")
    [first] = [pod["metadata"]["name"] for pod in pods()]
    said = world.evict(first)
    assert not said, said
    world.until("the next pod", 60, lambda: [pod for pod in pods() if pod["metadata"]["name"] != first])
    world.say("drained while osd.1 is stopped: the next pod continues")


def not_allowed(world):
    """Checks that the message about a missing capability of the Ceph user has a command that grants it."""
    world.lab("on", "adm", "ceph", "auth", "caps", own_user.USER, "mon", "allow r")
    job = world.start("not-allowed")
    assert world.wait_for(job, 60) == ("Failed", 10), world.log(job)
    said = [line for line in world.log(job).splitlines() if f"{own_user.USER} may not run `ceph " in line]
    assert said, world.log(job)
    command = re.sub(r" \[[a-z-]+\]$", "", said[-1].split("ceph auth caps ")[1])  # without the code, which ends the message
    world.lab("on", "adm", "sh", "-c", f"ceph auth caps {command}")
    job = world.start("allowed")
    assert world.wait_for(job, 60) == ("Complete", 0), world.log(job)
    world.say("a user without its capabilities: exit 10, with the command that fixes it; after the command: exit 0")


def scheduled(world):
    """Returns the Jobs that the schedule created, the oldest first."""
    jobs = world.list("jobs")
    of = [job for job in jobs if "batch.kubernetes.io/cronjob-scheduled-timestamp" in job["metadata"].get("annotations", {})]
    return [job["metadata"]["name"] for job in sorted(of, key=lambda job: job["metadata"]["creationTimestamp"])]


def operator_elsewhere(world):
    """Checks that a run detects a running Rook operator in a namespace that it does not observe."""
    world.lab("kubectl", "create", "namespace", ELSEWHERE)
    operator = rook.Rook(world, "1.14.3", namespace=ELSEWHERE)
    operator.appear()
    operator.check()
    helm(world, "upgrade", values=[CONFIRMED, UNCHECKED])
    job = world.start("wrong-namespace")
    world.until("the run to report it", 60, lambda: "(value operatorNamespace)" in world.log(job))
    assert world.result(job) is None and not world.records(), world.log(job)
    if world.full:
        refused = helm(world, "uninstall", code=1)
        assert "a run is in progress" in refused, refused
        world.delete("osd-migrate-uninstall")
        run_helm(world, "rollback", "osd-migrate", str(helm_revision(world)))
    world.delete(job)
    world.until("its pods to be gone", 60, lambda: not world.get("pods", selector=f"batch.kubernetes.io/job-name={job}"))
    world.say(f"an operator in {ELSEWHERE}, and no value that names it: no OSD is recorded")
    return operator


def by_schedule_unconfirmed(world):
    """Starts a run by the schedule, not confirmed: it reports, and exits with 0."""
    report = world.until("the schedule to start a run", 90, lambda: scheduled(world))[0]  # the tests before shorten this wait
    helm(world, "upgrade", values=[UNCHECKED])
    for job in scheduled(world):
        assert world.wait_for(job, 60) == ("Complete", 0), world.log(job)
    log = world.log(report)
    assert "not confirmed" in log and "osd.5" in log and not world.closed(), log
    reported = [(e["type"], e["reason"]) for e in own_events(world, "Job", report)]
    assert reported == [("Warning", "MigrationFinished")], reported  # nobody reads the log of a scheduled run
    world.say("the schedule, not confirmed: reported, exit 0")


def by_schedule(world):
    """Starts a run by the schedule, confirmed: it migrates, with Rook's operator scaled to 0 in its namespace."""
    operator = operator_elsewhere(world)
    known = scheduled(world)
    helm(world, "upgrade", values=["schedule=* * * * *", CONFIRMED, UNCHECKED, *OLD_ROOK])
    world.lab("on", "adm", "ceph", "auth", "rm", BOOTSTRAP)  # as Rook 1.19 and later does
    confirmed = world.until("the schedule to start a confirmed run", 90, lambda: [name for name in scheduled(world) if name not in known])[0]
    world.until("osd.5 to be stopped", 120, lambda: stopped(world, 5))
    assert operator.replicas() == 0, "the operator is running"
    helm(world, "upgrade", values=[UNCHECKED, *OLD_ROOK])  # no second run while this one is checked
    assert world.wait_for(confirmed, 300) == ("Complete", 0), world.log(confirmed)
    assert [record["osd"] for record in world.closed()] == [0, 1, 5], world.closed()
    assert f"created the user {BOOTSTRAP}" in world.log(confirmed) and not own_user.is_there(world, BOOTSTRAP), world.log(confirmed)
    for job in scheduled(world):
        world.delete(job)
    assert operator.replicas() == 1, "the operator was not scaled back"
    operator.vanish()
    world.say("the schedule, confirmed: osd.5 is migrated, the operator at 0 meanwhile")


def own_events(world, kind, name):
    """Returns the events of osd-migrate about an object, the oldest first."""
    about = lambda e: (e["involvedObject"].get("kind"), e["involvedObject"]["name"], e.get("reportingComponent"))  # noqa: E731
    found = [e for e in world.get("events")["items"] if about(e) == (kind, name, "osd-migrate.io/runner")]
    return sorted(found, key=lambda e: e["eventTime"])


def events(world, kind, name, times):
    """Checks that `kubectl describe` shows the progress of each OSD. (A run with nothing to do finishes, too.)"""
    story = ["OsdRecorded", "OsdStopped", "OsdDestroyed", "OsdPrepared", "OsdMigrated"]
    found = own_events(world, kind, name)
    reasons = [e["reason"] for e in found if e["reason"] != "MigrationProgressed"]  # of a runner that continues a record
    assert all(reasons.count(reason) == times for reason in story), (kind, reasons)
    begins = reasons.index(story[0])  # a report by schedule precedes it
    assert reasons[begins : begins + len(story) + 1] == [*story, "MigrationFinished"], (kind, reasons)
    described = world.kubectl("describe", kind.lower(), name)
    assert all(f" {e['message'][:40]}" in described for e in found), described
    world.say(f"events of the {kind}: {' '.join(story)} {times} times, and MigrationFinished")


def preflight_passes(world):
    """Checks that the preflight observes Rook as a run does, and passes if a person's label fences Rook."""
    operator = rook.Rook(world, "1.20.1", namespace=ELSEWHERE)
    operator.appear()
    world.kubectl("label", "cephcluster", "rook-ceph", f"{rook.FENCE}=by-its-owner")
    said = helm(world, "upgrade", values=OLD_ROOK)
    assert "no legacy OSDs: osd-migrate does not block an upgrade" in said, f"Helm prints no result: {said}"
    world.kubectl("label", "cephcluster", "rook-ceph", f"{rook.FENCE}-")
    operator.vanish()
    assert not world.get("job", "osd-migrate-preflight"), "a hook that succeeded still exists"
    for kind in ("serviceaccount", "role", "rolebinding"):
        assert not world.get(kind, "osd-migrate-preflight"), f"the preflight's {kind} still exists"
    world.say("preflight: passes, and leaves nothing behind")


def gone(world):
    said = helm(world, "uninstall")
    assert "uninstalled" in said, said
    time.sleep(2)
    kinds = "cronjobs,jobs,serviceaccounts,roles,rolebindings,leases,configmaps,secrets"
    left = [f"{item['kind']}/{item['metadata']['name']}" for item in world.get(kinds)["items"]]
    left = sorted(name for name in left if "osd-migrate" in name)
    allowed = r"ConfigMap/osd-migrate-(ledger|status|control|plan-[0-9a-f]{16}|history-\d+)|Lease/osd-migrate"
    assert all(re.fullmatch(allowed, name) for name in left), left
    cluster = world.lab("kubectl", "get", "clusterroles,clusterrolebindings", "-o", "name").stdout
    assert "osd-migrate" not in cluster, cluster
    world.say(f"uninstalled; left for a person to delete: {', '.join(left)}")


def once_more(world):
    """Installs again, with a run at once, and deletes the CephCluster before the uninstall."""
    helm(world, "install", values=["start.enabled=true", "run.select={osd.0}"])
    job = f"osd-migrate-r{helm_revision(world)}"
    started_again(world, job)  # of revision 1, like the Role that `forbidden` renders
    assert world.wait_for(job, 60) == ("Complete", 0), world.log(job)
    assert not own_events(world, "Job", job), "a run that found nothing to do published events"
    image = world.get("cephcluster", "rook-ceph")["spec"]["cephVersion"]["image"]
    world.kubectl("delete", "cephcluster", "rook-ceph")
    said = helm(world, "upgrade", code=1)
    assert f"namespace {NAMESPACE} has no CephCluster that Helm can see" in said, said
    said = helm(world, "upgrade", values=[f"cephImage={image}"])
    assert f"namespace {NAMESPACE} has no CephCluster" in said, said
    helm(world, "uninstall")
    world.say(f"installed again: {job} found nothing to do; uninstalled after the CephCluster was deleted")


def forbidden(world):
    """Checks that no request of the accounts was refused; `check_rights` checks that no right is unused."""
    # The scenario `beside` scales an operator in the cluster's own namespace.
    for values in ([], ["run.clusterStatus=true"], OLD_ROOK, *([OLD_ROOK[1:]] if world.full else [])):
        given = [word for value in ("image.repository=any", "cephImage=any:1", "start.enabled=true", *values) for word in ("--set", value)]
        manifests = run_helm(world, "template", "osd-migrate", CHART, "--kube-version", "1.34.0", "--is-upgrade", *given)
        type(world).granted |= rights.granted(world, manifests)
    done, refused = rights.asked(world)
    needless = rights.unused(type(world).granted, done, world.full)
    assert not [right for right in needless if right[0] in ("osd-migrate-preflight", "osd-migrate-start")], needless
    accounts = {account for account, *_ in done}
    assert accounts == {"osd-migrate", "osd-migrate-node", "osd-migrate-preflight", "osd-migrate-start"}, accounts
    assert not refused, refused
    world.say(f"{len(done)} different requests of {len(accounts)} accounts, none was refused")
