"""OSDs of the same size are recreated on their disks: by osd-migrate, and by hand in three usual ways.

Eight OSDs on four hosts, at least 1 GiB of data on each, and a client. osd.0 is legacy, and osd-migrate migrates it. The
others are recreated by a script that waits for what Ceph answers, without a pause for thought. Bytes are those that the
primaries counted. The scenario prints a table.
"""
import json
import time

from . import course, empty, sick
from .disks import attached
from .replicas import STATISTICS, Watch, trim

MIB = 1 << 20
OBJECTS, MEAN_KIB = 3200, 2048  # 6.3 GiB, three times, on eight OSDs: 1.0 to 4.1 GiB each, because PGs are few
LEAST = 1 << 30
POLL = 0.3
RUN = ["run", "--confirm", "yes-really-migrate-osds"]


def run(world):
    world.up(osds=8, layout="0=bluestore-dev", hosts=4)
    world.lab("write", str(OBJECTS), str(MEAN_KIB), timeout=1800)
    empty.clean(world)
    trim(world)
    world.say(f"{world.lab('ceph', '--version').stdout.strip()}")
    before = world.shape()
    ways = [("osd-migrate", by_osd_migrate), ("by hand, in place", in_place), ("drained first", drained), ("purged, and created again", purged)]
    rows = [measured(world, osd, name, way) for osd, (name, way) in enumerate(ways)]
    world.lab("verify", timeout=1800)
    assert world.shape() == before, f"not as before:\n{before}\n{world.shape()}"
    show(world, rows)
    expect(rows)


# ---- four ways


def by_osd_migrate(world, osd, _watch):
    with course.Pods(world) as pods:
        job = world.start("bench", [*RUN, "--select", f"osd.{osd}"])
        result = world.wait_for(job, 1800)
    assert result == ("Complete", 0), (result, world.log(job))
    world.say(f"parts of osd.{osd}:\n{course.text(course.course(world, osd, pods))}")


def in_place(world, osd, _watch):
    """The least that a careful person does: the data of the other replicas fills the OSD again."""
    world.until(f"Ceph to agree to the stop of osd.{osd}", 60, lambda: not world.lab("ceph", "osd", "ok-to-stop", str(osd), check=False).returncode)
    world.lab("ceph", "osd", "set", "noout")
    stop(world, osd)
    world.lab("ceph", "osd", "destroy", str(osd), "--yes-i-really-mean-it")
    recreate(world, osd, "--osd-id", str(osd))
    world.lab("ceph", "osd", "unset", "noout")


def drained(world, osd, watch):
    """The data moves away before the stop, and back afterwards."""
    world.lab("ceph", "osd", "out", str(osd))
    emptied(world, osd, watch)
    stop(world, osd)
    world.lab("ceph", "osd", "destroy", str(osd), "--yes-i-really-mean-it")
    recreate(world, osd, "--osd-id", str(osd))
    world.lab("ceph", "osd", "in", str(osd))


def purged(world, osd, watch):
    """The OSD is removed as Rook's documentation says, and a new one is created on its disk."""
    world.lab("ceph", "osd", "out", str(osd))
    emptied(world, osd, watch)
    stop(world, osd)
    world.lab("ceph", "osd", "purge", str(osd), "--yes-i-really-mean-it")
    recreate(world, osd)  # the lowest unused id is that of the purged OSD


def emptied(world, osd, watch):
    world.until(f"osd.{osd} to be empty", 1800, watch.is_empty, pause=POLL)


def stop(world, osd):
    world.kubectl("scale", "deployment", f"rook-ceph-osd-{osd}", "--replicas=0")
    world.until(f"osd.{osd} to be down", 90, lambda: not sick.slot(world, osd)["up"], pause=POLL)
    world.until("its pod to be gone", 90, lambda: not world.list("pods", selector=f"ceph-osd-id={osd}"), pause=POLL)


