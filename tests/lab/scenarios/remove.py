"""An OSD is removed by request, under a client's load: emptied by its CRUSH weight, destroyed, purged, its disk wiped.

Pools of size 3 and 2 share eight OSDs on three hosts. The OSD has an upmap and an in-weight of its own. First it is
only listed; then a run without `--removals` refuses it; then it is kept while it is emptied, which restores its weight
and upmap exactly. At last it is removed, although the runner's pod is killed meanwhile. Ceph's map and statistics are
read continuously: no PG lacks a replica, except that objects of PGs that come back are recovered. Where the PGs are
then, and how many bytes moved, is as `plan --remove` had computed. With --full also an OSD whose disk is selected:
refused, and then removed with a marked disk; one whose disk is dead; one that is replaced under its id on a new disk;
and one on each other release of Ceph.
"""

import json

from . import empty, forecast, kills, sick
from .disks import attached
from .new_osds import by_id
from .provision import answer
from .replicas import Watch, returned, trim

OSD, HOST = 4, "h2"  # osd.1 and osd.7 are on this host, too
MARKED, DEAD = 6, 3  # on h1
REPLACED, ITS_HOST = 5, "h3"
WORDS = "yes-really-remove-osds"
# A migration is not confirmed: the request has a confirmation of its own.
RUN = ["run", "--removals"]
MIB = 1 << 20
WEIGHT = "0.9"
SOME_LEFT = ("Failed", 12)
REQUESTS = "osd-migrate-requests"
# Commands that empty an OSD, or give up data or an id.
REWEIGHT, DESTROY, PURGE = "osd crush reweight", "osd destroy-actual", "osd purge-actual"
ENDS = """set -e -o pipefail; blockdev --flushbufs "$1"; last=$(($(blockdev --getsize64 "$1") / 1048576 - 1))
for at in 0 $last; do dd if="$1" bs=1M skip=$at count=1 iflag=direct status=none; done | tr -d '\\0' | wc -c"""


def run(world):
    bring_up(world)
    before, epoch = world.shape(), world.epoch()
    with Watch(OSD) as watch:
        world.until("the first statistics", 10, watch.last)
        listed(world)
        not_enabled(world, before)
        kept(world, watch, before)
        at = watch.now()
        removed(world, watch, before)
        empty.expect_replicas(watch, at)
    world.lab("verify")
    empty.ended(world, epoch)
    world.say("all objects are equal, and no PG lacked a replica")
    if world.full:
        selected(world)
        dead(world)
        replaced(world)
        for release in ("18.2", "20.2"):
            world.down()
            removed_on(world, release)


def removed_on(world, release):
    """Checks that the OSD is removed as forecast on another release: mClock moves its data at its own pace there."""
    bring_up(world, release)
    before, epoch, up = world.shape(), world.epoch(), forecast.up_sets(world)
    with Watch(OSD) as watch:
        world.until("the first statistics", 10, watch.last)
        found, moved, at = forecast.forecast(world, OSD), watch.moved, watch.now()
        request(world, OSD)
        job = world.start("removed", RUN)
        result = world.wait_for(job, 300)
        assert result == ("Complete", 0), (result, world.log(job))
        gone(world, OSD, before)
        expected = {**up, **{pg["pg"]: sorted(pg["then"]) for pg in found["pgs"]}}
        assert forecast.up_sets(world) == expected, "the PGs are not where they were forecast"
        expect_stopped_empty(world, watch, at)
        bytes_as_forecast(world, found, watch.moved - moved)
        empty.expect_replicas(watch, at)
    world.lab("verify")
    empty.ended(world, epoch)
    world.say(f"{release}: removed; all objects are equal, and no PG lacked a replica")


def bring_up(world, release=None):
    world.up(osds=8, layout="0=raw", release=release)
    pool_of_two(world, pgs="16", objects="300")
    world.lab("ceph", "osd", "reweight", str(OSD), WEIGHT)
    empty.clean(world)
    forecast.upmap(world, OSD)
    empty.clean(world)
    trim(world)


