"""A Deployment that a ValidatingAdmissionPolicy refuses: nothing of that OSD is stopped, the reason is named, the other
OSDs go on. And an OSD on a disk without a name under /dev/disk/by-id, which its label proves."""

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
    job = world.start("refused", RUN)
    result = world.wait_for(job, 300)
    log = world.log(job)
    assert result == ("Failed", SOME_NOT_MIGRATED), (result, log)
    sick.expect_untouched(world, fsids, REFUSED)
    assert world.fsids()[NAMELESS] != fsids[NAMELESS], log
    said = [
        line
        for line in log.splitlines()
        if f"osd.{REFUSED}" in line and "no container named activate" in line
    ]
    assert said, log
    world.say(said[-1][:400])
    sick.admit_again(world)
    job = world.start("admitted", RUN)
    assert world.wait_for(job, 300) == ("Complete", 0), world.log(job)
    world.expect_migrated(before, fsids, [REFUSED, NAMELESS])
