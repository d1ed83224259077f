"""The chart by a real Helm, its hooks really run, and the three doors: each brings one OSD to the declared storage. What the
accounts may and may not do; what an uninstall refuses, and what it leaves."""
import glob
import json
import os
import re
import time

from . import NAMESPACE, own_user, rights, rook
from .world import HERE

CHART = os.path.join(HERE, "..", "..", "charts", "osd-migrate")
OF_THE_LAB = ["image.repository=lab.local/osd-migrate", "image.tag=dev", "hostNetwork=true"]
CONFIRMED = "run.confirmation=yes-really-migrate-osds"
UNCHECKED = "preflight.enabled=false"
SECRET = "ceph-of-the-owner"
ELSEWHERE = "rook-operator"  # namespace of Rook's operator, where it is not the cluster's
BESIDE_OLD = [f"operatorNamespace={ELSEWHERE}", "run.scaleOperator=true"]
BOOTSTRAP = "client.bootstrap-osd"


def run(world):
    world.up(manifests=False)
    world.lab("write", "100")
    world.adorn()
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()

    umbrella(world)
    helm(world, "install")
    assert world.get("cronjob", "osd-migrate")["spec"]["suspend"], "a run may start by itself"
    helm(world, "upgrade", values=["schedule=* * * * *", UNCHECKED])
    can_i(world)
    restricted(world)
    by_schedule_unconfirmed(world)
    preflight_refuses(world)
    by_upgrade(world)
    by_kubectl(world)
    by_schedule(world)
    world.expect_migrated(before, fsids, [0, 1, 5])
    world.expect_calm(epoch)
    events(world, "CephCluster", "rook-ceph", 3)
    preflight_passes(world)
    gone(world)
    once_more(world)
    forbidden(world)


def helm(world, verb, values=(), code=0):
    """`helm VERB` of the release; for install and upgrade with what the lab needs, and these values. What it printed."""
    began, words = time.monotonic(), [verb, "osd-migrate"]
    if verb != "uninstall":
        words += [CHART, *(word for value in (*OF_THE_LAB, *values) for word in ("--set", value))]
    text = run_helm(world, *words, code=code)
    world.say(f"helm {verb} {' '.join(values)}: {'refused' if code else 'done'} in {time.monotonic() - began:.1f} s")
    return text


def helm_binary():
    """The one that build/install made, or another one to try: LAB_HELM=/path/of/helm."""
    found = sorted(glob.glob(os.path.expanduser("~/.cache/osd-migrate/helm-*/helm")))
    assert found, "no Helm: build/install helm"
    return os.environ.get("LAB_HELM", found[-1])


def run_helm(world, *words, code=0):
    done = world.lab("net", "env", f"HELM_CACHE_HOME={world.folder()}/helm", helm_binary(), "-n", NAMESPACE, *words, check=False)
    text = done.stdout + done.stderr
    assert (done.returncode != 0) == (code != 0), f"helm {' '.join(words)}: exit {done.returncode}\n{text[-3000:]}"
    return text


def umbrella(world):
    """As a part of a chart of charts: its preflight guards what else is in it, here a stand-in for Rook's own chart."""
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
    assert version() == "old", "the upgrade went on"
    run_helm(world, "upgrade", "storage", folder, *values, "--set", "rook=new,osd-migrate.preflight.enabled=false")
    assert version() == "new"
    run_helm(world, "uninstall", "storage")
    world.delete("osd-migrate-preflight")
    world.say("as a part of an umbrella chart it keeps the rest from being upgraded, until it is told not to")


def can_i(world):
    """`kubectl auth can-i` of what must not be: whoever has the token has no more than the Role says."""
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
    """The runner's pod, as the chart has it without the lab's host network, is let in where the restricted profile is enforced."""
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
    # What Helm has deleted of it, made once more.
    hooks = [text for text in run_helm(world, "get", "hooks", "osd-migrate").split("\n---\n") if "kind: Job" not in text]
    world.lab("kubectl", "apply", "-f", "-", stdin="\n---\n".join(hooks))
    writes = [("create", "jobs.batch"), ("patch", "cephclusters.ceph.rook.io"), ("update", "configmaps"), ("delete", "pods"), ("list", "secrets")]
    may(world, "-preflight", [("get", "configmaps", "yes"), ("get", "secrets/rook-ceph-mon", "yes"), *((*what, "no") for what in writes)])
    world.say(f"preflight: refused, and names all three; of its account is left: {left}")


def helm_revision(world):
    secrets = [item["metadata"]["labels"] for item in world.get("secrets", "-l", "owner=helm,name=osd-migrate")["items"]]
    return max(int(labels["version"]) for labels in secrets)


