"""Real faults.

In `make test`: ceph-volume fails or is killed before it has finished, and a disk of another OSD replaces the OSD's disk
between inspect and rebuild. With --full, on six legacy OSDs, also: every other fault of ceph-volume, kernel names that
change while the OSD is stopped, a second OSD that fails on another host right after a stop, a node that loses power.
"""
import os
import subprocess
import time

from .disks import digest

SIX = "0=bluestore-dev,1=filestore-part,2=bluestore-dev,3=bluestore-dev,4=filestore-part,5=bluestore-dev"
TWO = "0=bluestore-dev,5=bluestore-dev"
OWN_LABEL = "app.kubernetes.io/name=osd-migrate"
RUN = ["run", "--confirm", "yes-really-migrate-osds"]


def run_full(world):
    world.up(layout=SIX)
    before, fsids = begin(world)
    foreign_disks(world, every=True)
    kernel_names_change(world)
    second_death(world)
    every_fault(world)
    migrated = [0, 1, 3, 4, 5]
    world.expect_migrated(before, fsids, migrated)
    power_lost(world)


def run(world):
    world.up(layout=TWO)
    before, fsids = begin(world)
    foreign_disks(world, every=False)
    # Three attempts may fail after the stop; the fourth would be the last.
    fail(world, 0, ["fail-mkfs", "kill-in-mkfs", "kill-after-mkfs"])
    expect(world, "faults", RUN, 0, 300)
    print_faults(world, "faults", 0)
    world.expect_migrated(before, fsids, [0, 5])


def begin(world):
    world.lab("write", "200")
    image = world.lab("faults").stdout.split()[-1]
    world.kubectl("patch", "cephcluster", "rook-ceph", "--type", "merge", "-p", '{"spec": {"cephVersion": {"image": "%s"}}}' % image)
    return world.shape(), world.fsids()


# ---- building blocks

def host_of(osd):
    return f"h{osd % 3 + 1}"


def select(*osds):
    return RUN + ["--select", ",".join(f"osd.{osd}" for osd in osds)]


def expect(world, name, args, code, seconds):
    job = world.start(name, args)
    return expect_end(world, job, code, seconds)


def expect_end(world, job, code, seconds):
    result = world.wait_for(job, seconds)
    log = world.log(job)
    assert result == ("Complete" if code == 0 else "Failed", code), (job, result, log)
    return log


def fail(world, osd, faults):
    world.lab("on", world.facts(osd)["host"], "bash", "-c", 'printf "%s\\n" "${@:2}" > "$1"', "-", f"/run/udev/lab-faults-osd.{osd}", *faults)


def print_faults(world, job, *osds):
    """Checks that all faults happened, and prints what the runner reported."""
    for osd in osds:
        list_ = f"/run/udev/lab-faults-osd.{osd}"
        happened = world.lab("on", host_of(osd), "cat", list_ + ".done").stdout.split()
        left = world.lab("on", host_of(osd), "cat", list_).stdout.split()
        assert not left, f"faults of osd.{osd} that did not happen: {left}"
        world.say(f"faults of osd.{osd}: {', '.join(happened)}; the runner reported:")
    for line in world.log(job).splitlines():
        if "failed" in line.lower() or "refused" in line.lower() or "quarantined" in line:
            print("    " + line[:600], flush=True)


def milestone(world, osd, word):
    record = world.records().get(osd)
    return record and any(done == word for done, _ in record["milestones"])


def block_pods(world):
    """Prevents new pods in the namespace, so that a run waits for its node agent."""
    world.kubectl("create", "quota", "lab-no-pods", "--hard=pods=0")


def unblock_pods(world):
    world.kubectl("delete", "quota", "lab-no-pods")