def pool_of_two(world, pgs, objects):
    """Creates a pool of size 2 beside that of size 3, fills both, and starts a client of both."""
    world.lab("ceph", "osd", "pool", "create", "two", pgs, pgs, "replicated")
    world.lab("ceph", "osd", "pool", "application", "enable", "two", "test")
    for name, value in (("pg_autoscale_mode", "off"), ("size", "2"), ("min_size", "1")):
        world.lab("ceph", "osd", "pool", "set", "two", name, value)
    for pool, number in (("labpool", "600"), ("two", objects)):
        world.lab("write", number, "96", pool)
    world.lab("client", "start", "labpool,two")


def person(world, *args, code=0):
    """Runs a command as a person does who has kubectl and no Ceph, and returns all that it prints."""
    done = world.lab("net", world.binary, *args, check=False)
    text = done.stdout + done.stderr
    assert done.returncode == code, f"{' '.join(args)}: exit {done.returncode}, expected {code}\n{text}"
    return text


def request(world, osd, *more):
    person(world, "remove", f"osd.{osd}", *more, "--confirm", WORDS)
    found = requests(world)
    assert list(found) == [f"osd-{osd}"] and found[f"osd-{osd}"]["fsid"] == world.fsids()[osd], found
    return found[f"osd-{osd}"]


def requests(world):
    found = world.get("configmap", REQUESTS) or {}
    return {key: json.loads(text) for key, text in found.get("data", {}).items()}


def sent(world, prefix):
    """Returns the commands of osd-migrate with this prefix."""
    return [line for line in world.written() if f'"{prefix}"' in line and "entity='client.osd-migrate'" in line]


def crush_weight(world, osd):
    """Returns the CRUSH weight of an OSD, or None if it has no CRUSH item."""
    return next((node["crush_weight"] for node in world.ceph("osd", "tree")["nodes"] if node["id"] == osd), None)


# ---- it is not removed


def listed(world):
    """Checks that a removal without its confirmation, or with that of a migration, requests nothing."""
    text = person(world, "remove", f"osd.{OSD}", code=3)
    missing = [word for word in (f"osd.{OSD}", HOST, world.fsids()[OSD], WORDS) if word not in text]
    assert not missing, f"{missing} are not in:\n{text}"
    done = world.lab("net", world.binary, "remove", f"osd.{OSD}", "--confirm", "yes-really-migrate-osds", check=False)
    assert done.returncode and WORDS in done.stderr, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert not requests(world), requests(world)
    world.say(f"without --confirm, nothing is requested: {text.strip()[-300:]}")


def not_enabled(world, before):
    """Checks that a run without --removals reports the request, and changes nothing."""
    found = request(world, OSD)
    assert found["disk"] == "wipe" and found["since"], found
    written = world.written()
    job = world.start("not-enabled", ["run"])
    result = world.wait_for(job, 60)
    log = world.log(job)
    assert result == SOME_LEFT and "this run removes no OSDs" in log, (result, log)
    assert world.written() == written, f"Ceph was changed: {world.written()[len(written):]}"
    assert requests(world) == {f"osd-{OSD}": found}, requests(world)
    unchanged(world, before)
    world.say(f"a run without --removals: {log.strip().splitlines()[-1][-300:]}")


def kept(world, watch, before):
    """Checks that an OSD that is kept while it is emptied gets its weight and its upmap again, exactly."""
    empty.slow(world, 0.1)
    job = world.start("kept", RUN)
    emptying(world, watch, job)
    person(world, "keep", f"osd.{OSD}")
    assert not requests(world), requests(world)
    world.until("the weight to be restored", 60, lambda: crush_weight(world, OSD))
    left = len(watch.last().names)
    empty.slow(world, 0)
    result = world.wait_for(job, 120)
    assert result == ("Complete", 0), (result, world.log(job))
    empty.clean(world)
    unchanged(world, before)
    back = returned(watch.since(0))
    empty.expect_replicas(watch, 0, back)
    assert len(sent(world, REWEIGHT)) == 2, sent(world, REWEIGHT)
    assert not sent(world, DESTROY) and not sent(world, PURGE), "the OSD was kept"
    words = f"kept while {left} PGs were on it, and {len(back)} came back"
    world.say(f"{words}: CRUSH weight, upmap and in-weight are exactly as before")


