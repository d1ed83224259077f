"""Each alert of the chart fires in a real Prometheus within four minutes of its real cause, and ends with the cause.

A run whose Job is deleted while its OSD is down; the next run, whose ledger was deleted, and which halts in its first
iteration; a disk that disappears before its OSD is rebuilt; a backfill that `ceph osd set norecover` stops. No rule is
changed: none has `for`, and 180 s without a run are short enough. Only the intervals of Prometheus are shorter than
usual. The program itself calls a backfill stalled after 10 minutes without progress, so the scenario takes a quarter of
an hour. It also writes up to 4 GiB an OSD, and prints the time left that `status` showed after a fifth of a backfill
beside the time that the rest took.
"""
import datetime
import json
import shutil
import subprocess
import time

from . import chart, eta, faults
from .prometheus import Prometheus, create_crds, install
from .world import LAB

OSDS = 3  # one on each host: each has a replica of every object
LAYOUT = ",".join(f"{osd}=bluestore-dev" for osd in range(OSDS))
KILLED, BAD, LAST = range(OSDS)
VALUES = [
    "metrics.enabled=true",
    "metrics.podMonitor.enabled=true",
    "metrics.alerts.enabled=true",
    "run.agentRetryPause=1s",
    "preflight.enabled=false",
]
# Of a run that halts: a person must act.
HALTED = ("Failed", 10)
STALLS_AFTER = 600  # seconds: STALLS_AFTER of the program


def run(world):
    state_metrics = install()
    world.up(layout=LAYOUT, osds=OSDS, manifests=False)
    create_crds(world)
    chart.helm(world, "install", values=VALUES)
    world.lab("write", "100")
    before, fsids = world.shape(), world.fsids()
    prometheus = Prometheus(world, state_metrics)
    world.say(f"a Prometheus evaluates {len(prometheus.alerts)} alerts of the chart: {', '.join(prometheus.alerts)}")
    run_is_deleted(world, prometheus)
    ledger_is_deleted(world, prometheus)
    disk_disappears(world, prometheus)
    disk_is_back(world, prometheus)
    backfill_stalls(world, prometheus)
    assert not prometheus.alerts, f"no cause was shown for {prometheus.alerts}"
    prometheus.expect_silence()
    world.expect_migrated(before, fsids, range(OSDS))


def start(world, *osds):
    """Starts a run as a person does, and returns the name of its Job."""
    words = ["run", "--confirm", "yes-really-migrate-osds", "--select", ",".join(f"osd.{osd}" for osd in osds)]
    job = world.command(*words, "--detach").strip()
    world.jobs.append(job)
    return job


def run_is_deleted(world, prometheus):
    """Deletes the Job of a run while its OSD is down, and temporary changes are in place."""
    job = start(world, KILLED)
    faults.block_before_rebuild(world, KILLED)
    prometheus.until("osd_migrate_osds_down == 1")
    prometheus.expect_silence()
    since = time.monotonic()
    world.delete(job)
    faults.unblock_pods(world)
    writes = write(world)
    prometheus.fires("OsdMigrateNobodyAtWork", since, f"Job {job} was deleted")
    left = prometheus.fires("OsdMigrateChangesLeft", since, f"Job {job} was deleted", change="flags")
    world.say(f"temporary changes that are left: {', '.join(one['labels']['change'] for one in left)}")
    assert writes.wait() == 0, writes.returncode
    world.background.remove(writes)


def write(world):
    """Starts to write as much as the disks of the lab and the file system with their images allow."""
    free = shutil.disk_usage(world.folder()).free / (1 << 30)
    # The images are sparse. An OSD that was rebuilt writes to other parts of its own.
    gib = min(4, (free - 8) / (1.5 * OSDS))
    assert gib > 0.25, f"only {free:.0f} GiB are free"
    world.say(f"writes {gib:.1f} GiB an OSD")
    words = ["-b", str(4 << 20), "-t", "8", "--max-objects", str(int(gib * 256)), "--no-cleanup"]
    bench = [LAB, "on", "adm", "rados", "-p", "labpool", "bench", "600", "write", *words]
    world.background.append(subprocess.Popen(bench, stdout=subprocess.DEVNULL))
    return world.background[-1]


