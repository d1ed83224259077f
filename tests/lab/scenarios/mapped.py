"""Raw OSDs on devices that the host maps, on u1: a multipath device, and a LUKS device that the host opens.

The host manages these mappings. Conforming OSDs are not changed. An OSD that would need another mapping is refused, and
never rebuilt.
"""

import json

from .new_osds import by_id
from .volumes import declare, node

MULTIPATH, HOST_CRYPT = 3, 4
DISKS = {MULTIPATH: ("raw-multipath", "paths"), HOST_CRYPT: ("raw-host-crypt", "crypt")}
SOME_NOT_MIGRATED = 12


def run(world):
    world.up(layout="0=bluestore-dev", osds=3, uml=True)
    for osd, (kind, disk) in DISKS.items():
        world.lab("disk", "u1", disk)
        world.lab("volume-osd", str(osd), kind, node(world, disk))
        world.say(f"osd.{osd} is created: {kind}")
    world.lab("write", "60")
    world.lab("wait-clean", "120")
    world.confirm()
    fsids, header, tables = world.fsids(), luks(world), mappings(world)
    assert len(tables) == len(DISKS), tables
    for osd, row in planned(world, "plan-as-is").items():
        assert row["class"] != "Legacy", row
    job = world.start("as-is")
    assert world.wait_for(job, 300) == ("Complete", 0), world.log(job)
    changed = {osd for osd, fsid in world.fsids().items() if fsid != fsids[osd]}
    assert changed == {0}, f"rebuilt: {changed}\n{world.log(job)}"
    world.say("multipath and host LUKS: conforming, not changed; osd.0 was migrated")
    fsids = world.fsids()
    declare(world, True)
    job = world.start("encrypted")
    result = world.wait_for(job, 300)
    log = world.log(job)
    assert result == ("Failed", SOME_NOT_MIGRATED), (result, log)
    for osd in DISKS:
        assert any(f"osd.{osd}" in line for line in log.splitlines()), log
    assert world.fsids() == fsids, f"rebuilt:\n{log}"
    assert (luks(world), mappings(world)) == (header, tables), "the host's mappings were changed"
    world.lab("verify")
    world.expect_nothing_left()
    world.say(
        "declared as encrypted, they are refused: nothing is rebuilt, the host's LUKS header is unchanged"
    )


def planned(world, name):
    """Returns the rows of `plan` of the OSDs that the host maps."""
    job = world.start(name, ["plan", "-o", "json"])
    assert world.wait_for(job, 120) == ("Complete", 0), world.log(job)
    return {row["osd"]: row for row in json.loads(world.log(job))["osds"] if row["osd"] in DISKS}


def luks(world):
    disk = by_id(DISKS[HOST_CRYPT][1])
    return world.lab("on", "u1", "bash", "-c", f"cryptsetup luksDump {disk} | sha256sum").stdout


def mappings(world):
    return sorted(world.lab("on", "u1", "dmsetup", "table").stdout.splitlines())