def block_before_rebuild(world, osd):
    """Waits until the OSD is destroyed, and prevents the start of the agent that would wipe its disk."""
    world.until(f"osd.{osd} to be proven", 90, lambda: milestone(world, osd, "proof"), pause=0.1)
    block_pods(world)
    world.until(f"osd.{osd} to be destroyed", 90, lambda: milestone(world, osd, "rebuild"), pause=0.1)
    agent = f"osd-migrate-rebuild-{osd}-"
    world.until("the Job of its rebuild", 30, lambda: any(job["metadata"]["name"].startswith(agent) for job in world.get("jobs")["items"]))


# ---- faults


def foreign_disks(world, every):
    """Replaces osd.5's disk when osd.5 is destroyed, right before the agent that wipes the disk starts."""
    job = world.start("foreign-1", select(5))
    block_before_rebuild(world, 5)
    device = world.lab("pull", "osd5").stdout.strip()
    own, size = digest(world.image("osd5")), os.path.getsize(world.image("osd5"))
    # The first 64 MiB of another OSD of this cluster on this host, under the recorded name of osd.5's disk.
    twin = world.image("twin")
    subprocess.run(["dd", f"if={world.image('osd2')}", f"of={twin}", "bs=1M", "count=64", "conv=sparse", "status=none"], check=True)
    os.truncate(twin, size)
    world.lab("plug", "h3", "twin", "osd5", device)
    sha = digest(twin)
    unblock_pods(world)
    refused(world, job, 5, "twin", sha, "osd5", "device a BlueStore of OSD")
    if every:
        stranger = world.image("stranger")
        with open(stranger, "wb") as file:
            file.truncate(size)
        subprocess.run(["mkfs.xfs", "-q", stranger], check=True)
        world.lab("plug", "h3", "stranger", "stranger", device)
        world.command("retry", "osd.5")
        sha = digest(stranger)
        refused(world, world.start("foreign-2", select(5)), 5, "stranger", sha, "stranger", "found no disk")
    assert digest(world.image("osd5")) == own, "the removed disk was written to"
    world.lab("plug", "h3", "osd5")
    world.command("retry", "osd.5")
    world.say("osd.5's own disk is attached again, unchanged, and osd.5 is to be retried")
    if every:
        expect(world, "foreign-3", select(5), 0, 200)


def refused(world, job, osd, foreign, sha, name, word):
    log = expect_end(world, job, 11, 120)
    world.lab("pull", name)
    assert digest(world.image(foreign)) == sha, f"{foreign} was written to"
    slot = next(slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == osd)
    assert "destroyed" in slot["state"], slot
    why = world.records()[osd]["quarantine"]["why"]
    world.say(f"{foreign} in place of osd.{osd}'s disk: unchanged, and: {why}")
    assert word in why and why.replace("NAMESPACE", "rook-ceph") in log, f"`{word}` is not in:\n{log}"
    expect_no_key(world, osd)


def expect_no_key(world, osd):
    """Checks that no Secret with the bootstrap-osd key is left, and that the node Jobs of a quarantined OSD have logs."""
    gone = lambda: not world.get("secrets", selector=OWN_LABEL)  # noqa: E731
    world.until("the Secrets of its node Jobs to be deleted", 60, gone)
    jobs = [job["metadata"]["name"] for job in world.get("jobs", selector=f"{OWN_LABEL},osd-migrate.io/osd={osd}")["items"]]
    assert jobs and all(world.kubectl("logs", f"job/{job}") for job in jobs), jobs
    world.say(f"no Secret of osd-migrate is left; {', '.join(jobs)} have logs")