def emptying(world, watch, job):
    """Waits until the CRUSH weight is 0, with PGs on the OSD."""

    def is_dropped():
        assert world.result(job) is None, f"osd.{OSD} was not emptied:\n{world.log(job)}"
        return crush_weight(world, OSD) == 0

    world.until(f"the CRUSH weight of osd.{OSD} to be 0", 120, is_dropped)
    assert watch.last().names, f"osd.{OSD} was emptied too fast for this test"


def unchanged(world, before):
    assert not world.records(), f"open records: {list(world.records())}"
    world.expect_nothing_left()
    assert world.shape() == before, f"the cluster changed its shape:\n{before}\n{world.shape()}"
    assert world.is_ready(OSD) and sick.slot(world, OSD)["up"], f"osd.{OSD} does not serve"


# ---- it is removed


def removed(world, watch, before):
    """Checks that the OSD is removed as forecast, although the runner's pod is killed while the OSD is emptied."""
    found, up = forecast.forecast(world, OSD), forecast.up_sets(world)
    expected = {**up, **{pg["pg"]: sorted(pg["then"]) for pg in found["pgs"]}}
    reweights, at, moved = len(sent(world, REWEIGHT)), watch.now(), watch.moved
    empty.slow(world, 0.1)
    request(world, OSD)
    job = world.start("removed", RUN)
    emptying(world, watch, job)
    not_fenced(world, [OSD])
    kills.KINDS["runner pod"](world, job)
    world.say(f"the runner's pod is killed while {len(watch.last().names)} PGs are on osd.{OSD}")
    empty.slow(world, 0)
    result = world.wait_for(job, 300)
    assert result == ("Complete", 0), (result, world.log(job))
    gone(world, OSD, before)
    assert forecast.up_sets(world) == expected, "the PGs are not where they were forecast"
    expect_stopped_empty(world, watch, at)
    assert len(sent(world, REWEIGHT)) == reweights + 1, sent(world, REWEIGHT)
    destroyed, purged = sent(world, DESTROY), sent(world, PURGE)
    assert len(destroyed) == len(purged) == 1, (destroyed, purged)
    written = world.written()
    assert written.index(destroyed[0]) < written.index(purged[0]), "purged before it was destroyed"
    assert not sent(world, "osd out"), sent(world, "osd out")
    bytes_as_forecast(world, found, watch.moved - moved)
    assert ends(world, OSD) == 0, f"the disk of osd.{OSD} is not blank: {ends(world, OSD)} bytes at its ends are not 0"
    record = world.closed()[-1]
    assert (record["osd"], record["outcome"]) == (OSD, "removed"), record
    assert any(event["reason"] == "OsdRemoved" for event in world.get("events")["items"]), "no event"
    world.say(f"osd.{OSD}: " + " ".join(f"{word}@{moment[11:19]}" for word, moment in record["milestones"]))


def not_fenced(world, osds):
    """Checks that nothing but the weight is changed while OSDs are emptied."""
    labels = world.get("cephcluster", "rook-ceph")["metadata"].get("labels", {})
    assert "ceph.rook.io/do-not-reconcile" not in labels and world.drain_limit() == 1, labels
    assert not any(sick.has_noout(world, osd) for osd in osds), "one has flags"


def gone(world, osd, before):
    """Checks that nothing is left of an OSD in Ceph and Kubernetes, and that all others are as before."""
    absent(world, osd)
    nothing_left(world)
    unchanged_but(world, before, {osd})


def absent(world, osd):
    name = f"osd.{osd}"
    dump, crush = world.ceph("osd", "dump"), world.ceph("osd", "crush", "dump")
    assert osd not in [slot["osd"] for slot in dump["osds"]], f"{name} is in the osdmap"
    # The dump has an entry `deviceN` for each id below the highest one that has no item.
    assert name not in [device["name"] for device in crush["devices"]], f"{name} is in CRUSH"
    assert name not in [entry["entity"] for entry in world.ceph("auth", "ls")["auth_dump"]], f"{name} has a key"
    assert not world.get("deployment", f"rook-ceph-osd-{osd}"), f"{name} has a Deployment"
    world.until(f"the pod of {name} to be gone", 30, lambda: not world.list("pods", selector=f"ceph-osd-id={osd}"))