def stopped(world, osd):
    return any(word == "stop" for word, _ in world.records().get(osd, {"milestones": []})["milestones"])


def started_again(world, job):
    """The hook's pod was lost after it had made the Job: the next one finds it, and the upgrade goes through."""
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
    """Door: Helm. The hook makes the Job and returns; an upgrade meanwhile leaves it running; an uninstall is refused."""
    began = time.monotonic()
    helm(world, "upgrade", values=["start.enabled=true", CONFIRMED, UNCHECKED, "run.select={osd.0}"])
    job = f"osd-migrate-r{helm_revision(world)}"
    assert world.result(job) is None, "Helm waited for the run"
    world.say(f"helm returned after {time.monotonic() - began:.1f} s, {job} runs")
    world.until("osd.0 to be stopped", 90, lambda: stopped(world, 0))
    uid = world.get("job", job)["metadata"]["uid"]
    pods = [pod["metadata"]["uid"] for pod in world.get("pods", "-l", f"batch.kubernetes.io/job-name={job}")["items"]]
    refused = helm(world, "uninstall", code=1)
    assert "osd-migrate-uninstall" in refused and world.get("cronjob", "osd-migrate"), refused
    assert "in progress: osd.0" in refused and f"osd-migrate -n {NAMESPACE} cancel" in refused, f"Helm does not say why: {refused}"
    world.delete("osd-migrate-uninstall")
    # Helm takes it for half uninstalled from now on; nothing of it was deleted.
    run_helm(world, "rollback", "osd-migrate", str(helm_revision(world)))
    helm(world, "upgrade", values=[CONFIRMED, UNCHECKED, "run.select={osd.1}"])
    assert world.wait_for(job, 300) == ("Complete", 0), world.log(job)
    there = world.get("job", job)
    now = [pod["metadata"]["uid"] for pod in world.get("pods", "-l", f"batch.kubernetes.io/job-name={job}")["items"]]
    assert there["metadata"]["uid"] == uid and now == pods, f"the run was disturbed: pods {pods}, then {now}"
    assert [record["osd"] for record in world.closed()] == [0], world.closed()
    world.say("door 1, helm upgrade: osd.0 is migrated, the upgrade in between left the run alone")


def by_kubectl(world):
    """Door: kubectl. With a user that its owner made, and Rook's Secret out of reach."""
    own_user.by_hand(world, SECRET)
    helm(world, "upgrade", values=[CONFIRMED, UNCHECKED, "run.select={osd.1}", f"ceph.secretName={SECRET}"])
    for secret, expected in (("rook-ceph-mon", "no"), (SECRET, "yes")):
        said = world.lab("kubectl", "-n", NAMESPACE, "auth", "can-i", "get", f"secrets/{secret}", f"--as={rights.PREFIX}", check=False)
        assert said.stdout.strip() == expected, (secret, said)
    written = world.written()
    job = world.start("by-hand")
    drained(world, job)
    assert world.wait_for(job, 300) == ("Complete", 0), world.log(job)
    assert not world.get("job", job)["status"].get("failed"), "a pod that was drained counts as failed"
    own_user.expect_acts(world, world.written()[len(written) :], made=0)
    events(world, "Job", job, 1)  # the CronJob keeps its last three only
    not_allowed(world)
    assert [record["osd"] for record in world.closed()] == [0, 1], world.closed()
    world.say("door 2, kubectl create job: osd.1 is migrated")


def drained(world, job):
    """The runner's node is drained with an OSD stopped: the Job makes the next pod, and does not count the one that went."""
    world.until("osd.1 to be stopped", 120, lambda: stopped(world, 1))
    pods = lambda: (world.get("pods", "-l", f"batch.kubernetes.io/job-name={job}") or {"items": []})["items"]
    [first] = [pod["metadata"]["name"] for pod in pods()]
    said = world.evict(first)
    assert not said, said
    world.until("the next pod", 60, lambda: [pod for pod in pods() if pod["metadata"]["name"] != first])
    world.say("drained with osd.1 stopped: the next pod goes on")


def not_allowed(world):
    """A user that lacks a capability: named, with the command that gives it, and that command does."""
    world.lab("on", "adm", "ceph", "auth", "caps", own_user.USER, "mon", "allow r")
    job = world.start("not-allowed")
    assert world.wait_for(job, 60) == ("Failed", 10), world.log(job)
    said = [line for line in world.log(job).splitlines() if f"{own_user.USER} may not run `ceph " in line]
    assert said, world.log(job)
    command = re.sub(r" \[[a-z-]+\]$", "", said[-1].split("ceph auth caps ")[1])  # without the code, which ends the message
    world.lab("on", "adm", "sh", "-c", f"ceph auth caps {command}")
    job = world.start("allowed")
    assert world.wait_for(job, 60) == ("Complete", 0), world.log(job)
    world.say("a user without its capabilities: exit 10, with the command that mends it, typed: exit 0")