def kernel_names_change(world):
    """Exchanges the kernel names of osd.1's disk and a disk without an OSD, between inspect and rebuild."""
    spare = world.lab("disk", "h2", "spare").stdout.strip()
    world.lab("on", "h2", "mkfs.xfs", "-q", spare)
    sha = digest(world.image("spare"))
    job = world.start("names", select(1))
    block_before_rebuild(world, 1)
    was = world.lab("pull", "osd1").stdout.strip()
    world.lab("pull", "spare")
    world.lab("plug", "h2", "spare", "spare", was)
    now = world.lab("plug", "h2", "osd1", "osd1", spare).stdout.strip()
    unblock_pods(world)
    expect_end(world, job, 0, 200)
    assert digest(world.image("spare")) == sha, "the disk that now has osd.1's kernel name was written to"
    assert world.ceph("osd", "metadata", "1")["osd_objectstore"] == "bluestore"
    world.say(f"osd.1's disk was {was} and is {now}: it was rebuilt, the disk that is {was} now is unchanged")


def second_death(world):
    """Stops osd.3 on h1 right after osd-migrate stopped osd.4 on h2."""
    fsid, written = world.fsids()[4], world.written()
    job = world.start("second-death", select(4))
    scale = "kubectl -n rook-ceph scale deployment rook-ceph-osd-{} --replicas={}"
    stopped = "$(kubectl -n rook-ceph get deployment rook-ceph-osd-4 -o jsonpath={.spec.replicas}) = 0"
    world.lab("net", "bash", "-c", f"until [ {stopped} ]; do :; done; {scale.format(3, 0)}")
    world.until("osd.4 to serve again", 120, lambda: is_up(world, 4) and milestone(world, 4, "revert-stop"))
    assert not is_up(world, 3), "osd.3 started again"
    time.sleep(5)
    assert world.fsids()[4] == fsid and world.result(job) is None, world.log(job)
    new = world.written()[len(written) :]
    assert not [line for line in new if "destroy" in line], new
    names_it = lambda: [line for line in world.log(job).splitlines() if "osd.3" in line]  # noqa: E731
    waits = world.until("the runner to name osd.3", 60, names_it)
    world.say(f"osd.3 failed right after the stop of osd.4: osd.4 serves again, nothing was destroyed, and: {waits[-1]}")
    world.kubectl("scale", "deployment", "rook-ceph-osd-3", "--replicas=1")
    expect_end(world, job, 0, 300)
    world.say("osd.3 is up again: osd.4 was migrated")


def is_up(world, osd):
    return next(slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == osd)["up"]


def every_fault(world):
    fail(world, 3, ["fail-after-new", "ignore-osd-id", "kill-after-mkfs"])
    expect(world, "three-faults", select(3), 0, 300)
    print_faults(world, "three-faults", 3)
    fail(world, 0, ["fail-before-new", "fail-mkfs", "exit-0-nothing-done", "fail-after-new"])
    expect(world, "four-in-a-row", select(0), 11, 200)
    print_faults(world, "four-in-a-row", 0)
    record = world.records()[0]
    world.say(f"four failures in a row: osd.0 was quarantined: {record['quarantine']['why']}")
    assert list(world.records()) == [0], world.records()
    fail(world, 0, ["kill-after-new", "kill-in-mkfs"])
    world.command("retry", "osd.0")
    expect(world, "two-faults", select(0), 0, 300)
    print_faults(world, "two-faults", 0)


def power_lost(world):
    """Powers off the node of osd.2 right after the record was saved.

    The node does not start again, so this is the last test in its lab.
    """
    fsid, written = world.fsids()[2], world.written()
    job = world.start("power", select(2), node="h1")
    world.until("osd.2 to be recorded", 90, lambda: milestone(world, 2, "record"), pause=0.05)
    world.lab("power-off", "h3")
    world.until("Ceph to mark osd.2 down", 90, lambda: not is_up(world, 2))
    log = world.until("the runner to name the node", 120, lambda: (log := world.log(job)) and "node h3 is not Ready" in log and log)
    time.sleep(10)
    assert world.result(job) is None and world.fsids()[2] == fsid, world.log(job)
    new = world.written()[len(written) :]
    assert not new, f"something was written to Ceph: {new}"
    world.say(f"h3 lost power after the record was saved: nothing was written to Ceph, and: {log.splitlines()[-1]}")