def ledger_is_deleted(world, prometheus):
    """Deletes the ledger: the next run halts before Prometheus has scraped it, and knows nothing about the OSD."""
    ledger = world.get("configmap", "osd-migrate-ledger")
    world.kubectl("delete", "configmap", "osd-migrate-ledger")
    job = start(world, KILLED)
    world.until("the halt", 60, lambda: "[ledger-lost]" in world.log(job), pause=0.1)
    since, what = time.monotonic(), "a run halted in its first iteration"
    prometheus.fires("OsdMigrateHalted", since, what)
    result = world.wait_for(job, 60)
    assert result == HALTED, (result, world.log(job))
    prometheus.fires("OsdMigrateJobFailed", since, what, job_name=job)
    assert prometheus.firing("OsdMigrateNobodyAtWork"), "a run that halted at once hid that an OSD is down"
    metadata = {key: ledger["metadata"][key] for key in ("name", "labels", "annotations") if key in ledger["metadata"]}
    world.kubectl("delete", "configmap", "osd-migrate-ledger", "--ignore-not-found")
    world.kubectl("create", "-f", "-", stdin=json.dumps(ledger | {"metadata": metadata}))
    world.delete(job)


def disk_disappears(world, prometheus):
    """Removes a disk before its OSD is rebuilt: the OSD is quarantined. The run is cancelled, and its Job fails.

    The run first completes the OSD of the run that was deleted. Without a cancel, it would wait an hour for Ceph to heal.
    """
    job = start(world, *range(OSDS))
    prometheus.ends("OsdMigrateNobodyAtWork", "OsdMigrateChangesLeft", "OsdMigrateHalted", "OsdMigrateJobFailed")
    completed = lambda: KILLED in [entry["osd"] for entry in world.closed()]  # noqa: E731
    world.until(f"osd.{KILLED} to be migrated", 400, completed)
    faults.block_before_rebuild(world, BAD)
    world.lab("pull", f"osd{BAD}")
    faults.unblock_pods(world)
    world.until("the quarantine", 180, lambda: world.records().get(BAD, {}).get("quarantine"))
    since, what = time.monotonic(), f"osd.{BAD} was quarantined"
    prometheus.fires("OsdMigrateQuarantined", since, what, state="quarantined")
    world.command("cancel")
    since, what = time.monotonic(), "the run was cancelled"
    result = world.wait_for(job, 120)
    assert result == ("Failed", 11), (result, world.log(job))
    prometheus.fires("OsdMigrateJobFailed", since, what, job_name=job)
    world.command("resume")
    world.lab("plug", faults.host_of(BAD), f"osd{BAD}")
    world.delete(job)


def disk_is_back(world, prometheus):
    """Retries the OSD, and compares the time left with the truth."""
    world.command("retry", f"osd.{BAD}")
    eta.configure(world, eta.USUAL)
    job = start(world, BAD)
    prometheus.ends("OsdMigrateQuarantined", "OsdMigrateJobFailed")
    eta.compare(world, job, BAD)
    eta.configure(world, eta.OWN)
    assert world.wait_for(job, 120) == ("Complete", 0), world.log(job)
    world.delete(job)


def backfill_stalls(world, prometheus):
    """Prevents recovery before the OSD of a run comes up again."""
    job = start(world, LAST)
    world.until(f"osd.{LAST} to be destroyed", 120, lambda: faults.milestone(world, LAST, "rebuild"), pause=0.1)
    world.lab("ceph", "osd", "set", "norecover")
    backfill = lambda: eta.backfill_of(world, LAST)  # noqa: E731
    began = datetime.datetime.fromisoformat(world.until("the backfill", 240, backfill, pause=1)["since"])
    age = lambda: (datetime.datetime.now(datetime.timezone.utc) - began).total_seconds()  # noqa: E731
    world.until("ten minutes to pass", STALLS_AFTER, lambda: age() > STALLS_AFTER - 20, pause=2)
    prometheus.expect_silence()
    what = "the backfill had moved nothing for ten minutes"
    prometheus.fires("OsdMigrateStalled", time.monotonic() - age() + STALLS_AFTER, what)
    cause = lambda: (backfill() or {}).get("stalledBy")  # noqa: E731
    found = world.until("status to name the cause", 30, cause)  # a run stores its status every 10 s
    assert "ceph osd unset norecover" in found, found
    world.lab("ceph", "osd", "unset", "norecover")
    prometheus.ends("OsdMigrateStalled")
    assert world.wait_for(job, 600) == ("Complete", 0), world.log(job)
    world.delete(job)
