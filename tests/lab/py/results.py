"""Prints a table of the migrated OSDs. Reads the ConfigMaps of the namespace as JSON from the standard input."""
import json
import sys
from datetime import datetime

HEADER = ("OSD", "NODE", "WAS", "IS", "DEVICE", "OLD FSID", "NEW FSID", "DOWN", "TOOK")


def records(maps):
    """Returns the closed records of the history, the oldest first."""
    histories = [m for m in maps["items"] if m["metadata"]["name"].startswith("osd-migrate-history-")]
    for history in sorted(histories, key=lambda m: m["metadata"]["name"]):
        for key in sorted(history.get("data", {})):
            for line in filter(str.strip, history["data"][key].splitlines()):
                yield json.loads(line)


def seconds(milestones, begin, end):
    """Returns the seconds between two milestones, or a dash if one of them is missing."""
    times = {code: datetime.fromisoformat(at.replace("Z", "+00:00")) for code, at in milestones}
    if begin not in times or end not in times:
        return "-"
    return f"{(times[end] - times[begin]).total_seconds():.0f} s"


def was(found):
    """Returns the former format of an OSD; one that differs from its declaration has no single word."""
    return found["why"] if isinstance(found.get("why"), str) else found["class"]


def row(record):
    """Returns the cells of one OSD."""
    target, disk = record["target"], record.get("disk") or {}
    becomes = " ".join([target["store"], target["mode"]] + ["encrypted"] * target["encrypted"])
    return (
        f"osd.{record['osd']}",
        record["node"],
        was(record["class"]),
        becomes,
        disk.get("name", "-").removeprefix("/dev/disk/by-id/"),
        record.get("old", "-")[:8],
        record.get("new", "-")[:8],
        seconds(record["milestones"], "down", "up"),
        seconds(record["milestones"], "record", "closing"),
    )


def main():
    rows = [HEADER] + [row(record) for record in records(json.load(sys.stdin))]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADER))]
    for cells in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())


main()