def recreate(world, osd, *options):
    """Wipes the disk of a stopped OSD, prepares a new OSD on it, and starts it by the Deployment of the old one."""
    host, device = attached(world)[f"osd{osd}"]
    world.lab("on", host, "blkdiscard", "--force", device)
    world.lab("settle", host)
    world.lab("on", host, "ceph-volume", "raw", "prepare", "--bluestore", "--data", device, *options, timeout=300)
    folder = f"/var/lib/ceph/osd/ceph-{osd}"
    fsid = world.lab("on", host, "cat", f"{folder}/fsid").stdout.strip()
    world.lab("on", host, "umount", folder)
    world.lab("on", host, "rmdir", folder)
    found = world.get("deployment", f"rook-ceph-osd-{osd}")
    old = next(e["value"] for e in found["spec"]["template"]["spec"]["containers"][0]["env"] if e["name"] == "ROOK_OSD_UUID")
    new = json.loads(json.dumps(found).replace(old, fsid))
    new["spec"]["replicas"] = 1
    world.kubectl("replace", "-f", "-", stdin=json.dumps(new))
    world.until(f"osd.{osd} to be up", 120, lambda: sick.slot(world, osd)["up"], pause=POLL)


# ---- what is measured


def measured(world, osd, name, way):
    world.lab("client", "start")
    with Watch(osd) as watch:
        world.until("the first statistics", 20, watch.last)
        held, at, moved = watch.last().held, watch.now(), watch.moved
        way(world, osd, watch)
        time.sleep(STATISTICS)
        world.until("all PGs to be clean", 1800, lambda: watch.last().clean)
        samples, moved = watch.since(at), watch.moved - moved
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    unclean = [sample.at for sample in samples if not sample.clean]
    lacking = [sample.at for sample in samples if sample.lacking]
    down = [sample.at for sample in samples if not sample.up]
    row = {
        "name": name,
        "held": held,
        "moved": moved,
        "took": max(unclean) - at,
        "down": max(down) - min(down),
        "lacked": max(lacking) - min(lacking) if lacking else 0.0,
        "client": client,
    }
    world.say(f"osd.{osd}, {name}: {row}")
    return row


def show(world, rows):
    lines = [
        ("", *(row["name"] for row in rows)),
        ("data on the OSD", *(f"{row['held'] / MIB:,.0f} MiB" for row in rows)),
        ("data moved", *(f"{row['moved'] / MIB:,.0f} MiB" for row in rows)),
        ("multiple", *(f"{row['moved'] / row['held']:.2f}" for row in rows)),
        ("until all PGs are clean", *(f"{row['took']:.0f} s" for row in rows)),
        # Data moves from when an OSD is up until no PG lacks a replica. Drained OSDs have their data elsewhere meanwhile.
        ("of these without the copying", *(f"{row['took'] - max(row['lacked'] - row['down'], 0):.0f} s" if row["lacked"] else "" for row in rows)),
        ("OSD down", *(f"{row['down']:.0f} s" for row in rows)),
        ("PGs lack a replica", *(f"{row['lacked']:.0f} s" for row in rows)),
        ("client: median, 99 %, longest", *(latencies(row["client"]) for row in rows)),
        ("client: failed", *(f"{row['client']['failed']} of {row['client']['ops']:,}" for row in rows)),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    world.say(f"one OSD of 8 on 4 hosts:\n{table}")


def latencies(client):
    return ", ".join(f"{client[which] * 1000:,.0f} ms" for which in ("p50_seconds", "p99_seconds", "max_seconds"))


def expect(rows):
    """Checks osd-migrate by its own promises: each byte moves once, and no client notices."""
    ours, by_hand, *_ = rows
    assert all(row["held"] >= LEAST for row in rows), rows
    assert not ours["client"]["failed"] and not ours["client"]["slow"], ours
    # The counters of the primaries miss up to a tenth: another primary may be behind.
    assert ours["moved"] < 1.15 * ours["held"], ours
    assert ours["moved"] / ours["held"] < 1.15 * by_hand["moved"] / by_hand["held"], rows
