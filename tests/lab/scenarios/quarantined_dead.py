"""OSDs that were destroyed leave quarantine by the usual request.

ceph-volume fails each time, as on a disk that is dying: one such OSD is removed, and another one keeps its id for a new
disk. The disk of a third one dies after the new OSD was registered, and a fourth one is removed by hand. The requests are
accepted as soon as the OSDs are quarantined, and fulfilled when every PG is complete elsewhere.
"""

import time

from . import alive, faults, remove, sick

GONE, REPLACED, RECREATED = 0, 1, 2  # on h1, h2 and h3
BY_HAND = 3  # on h4
OSDS = (GONE, REPLACED, RECREATED, BY_HAND)


def run(world):
    world.up(osds=12, layout=",".join(f"{osd}=bluestore-dev" for osd in OSDS), hosts=4)
    faults.begin(world)
    cannot_be_recreated(world, GONE)
    leaves(world, GONE)
    remove.absent(world, GONE)
    cannot_be_recreated(world, REPLACED)
    leaves(world, REPLACED, "--keep-id")
    (slot,) = [slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == REPLACED]
    assert "destroyed" in slot["state"], slot
    assert not world.get("deployment", f"rook-ceph-osd-{REPLACED}")
    dies_before_its_start(world, RECREATED)
    leaves(world, RECREATED)
    remove.absent(world, RECREATED)
    is_removed_by_hand(world, BY_HAND)
    world.lab("verify")


def clean(world):
    time.sleep(2)  # the statistics are behind the map
    world.until("all PGs to be clean", 180, lambda: sick.pg_states(world) == {"active+clean"})


def cannot_be_recreated(world, osd):
    """Quarantines an OSD after its disk was wiped."""
    faults.fail(world, osd, ["fail-mkfs"] * 4)
    faults.expect(world, f"fails-{osd}", [*faults.select(osd), "--agent-retry-pause", "2s"], 11, 400)
    world.say(f"osd.{osd} is destroyed and quarantined: {world.records()[osd]['quarantine']['why']}")


def dies_before_its_start(world, osd):
    """Quarantines an OSD whose disk dies after the new OSD was registered."""
    job = world.start(f"dies-{osd}", [*faults.select(osd), *alive.START_LIMIT])
    alive.pull_before_start(world, job, osd)
    faults.expect_end(world, job, 11, 200)
    record = world.records()[osd]
    assert record["new"] == world.fsids()[osd], (record, world.fsids())
    world.say(f"osd.{osd} is recreated and quarantined: {record['quarantine']['why']}")


def leaves(world, osd, *more):
    """Removes a quarantined OSD by a request, once its PGs are complete elsewhere."""
    record = world.records()[osd]
    remove.person(world, "remove", f"osd.{osd}", *more, "--confirm", remove.WORDS)
    fsid = record["new"] or record["old"]
    assert remove.requests(world)[f"osd-{osd}"]["fsid"] == fsid, (record, remove.requests(world))
    removes = [*faults.select(osd), "--removals"]
    # Its PGs lack a replica: it stays in quarantine.
    faults.expect(world, f"early-{osd}", removes, 11, 200)
    assert world.records()[osd]["quarantine"], world.records()
    world.lab("ceph", "osd", "out", str(osd))
    clean(world)
    faults.expect(world, f"leaves-{osd}", removes, 0, 300)
    assert not world.records(), world.records()
    assert not world.get("deployment", f"rook-ceph-osd-{osd}"), f"osd.{osd} has a Deployment"
    clean(world)
    remove.nothing_left(world)
    world.say(f"osd.{osd} left quarantine by the request {' '.join(more)}")


def is_removed_by_hand(world, osd):
    """Checks that a quarantined OSD that a person purges is forgotten when its Deployment is deleted."""
    cannot_be_recreated(world, osd)
    world.lab("ceph", "osd", "purge", str(osd), "--force", "--yes-i-really-mean-it")
    clean(world)
    faults.expect(world, f"purged-{osd}", faults.select(osd), 11, 200)
    assert list(world.records()) == [osd], world.records()
    world.kubectl("delete", "deployment", f"rook-ceph-osd-{osd}")
    # The selected OSD no longer exists, which a run reports.
    log = faults.expect(world, f"forgotten-{osd}", faults.select(osd), 12, 200)
    assert "purged-externally" in log, log
    remove.absent(world, osd)
    remove.nothing_left(world)
    world.say(f"osd.{osd} was removed by hand, and its record is closed")
