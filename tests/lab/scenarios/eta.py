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


def backfill_of(world, osd):
    """Returns the backfill of an OSD that `status` shows; None if it shows none."""
    found = (progress(world) or {}).get("backfills", [])
    return next((backfill for backfill in found if backfill["osd"] == osd), None)


def compare(world, job, osd):
    """Follows the backfill of an OSD, and prints what `status` showed after a fifth beside the truth."""
    shown = None
    while True:
        backfill = backfill_of(world, osd) or {}
        now, is_present = time.monotonic(), bool(backfill)
        if shown and not is_present:
            break
        assert shown or not world.result(job), f"no time left was shown:\n{world.log(job)}"
        moved = 1 - backfill["leftBytes"] / backfill["totalBytes"] if is_present else 0
        if not shown and moved >= FIFTH and backfill["left"]:
            shown = now, moved, backfill
            line = [line for line in world.command("status").splitlines() if f"osd.{osd}: " in line and " left" in line]
            world.say(f"status: {line[0].strip() if line else backfill}")
        time.sleep(0.5)
    at, moved, backfill = shown
    took, (shortest, longest) = now - at, (backfill["left"][f"{which}Seconds"] for which in ("shortest", "longest"))
    off = (shortest + longest) / 2 / took - 1
    said = f"{shortest} to {longest} s left; it took {took:.0f} s; the middle is off by {off:+.0%}"
    world.say(f"ETA of osd.{osd} after {moved:.0%} of {backfill['totalBytes'] / GIB:.2f} GiB: {said}")