def scheduled(world):
    """Jobs that the schedule made, the oldest first."""
    jobs = (world.get("jobs") or {"items": []})["items"]
    of = [job for job in jobs if "batch.kubernetes.io/cronjob-scheduled-timestamp" in job["metadata"].get("annotations", {})]
    return [job["metadata"]["name"] for job in sorted(of, key=lambda job: job["metadata"]["creationTimestamp"])]


def operator_elsewhere(world):
    """Rook's operator is in a namespace where the run does not look: that it works for this cluster is seen all the same."""
    world.lab("kubectl", "create", "namespace", ELSEWHERE)
    operator = rook.Rook(world, "1.14.3", namespace=ELSEWHERE)
    operator.appear()
    operator.check()
    helm(world, "upgrade", values=[CONFIRMED, UNCHECKED])
    job = world.start("looks-here")
    world.until("it to be missed", 60, lambda: "(value operatorNamespace)" in world.log(job))
    assert world.result(job) is None and not world.records(), world.log(job)
    if world.full:
        refused = helm(world, "uninstall", code=1)
        assert "a run is in progress" in refused, refused
        world.delete("osd-migrate-uninstall")
        run_helm(world, "rollback", "osd-migrate", str(helm_revision(world)))
    world.delete(job)
    world.until("its pods to be gone", 60, lambda: not world.get("pods", "-l", f"batch.kubernetes.io/job-name={job}"))
    world.say(f"an operator in {ELSEWHERE}, and no word of that: nothing is begun")
    return operator


def by_schedule_unconfirmed(world):
    """Door: the schedule, not confirmed: it reports, and ends well. What is looked at meanwhile shortens the wait for its minute."""
    report = world.until("the schedule to start a run", 90, lambda: scheduled(world))[0]
    helm(world, "upgrade", values=[UNCHECKED])
    for job in scheduled(world):
        assert world.wait_for(job, 60) == ("Complete", 0), world.log(job)
    log = world.log(report)
    assert "not confirmed" in log and "osd.5" in log and not world.closed(), log
    told = [(e["type"], e["reason"]) for e in ours(world, "Job", report)]
    assert told == [("Warning", "MigrationFinished")], told  # who made the schedule reads no logs
    world.say("door 3, the schedule, not confirmed: reported, exit 0")


def by_schedule(world):
    """Door: the schedule, confirmed: it mends, Rook's operator set aside in its namespace."""
    operator = operator_elsewhere(world)
    known = scheduled(world)
    helm(world, "upgrade", values=["schedule=* * * * *", CONFIRMED, UNCHECKED, *BESIDE_OLD])
    world.lab("on", "adm", "ceph", "auth", "rm", BOOTSTRAP)  # as Rook 1.19 and later does
    mend = world.until("the schedule to start a confirmed run", 90, lambda: [name for name in scheduled(world) if name not in known])[0]
    world.until("osd.5 to be stopped", 120, lambda: stopped(world, 5))
    assert operator.replicas() == 0, "the operator runs beside it"
    helm(world, "upgrade", values=[UNCHECKED, *BESIDE_OLD])  # no second tick while this is looked at
    assert world.wait_for(mend, 300) == ("Complete", 0), world.log(mend)
    assert [record["osd"] for record in world.closed()] == [0, 1, 5], world.closed()
    assert f"created the user {BOOTSTRAP}" in world.log(mend) and not own_user.is_there(world, BOOTSTRAP), world.log(mend)
    for job in scheduled(world):
        world.delete(job)
    assert operator.replicas() == 1, "the operator was not put back"
    operator.vanish()
    world.say("door 3, the schedule, confirmed: osd.5 is migrated, the operator at 0 meanwhile")


def ours(world, kind, name):
    """The events that we published about something, the oldest first."""
    about = lambda e: (e["involvedObject"].get("kind"), e["involvedObject"]["name"], e.get("reportingComponent"))  # noqa: E731
    found = [e for e in world.get("events")["items"] if about(e) == (kind, name, "osd-migrate.io/runner")]
    return sorted(found, key=lambda e: e["eventTime"])