def nothing_left(world):
    assert not requests(world), requests(world)
    world.expect_nothing_left()
    assert sick.pg_states(world) == {"active+clean"}, sick.pg_states(world)


def unchanged_but(world, before, osds, host=None):
    """Checks that all other OSDs and hosts are as before."""
    now, then = others(world.shape(), osds, host), others(before, osds, host)
    assert now == then, f"other OSDs were changed:\n{then}\n{now}"


def others(shape, osds, host):
    """Returns what a removal must not change: the other OSDs, their CRUSH items, flags, rules and upmaps."""
    names = lambda item: osds & {one[side] for one in item["mappings"] for side in ("from", "to")}  # noqa: E731
    buckets = shape["crush"]["buckets"].values()
    stays = lambda item: item[0] >= 0 and item[0] not in osds  # noqa: E731
    return {
        "osds": [row for row in shape["osds"] if row[0] not in osds],
        "devices": [device for device in shape["crush"]["devices"] if device[0] not in osds],
        "items": sorted((name, *item) for name, _, _, found in buckets for item in found if stays(item)),
        "buckets": sorted(name for name, *_ in buckets if name.split("~")[0] != host),  # a class has a tree of its own
        "upmaps": [item for item in shape["upmaps"] if not names(item)],
        **{key: shape[key] for key in ("flags", "node_flags", "upmap_primaries")},
        "rules": shape["crush"]["rules"],
    }


def expect_stopped_empty(world, watch, at):
    """Checks that no PG needed the OSD before its stop, and that it never came up again."""
    samples = watch.since(at)
    down = next(number for number, sample in enumerate(samples) if not sample.up)
    assert not any(sample.up for sample in samples[down:]), "it came up again"
    calm = [sample for sample in samples[:down] if sample.at > samples[down].at - empty.CALM]
    assert len(calm) > empty.CALM, f"only {len(calm)} samples"
    assert calm[-1].safe and not any(sample.names for sample in calm), calm
    assert not any(sample.names for sample in samples[down:]), "PGs named it while it was down"
    world.say(f"down {samples[down].at - at:.0f} s later; no PG named it in the {empty.CALM} s before")


def bytes_as_forecast(world, found, moved):
    """Compares the bytes that the primaries counted with those of the forecast, while a client writes."""
    forecasted, held = found["movedBytes"], found["heldBytes"]
    assert forecasted * 0.7 - 4 * MIB < moved < forecasted * 1.3 + 4 * MIB, f"moved: {moved}, forecast: {forecasted}"
    world.say(
        f"{moved / MIB:.1f} MiB were moved, {moved / held:.2f} times what it had; "
        f"forecast: {forecasted / MIB:.1f} MiB, {forecasted / held:.2f} times"
    )


def ends(world, osd):
    """Returns how many bytes of the first and the last MiB of an OSD's disk are not 0, read from the disk."""
    host, device = attached(world)[f"osd{osd}"]
    return int(world.lab("on", host, "bash", "-c", ENDS, "-", device).stdout)


# ---- --full


def selected(world):
    """Checks that an OSD whose disk is selected is refused, and removed if its disk is marked."""
    before = world.shape()
    world.storage(useAllDevices=True)
    args = [*RUN, "--host", attached(world)[f"osd{MARKED}"][0]]  # so that the blank disk on h2 gets no OSD
    request(world, MARKED)
    job = world.start("selected", args)
    result = world.wait_for(job, 120)
    log = world.log(job)
    assert result == SOME_LEFT and "so it would become an OSD again" in log, (result, log)
    assert world.shape() == before and not world.records(), f"osd.{MARKED} was changed:\n{log}"
    assert request(world, MARKED, "--disk", "mark")["disk"] == "mark"
    job = world.start("marked", args)
    result = world.wait_for(job, 300)
    assert result == ("Complete", 0), (result, world.log(job))
    gone(world, MARKED, before)
    not_available(world)
    world.lab("verify")
    world.storage(useAllDevices=False)


