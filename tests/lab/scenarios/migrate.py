"""A complete run: refused without confirmation, two Jobs at once, an OSD that was stopped externally.

All legacy OSDs are migrated under a client's load, no key is found anywhere, and a second run finds nothing to do. Then
`fidelity` compares the assumptions of the project with the real Ceph of that lab.
"""
import json

from . import drift, fidelity, laptop, own_user, refusals, remains, secrets

LEGACY = [0, 1, 5]


def run(world):
    world.up()
    world.lab("write", "300")
    world.lab("client", "start")
    world.customize()
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    assert {osd for osd, store in world.stores().items() if store == "filestore"} == {1}, world.stores()

    unconfirmed(world)
    plan_for_programs(world)
    laptop.expect_exit_codes(world)
    drift.expect_reported(world)
    watch = secrets.Watch(world)
    written = world.written()
    refusals.on_running_lab(world)
    remains.create_folders(world, fsids)
    two_jobs_and_a_stopped_osd(world)
    own_user.expect_acts(world, world.written()[len(written) :], created=1)
    watch.end()
    own_user.expect_refused(world)
    remains.expect_gone(world, fsids, LEGACY, world.log("first"))
    world.expect_migrated(before, fsids, LEGACY)
    world.expect_downs_on_one_host(epoch)
    nothing_to_do(world)
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    world.say(f"client: {client}")
    assert client["ops"] > 100 and not client["failed"] and not client["slow"], client
    report(world)
    laptop.expect_a_run_to_be_followed(world)
    fidelity.on_running_lab(world)


def unconfirmed(world):
    written = world.written()
    job = world.start("unconfirmed")
    result = world.wait_for(job, 60)
    log = world.log(job)
    assert result == ("Complete", 0), (result, log)
    assert "not confirmed" in log and "osd.1" in log, log
    assert world.written() == written and not world.get("configmap", "osd-migrate-ledger"), "something was changed"
    assert not own_user.is_there(world), "an unconfirmed run created the user"
    world.say("without confirmation: exit 0, nothing changed")


def plan_for_programs(world):
    rows = {row["osd"]: row for row in json.loads(world.command("plan", "-o", "json"))["osds"]}
    assert {osd for osd, row in rows.items() if row["class"] == "Legacy"} == set(LEGACY), rows
    assert rows[1]["becomes"] == {"store": "bluestore", "mode": "raw", "encrypted": False}, rows[1]
    assert "\nNo OSD is in progress." in world.command("status"), world.command("status")
    world.say("plan -o json and status report the cluster")


def two_jobs_and_a_stopped_osd(world):
    # osd-migrate must not touch osd.4: it conforms, and was stopped externally.
    world.kubectl("scale", "deployment", "rook-ceph-osd-4", "--replicas=0")
    world.until("osd.4 to be down", 60, lambda: not [o for o in world.ceph("osd", "dump")["osds"] if o["osd"] == 4][0]["up"])
    # An OSD whose Deployment has 0 replicas does not count as unavailable: a drain may evict an OSD of another host.
    world.until("an eviction while osd.4 is down", 60, lambda: not world.eviction(3))
    world.confirm()
    first = world.start("first", env={"RUST_LOG": "osd_migrate=debug,warn"})  # logs the numbers of commands and requests
    world.until("the first runner to name osd.4", 60, lambda: "osd.4" in world.log(first))
    second = world.start("second")
    assert world.wait_for(second, 60) == ("Complete", 0), world.log(second)
    assert "first" in world.log(second), world.log(second)
    assert not world.records(), "an OSD was recorded though the cluster was not clean"
    world.kubectl("scale", "deployment", "rook-ceph-osd-4", "--replicas=1")
    world.say("two Jobs: the second ended; the first waited for osd.4 and named it")
    drains_wait(world)
    rooks_pdb_deleted(world)
    assert world.wait_for(first, 400) == ("Complete", 0), world.log(first)
    world.until("drains to be allowed", 30, lambda: not world.eviction(3) and not world.eviction(4))


def drains_wait(world):
    """Checks that no OSD of another host may be evicted while osd-migrate has stopped an OSD."""
    said = expect_eviction_refused(world, "TooManyRequests")
    status = world.command("status")
    assert status.startswith("CephCluster rook-ceph in namespace rook-ceph\nJob first is running (pod first-"), status
    assert world.drain_limit() == 0 and not world.own_pdb()
    world.say(f"Rook's PodDisruptionBudget at 0: {said}")


def rooks_pdb_deleted(world):
    """Deletes Rook's PodDisruptionBudget while an OSD is stopped, and recreates it during the next stop.

    Meanwhile the run's own PodDisruptionBudget prevents drains.
    """
    rooks = world.get("poddisruptionbudget", "rook-ceph-osd")
    world.kubectl("delete", "poddisruptionbudget", "rook-ceph-osd")
    own = world.until("the run's own PodDisruptionBudget", 30, world.own_pdb, pause=0.1)
    world.say(f"Rook's PodDisruptionBudget deleted: {expect_eviction_refused(world, 'TooManyRequests')}")
    world.until("another one, for the next OSD", 200, lambda: world.own_pdb() not in (None, own), pause=0.1)
    world.say(f"no PodDisruptionBudget of Rook: {expect_eviction_refused(world, 'TooManyRequests')}")
    pdb = {"apiVersion": rooks["apiVersion"], "kind": rooks["kind"], "metadata": {"name": "rook-ceph-osd"}}
    world.kubectl("create", "-f", "-", stdin=json.dumps({**pdb, "spec": {**rooks["spec"], "maxUnavailable": 1}}))
    world.say(f"Rook's PodDisruptionBudget recreated: {expect_eviction_refused(world, 'more than one PodDisruptionBudget')}")


def expect_eviction_refused(world, why):
    """Checks that the API server refuses a drain of another host than the stopped OSD's, and returns its reason.

    On a busy computer the OSD may serve again before the check ends. Then the next stop is checked.
    """
    for _ in range(3):
        stopped = world.until("an OSD to be stopped", 200, lambda: stopped_osds(world), pause=0.1)
        other = next(osd for osd in (3, 4) if osd % 3 != stopped[0] % 3)
        said = world.eviction(other)
        if stopped_osds(world) == stopped:
            assert why in said and "isruption" in said, said or f"osd.{other} may be evicted"
            return f"osd.{stopped[0]} is stopped; a drain of osd.{other}'s node gets: {said}"
    raise AssertionError("the checks were too late")


def stopped_osds(world):
    osds = world.get("deployments", selector="app=rook-ceph-osd")["items"]
    found = [one["metadata"] for one in osds if "osd-migrate.io/stopped" in one["metadata"].get("annotations", {})]
    return [int(one["labels"]["ceph-osd-id"]) for one in found]


def nothing_to_do(world):
    written = world.written()
    assert any("osd destroy-actual" in line for line in written), "the audit log does not contain the commands of the run"
    job = world.start("again")
    assert world.wait_for(job, 60) == ("Complete", 0), world.log(job)
    new = world.written()[len(written) :]
    assert not new, f"the second run wrote to Ceph: {new}"
    world.say("second run: nothing to do, exit 0, not one write to Ceph")


def report(world):
    world.say(next(line for line in reversed(world.log("first").splitlines()) if " commands to Ceph and " in line).split("DEBUG ")[-1])
    for record in world.closed():
        world.say(f"osd.{record['osd']}: " + " ".join(f"{word}@{at[11:19]}" for word, at in record["milestones"]))
