"""OSDs that were destroyed and cannot be recreated leave quarantine by the usual request.

ceph-volume fails each time, as on a disk that is dying. One OSD is removed, and the other one keeps its id for a new
disk. The requests are accepted as soon as the OSDs are quarantined, and fulfilled when every PG is complete elsewhere.
"""

import time

from . import faults, remove, sick

GONE, REPLACED = 0, 1  # on h1 and h2


def run(world):
    world.up(osds=8, layout=f"{GONE}=bluestore-dev,{REPLACED}=bluestore-dev", hosts=4)
    faults.begin(world)
    leaves(world, GONE)
    remove.absent(world, GONE)
    leaves(world, REPLACED, "--keep-id")
    (slot,) = [slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == REPLACED]
    assert "destroyed" in slot["state"], slot
    assert not world.get("deployment", f"rook-ceph-osd-{REPLACED}")
    world.lab("verify")


def clean(world):
    time.sleep(2)  # the statistics are behind the map
    world.until("all PGs to be clean", 180, lambda: sick.pg_states(world) == {"active+clean"})


def leaves(world, osd, *more):
    """Quarantines an OSD after its disk was wiped, and removes it."""
    faults.fail(world, osd, ["fail-mkfs"] * 4)
    faults.expect(world, f"fails-{osd}", [*faults.select(osd), "--agent-retry-pause", "2s"], 11, 400)
    record = world.records()[osd]
    world.say(f"osd.{osd} is destroyed and quarantined: {record['quarantine']['why']}")
    remove.person(world, "remove", f"osd.{osd}", *more, "--confirm", remove.WORDS)
    assert remove.requests(world)[f"osd-{osd}"]["fsid"] == record["old"], (record, remove.requests(world))
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