def not_available(world):
    """Checks that ceph-volume and osd-migrate reject the marked disk, and osd-migrate takes the blank one."""
    found = {osd: inventory(world, osd) for osd in (OSD, MARKED)}
    is_gpt = {osd: "Has GPT headers" in disk["rejected_reasons"] for osd, disk in found.items()}
    assert is_gpt == {OSD: False, MARKED: True} and not found[MARKED]["available"], found
    job = world.start("inventory", ["plan", "--inventory", "-o", "json"])
    world.wait_for(job, 120)
    disks = {disk["stable"]: disk for disk in answer(world.log(job))["disks"]}
    verdicts = {osd: disks[by_id(f"osd{osd}")]["verdict"] for osd in (OSD, MARKED)}
    assert verdicts == {OSD: "new", MARKED: "rejected"}, disks
    why = disks[by_id(f"osd{MARKED}")]["why"]
    assert f"osd.{MARKED}" in why, why
    world.say(f"marked: ceph-volume says {found[MARKED]['rejected_reasons']}, osd-migrate says {why}")


def inventory(world, osd):
    host, device = attached(world)[f"osd{osd}"]
    return json.loads(world.lab("on", host, "ceph-volume", "inventory", device, "--format", "json").stdout)


def dead(world):
    """Checks that an OSD whose disk is dead is removed once it is out and its data is on other OSDs."""
    sick.kill_osd(world, DEAD)
    before, up = world.shape(), forecast.up_sets(world)
    found = forecast.forecast(world, DEAD)
    request(world, DEAD)
    job = world.start("dead", RUN)
    result = world.wait_for(job, 300)
    assert result == ("Complete", 0), (result, world.log(job))
    expected = {**up, **{pg["pg"]: sorted(pg["then"]) for pg in found["pgs"]}}
    world.until("the PGs to be mapped as forecast", 60, lambda: forecast.up_sets(world) == expected)
    world.until("the PGs to be clean", 180, lambda: sick.pg_states(world) == {"active+clean"})
    gone(world, DEAD, before)
    world.lab("verify")
    why = world.closed()[-1].get("why") or ""
    assert "its disk was not read" in why, world.closed()[-1]
    world.say(f"osd.{DEAD}, whose disk is dead, is removed: {why}")


def replaced(world):
    """Checks that a new disk gets the id of a dead OSD, in its place in CRUSH."""
    sick.kill_osd(world, REPLACED)
    weight = crush_weight(world, REPLACED)
    request(world, REPLACED, "--keep-id")
    job = world.start("kept-id", RUN)
    result = world.wait_for(job, 120)
    assert result == ("Complete", 0), (result, world.log(job))
    slot = next(slot for slot in world.ceph("osd", "dump")["osds"] if slot["osd"] == REPLACED)
    assert "destroyed" in slot["state"] and not slot["up"], slot
    assert not world.get("deployment", f"rook-ceph-osd-{REPLACED}") and not requests(world), requests(world)
    world.expect_nothing_left()
    device = world.lab("disk", ITS_HOST, "6", "replacement").stdout.strip()
    world.storage(useAllNodes=False, nodes=[{"name": ITS_HOST, "devices": [{"name": device}]}])
    job = world.start("refilled", ["run", "--confirm", "yes-really-migrate-osds"])
    result = world.wait_for(job, 240)
    assert result == ("Complete", 0), (result, world.log(job))
    world.until(f"the pod of osd.{REPLACED} to be ready", 60, lambda: world.is_ready(REPLACED))
    assert sick.slot(world, REPLACED)["up"], f"osd.{REPLACED} does not serve"
    assert crush_weight(world, REPLACED) == weight, (weight, crush_weight(world, REPLACED))
    world.until("all PGs to be clean", 120, lambda: sick.pg_states(world) == {"active+clean"})
    world.lab("verify")
    world.say(f"osd.{REPLACED}: its disk was dead, and a new disk has its id and its place in CRUSH")