def events(world, kind, name, times):
    """`kubectl describe` tells what became of each OSD. (A run that finds nothing to do finishes, too.)"""
    story = ["OsdRecorded", "OsdStopped", "OsdDestroyed", "OsdPrepared", "OsdMigrated"]
    found = ours(world, kind, name)
    reasons = [e["reason"] for e in found if e["reason"] != "MigrationProgressed"]  # told by a runner that goes on with what stands
    assert all(reasons.count(reason) == times for reason in story), (kind, reasons)
    begins = reasons.index(story[0])  # a report by schedule came before
    assert reasons[begins : begins + len(story) + 1] == [*story, "MigrationFinished"], (kind, reasons)
    told = world.kubectl("describe", kind.lower(), name)
    assert all(f" {e['message'][:40]}" in told for e in found), told
    world.say(f"events of the {kind}: {' '.join(story)} {times} times, and MigrationFinished")


def preflight_passes(world):
    """Beside a Rook that runs and that somebody keeps off its CephCluster: it asks about Rook what a run would ask."""
    operator = rook.Rook(world, "1.20.1", namespace=ELSEWHERE)
    operator.appear()
    world.kubectl("label", "cephcluster", "rook-ceph", f"{rook.FENCE}=by-its-owner")
    said = helm(world, "upgrade", values=BESIDE_OLD)
    assert "no legacy OSDs: osd-migrate does not block an upgrade" in said, f"Helm does not say what the preflight found: {said}"
    world.kubectl("label", "cephcluster", "rook-ceph", f"{rook.FENCE}-")
    operator.vanish()
    assert not world.get("job", "osd-migrate-preflight"), "a hook that succeeded is still there"
    for kind in ("serviceaccount", "role", "rolebinding"):
        assert not world.get(kind, "osd-migrate-preflight"), f"the preflight's {kind} is still there"
    world.say("preflight: passes, and leaves nothing")


def gone(world):
    said = helm(world, "uninstall")
    assert "uninstalled" in said, said
    time.sleep(2)
    kinds = "cronjobs,jobs,serviceaccounts,roles,rolebindings,leases,configmaps,secrets"
    left = [f"{item['kind']}/{item['metadata']['name']}" for item in world.get(kinds)["items"]]
    left = sorted(name for name in left if "osd-migrate" in name)
    allowed = r"ConfigMap/osd-migrate-(ledger|status|control|history-\d+)|Lease/osd-migrate"
    assert all(re.fullmatch(allowed, name) for name in left), left
    cluster = world.lab("kubectl", "get", "clusterroles,clusterrolebindings", "-o", "name").stdout
    assert "osd-migrate" not in cluster, cluster
    world.say(f"uninstalled; for a person to delete: {', '.join(left)}")


def once_more(world):
    """Installed anew, with a run at once; then the CephCluster goes first, and the release after it: nobody is left to ask."""
    helm(world, "install", values=["start.enabled=true", "run.select={osd.0}"])
    job = f"osd-migrate-r{helm_revision(world)}"
    started_again(world, job)  # of revision 1, as the Role is that `forbidden` renders
    assert world.wait_for(job, 60) == ("Complete", 0), world.log(job)
    assert not ours(world, "Job", job), "a run that found nothing to do is not quiet"
    world.kubectl("delete", "cephcluster", "rook-ceph")
    said = helm(world, "upgrade")
    assert f"namespace {NAMESPACE} has no CephCluster" in said, said
    helm(world, "uninstall")
    world.say(f"installed anew: {job} found nothing to do; uninstalled after the CephCluster")


def forbidden(world):
    """Nothing that an account of ours asked for was refused: the Roles are large enough. That they are not too large is seen
    after all scenarios."""
    # An operator in the cluster's own namespace is scaled by the scenario beside.
    for values in ([], BESIDE_OLD, *([BESIDE_OLD[1:]] if world.full else [])):
        given = [word for value in ("start.enabled=true", *values) for word in ("--set", value)]
        manifests = run_helm(world, "template", "osd-migrate", CHART, "--kube-version", "1.34.0", "--is-upgrade", *given)
        type(world).granted |= rights.granted(world, manifests)
    done, refused = rights.asked(world)
    needless = rights.unused(type(world).granted, done, world.full)
    assert not [right for right in needless if right[0] in ("osd-migrate-preflight", "osd-migrate-start")], needless
    accounts = {account for account, *_ in done}
    assert accounts == {"osd-migrate", "osd-migrate-node", "osd-migrate-preflight", "osd-migrate-start"}, accounts
    assert not refused, refused
    world.say(f"{len(done)} different requests of our {len(accounts)} accounts, none was refused")
