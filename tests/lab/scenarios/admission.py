"""A ValidatingAdmissionPolicy refuses the new Deployment of an OSD.

A dry run shows it before the stop. The OSD is never stopped, the reason is reported, and the other OSDs are migrated.
Another OSD is on a disk without a name under /dev/disk/by-id: the label on the disk proves it.
"""

from . import sick

REFUSED, NAMELESS = 3, 5
LAYOUT = f"{REFUSED}=bluestore-dev,{NAMELESS}=bluestore-dev"
RUN = ["run", "--confirm", "yes-really-migrate-osds", "--skip-after", "20s"]
SOME_NOT_MIGRATED = 12


def run(world):
    world.up(layout=LAYOUT)
    world.lab("write", "100")
    before, fsids = world.shape(), world.fsids()
    world.lab("no-id", f"osd{NAMELESS}")
    sick.refuse_deployment(world, REFUSED)
    pods = pod_uids(world)
    job = world.start("refused", RUN)
    result = world.wait_for(job, 300)
    log = world.log(job)
    assert result == ("Failed", SOME_NOT_MIGRATED), (result, log)
    sick.expect_untouched(world, fsids, REFUSED)
    assert pod_uids(world) == pods, f"osd.{REFUSED} was stopped:\n{log}"
    tried = [record for record in world.closed() if record["osd"] == REFUSED]
    assert [sick.milestones(record)[-1] for record in tried] == ["not-admitted"], (tried, log)
    assert world.fsids()[NAMELESS] != fsids[NAMELESS], log
    last = log.splitlines()[-1]
    assert f"osd.{REFUSED}" in last and "no container named activate" in last, log
    world.say(last[:600])
    sick.admit_again(world)
    job = world.start("admitted", RUN)
    assert world.wait_for(job, 300) == ("Complete", 0), world.log(job)
    world.expect_migrated(before, fsids, [REFUSED, NAMELESS])


def pod_uids(world):
    pods = world.get("pods", selector=f"ceph-osd-id={REFUSED}")["items"]
    return {pod["metadata"]["uid"] for pod in pods}
