"""The time left of a backfill that `status` shows, beside the time that the backfill takes."""
import json
import time

# Ceph's defaults for disks that rotate. With the lab's own settings, a backfill of 4 GiB ends within a minute.
USUAL = {"osd_recovery_sleep_hdd": "0.1", "osd_max_backfills": "1", "osd_recovery_max_active": "3"}
OWN = {"osd_recovery_sleep_hdd": "0", "osd_max_backfills": "8", "osd_recovery_max_active": "16"}  # osd-settings.conf
FIFTH = 0.2
GIB = 1 << 30


def configure(world, settings):
    for name, value in settings.items():
        world.lab("ceph", "config", "set", "osd", name, value)


def progress(world):
    """Returns the progress that `status` shows, or None if no run stored one."""
    return json.loads(world.command("status", "-o", "json"))["progress"]


def compare(world, job, osds):
    """Follows the backfills of a run, and prints for each OSD what `status` showed after a fifth, and the truth."""
    shown, ended, present = {}, {}, None
    while not world.result(job):
        backfill = (progress(world) or {}).get("backfill") or {}
        now, osd = time.monotonic(), backfill.get("osd")
        if present is not None and osd != present:
            ended[present] = now
        present = osd
        if osd is None or osd in shown or not backfill["left"]:
            continue
        moved = 1 - backfill["leftBytes"] / backfill["totalBytes"]
        if moved >= FIFTH:
            shown[osd] = (now, moved, backfill)
            line = [line for line in world.command("status").splitlines() if f"osd.{osd}: " in line and " left" in line]
            world.say(f"status: {line[0].strip() if line else backfill}")
    if present is not None:
        ended[present] = time.monotonic()
    assert shown.keys() == ended.keys() == set(osds), (shown, ended, world.log(job))
    for osd, (at, moved, backfill) in shown.items():
        report(world, osd, ended[osd] - at, moved, backfill)


def report(world, osd, took, moved, backfill):
    shortest, longest = backfill["left"]["shortestSeconds"], backfill["left"]["longestSeconds"]
    off = (shortest + longest) / 2 / took - 1
    world.say(
        f"ETA of osd.{osd} after {moved:.0%} of {backfill['totalBytes'] / GIB:.2f} GiB: {shortest} to {longest} s left; it "
        f"took {took:.0f} s; the middle is off by {off:+.0%}"
    )
