"""A legacy OSD is recreated on its disk in four ways, one after the other: by osd-migrate, and by hand in three usual ways.

Eight OSDs on four hosts, at least 1 GiB of data on the OSD, and a client. It is always the same OSD on the same disk: before
each way it is made the legacy OSD again, with the same data. There are three rounds (BENCH_ROUNDS), each of them
begins with another way, after one of osd-migrate that is not counted. Bytes are those that the primaries counted. The
scenario prints tables of the medians.
"""
import json
import os
import time
from statistics import median

from . import course, empty
from .replicas import STATISTICS, Watch, trim
from .ways import Ways

MIB = 1 << 20
OSD = 0
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
OBJECTS, MEAN_KIB = 3200, 2048  # 6.3 GiB, three times, on eight OSDs: 1.4 GiB on osd.0, because PGs are few
LEAST = 1 << 30
OURS, BY_HAND = "osd-migrate", "by hand, in place"


def run(world):
    world.up(osds=8, layout=f"{OSD}=bluestore-dev", hosts=4)
    world.lab("write", str(OBJECTS), str(MEAN_KIB), timeout=1800)
    empty.clean(world)
    trim(world)
    world.say(f"{world.lab('ceph', '--version').stdout.strip()}")
    before, ways = world.shape(), Ways(world, OSD)
    # It creates the Deployment that the ways by hand use, and reads the images, so that the first way is not the slowest.
    measured(world, "not counted", ways.by_osd_migrate)
    ways.parts.clear()
    rows = {name: [] for name, _ in ways.all()}
    for number in range(ROUNDS):
        for name, way in rotated(ways.all(), number):
            ways.make_legacy()
            empty.clean(world)
            rows[name].append(measured(world, f"{name}, round {number + 1}", way))
            assert world.shape() == before, f"not as before:\n{before}\n{world.shape()}"
    world.lab("verify", timeout=1800)
    show(world, rows)
    world.say(f"parts of osd-migrate, medians of {ROUNDS}:\n{course.text(course.medians(ways.parts))}")
    expect(rows)


def rotated(ways, number):
    """Returns the ways, beginning with another one in each round: a computer may get slower with time."""
    first = number % len(ways)
    return ways[first:] + ways[:first]


# ---- what is measured


def measured(world, name, way):
    world.lab("client", "start")
    with Watch(OSD) as watch:
        world.until("the first statistics", 20, watch.last)
        held, at, moved = watch.last().held, watch.now(), watch.moved
        way(watch)
        time.sleep(STATISTICS)
        world.until("all PGs to be clean", 1800, lambda: watch.last().clean)
        samples, moved = watch.since(at), watch.moved - moved
    client = json.loads(world.lab("client", "stop", check=False).stdout.strip().splitlines()[-1])
    unclean = [sample.at for sample in samples if not sample.clean]
    lacking = [sample.at for sample in samples if sample.lacking]
    down = [sample.at for sample in samples if not sample.up]
    row = {
        "held": held,
        "moved": moved,
        "took": max(unclean) - at,
        "down": max(down) - min(down),
        "lacked": max(lacking) - min(lacking) if lacking else 0.0,
        "client": client,
    }
    world.say(f"osd.{OSD}, {name}: {row}")
    return row


# ---- what is printed


def show(world, rows):
    columns = list(rows.values())
    lines = [
        ("", *rows),
        ("data on the OSD", *(f"{mid(held(rounds)) / MIB:,.0f} MiB" for rounds in columns)),
        ("data moved", *(f"{mid(row['moved'] for row in rounds) / MIB:,.0f} MiB" for rounds in columns)),
        ("multiple", *(f"{mid(multiples(rounds)):.2f}" for rounds in columns)),
        ("until all PGs are clean", *(seconds(row["took"] for row in rounds) for rounds in columns)),
        ("of these without the copying", *(seconds(map(without_copying, rounds)) if lacks(rounds) else "" for rounds in columns)),
        ("OSD down", *(seconds(row["down"] for row in rounds) for rounds in columns)),
        ("PGs lack a replica", *(seconds(row["lacked"] for row in rounds) for rounds in columns)),
        *((f"client: {what}", *(latency(which, rounds) for rounds in columns)) for what, which in LATENCIES),
        ("client: failed", *(failures(rounds) for rounds in columns)),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    world.say(f"one OSD of 8 on 4 hosts: medians of {ROUNDS}, and lowest to highest:\n{table}")


LATENCIES = [("median", "p50_seconds"), ("99 %", "p99_seconds"), ("longest", "max_seconds")]


def mid(numbers):
    return median(list(numbers))


def held(rounds):
    return [row["held"] for row in rounds]


def multiples(rounds):
    return [row["moved"] / row["held"] for row in rounds]


def lacks(rounds):
    return any(row["lacked"] for row in rounds)


def without_copying(row):
    """Returns the time without the copying: data moves from when the OSD is up until no PG lacks a replica.

    Drained OSDs have their data elsewhere meanwhile.
    """
    return row["took"] - max(row["lacked"] - row["down"], 0)


def seconds(times):
    return with_range(times, 1, "s")


def latency(which, rounds):
    return with_range((row["client"][which] for row in rounds), 1000, "ms")


def with_range(numbers, factor, unit):
    """Returns the median with its unit, then the lowest and the highest number."""
    found = [number * factor for number in numbers]
    return f"{median(found):,.0f} {unit} ({min(found):,.0f}-{max(found):,.0f})"


def failures(rounds):
    return f"{sum(row['client']['failed'] for row in rounds)} of {sum(row['client']['ops'] for row in rounds):,}"


# ---- what must hold


def expect(rows):
    """Checks osd-migrate by its own promises: each byte moves once, and no client notices. All ways had the same data."""
    every = [bytes for rounds in rows.values() for bytes in held(rounds)]
    assert min(every) >= LEAST and max(every) < 1.02 * min(every), every
    for row in rows[OURS]:
        assert not row["client"]["failed"] and not row["client"]["slow"], row
        # The counters of the primaries miss up to a tenth: another primary may be behind.
        assert row["moved"] < 1.15 * row["held"], row
    assert mid(multiples(rows[OURS])) < 1.15 * mid(multiples(rows[BY_HAND])), rows
