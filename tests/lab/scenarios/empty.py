"""An OSD whose pools cannot lose a replica is emptied before its stop, under a client's load.

Pools of size 2 and 3 and an erasure-coded pool with one coding chunk share the OSDs. The OSD has an
in-weight of its own and an upmap. First it cannot be emptied, for lack of space; then a run is cancelled
while it is emptied; then `--empty never` refuses it. At last it is emptied, stopped, recreated and filled
again, although the runner's pod is killed and the run is paused meanwhile. The run sets noscrub, except while it
is paused, and leaves nodeep-scrub, which another client set. In the same way it sets the options with which recovery
is faster, and leaves one that has a value. Ceph's map and statistics are read continuously: no PG ever lacks a replica. With --full also on other releases, with another client that
marks the OSD in, with OSDs that get full meanwhile, and an OSD elsewhere that dies before the stop.
"""

import json
import time

from . import kills, sick
from .replicas import Watch, returned, trim

OSD, BESIDE, ELSEWHERE = 1, 4, 3  # osd.4 is on the host of osd.1
WEIGHT = "0.9"
RUN = ["run", "--confirm", "yes-really-migrate-osds", "--select", f"osd.{OSD}"]
MIB = 1 << 20
SOME_NOT_MIGRATED = ("Failed", 12)
CANCELLED = ("Failed", 3)
# Set by another client: a run with --no-scrub leaves it.
THEIRS = "nodeep-scrub"
# What a run with --recovery fast sets for all OSDs, by the queue of the OSDs: up to 16, and later.
WPQ = {"osd_max_backfills": 3, "osd_recovery_sleep_hdd": 0, "osd_recovery_sleep_hybrid": 0}
MCLOCK = {"osd_mclock_profile": "high_recovery_ops"}
# The lab has another value of it: such a run leaves it.
THEIR_OPTION = "osd_max_backfills"
# Seconds before the stop in which no PG names the OSD: the run sets the fence and the flags in between.
CALM = 3
# Seconds from the mark-out to the stop, at least: Ceph's statistics are behind its map.
HEARD = 10
# Seconds of a pause while it is empty.
PAUSED = 15
USUAL_RATIOS = ("0.85", "0.9")
# Times the bytes that the OSD had: they move away and back. What a primary recovered after its last report is not counted
# if another OSD is primary then: 1.85 to 1.93 were counted on a slow computer.
LEAST, MOST = 1.7, 2.3


def run(world):
    bring_up(world, f"{OSD}=filestore-part")
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    with Watch(OSD) as watch:
        world.until("the first statistics", 10, watch.last)
        no_space(world, before)
        cancelled(world, watch, before)
        never(world, before)
        migrated(world, watch, before, fsids, disturbed)
    ended(world, epoch)
    if world.full:
        others_interfere(world)
        for release in ("18.2", "20.2"):
            on_release(world, release)


def bring_up(world, layout, release=None):
    world.up(layout=layout, release=release)
    world.lab("ceph", "osd", "erasure-code-profile", "set", "k2m1", "k=2", "m=1", "crush-failure-domain=host")
    world.lab("ceph", "osd", "pool", "create", "two", "16", "16", "replicated")
    world.lab("ceph", "osd", "pool", "create", "coded", "16", "16", "erasure", "k2m1")
    for pool in ("two", "coded"):
        world.lab("ceph", "osd", "pool", "application", "enable", pool, "test")
        world.lab("ceph", "osd", "pool", "set", pool, "pg_autoscale_mode", "off")
    for name, value in (("size", "2"), ("min_size", "1")):
        world.lab("ceph", "osd", "pool", "set", "two", name, value)
    world.lab("ceph", "osd", "pool", "set", "coded", "min_size", "2")
    for pool, objects in (("labpool", "600"), ("two", "300"), ("coded", "300")):
        world.lab("write", objects, "96", pool)
    world.lab("client", "start", "labpool,two,coded")
    customize(world)
    trim(world)


def customize(world):
    """Sets what the emptying and the migration must restore: an in-weight, and an upmap onto the OSD."""
    world.lab("ceph", "osd", "set-require-min-compat-client", "luminous")
    world.lab("ceph", "osd", "reweight", str(OSD), WEIGHT)
    clean(world)
    pgs = world.ceph("pg", "ls-by-pool", "labpool")["pg_stats"]
    pg = next(pg["pgid"] for pg in pgs if BESIDE in pg["up"])
    world.lab("ceph", "osd", "pg-upmap-items", pg, str(BESIDE), str(OSD))
    clean(world)
    assert world.ceph("osd", "dump")["pg_upmap_items"], "Ceph did not accept the upmap"


def clean(world):
    time.sleep(2)  # the statistics are behind the map
    world.lab("wait-clean", "120")


def slow(world, seconds):
    """Sets a pause after each object that is moved, so that an emptying takes a while."""
    world.lab("ceph", "config", "set", "osd", "osd_recovery_sleep", str(seconds))


def options(world):
    """Returns the options about recovery that have a value for all OSDs."""
    dump = [entry for entry in world.ceph("config", "dump") if (entry["section"], entry["mask"]) == ("osd", "")]
    return {entry["name"]: number(entry["value"]) for entry in dump if entry["name"] in {**WPQ, **MCLOCK}}


def number(text):
    """Returns the number that a text is, or the text: the mons print 0 as 0.000000."""
    try:
        return float(text)
    except ValueError:
        return text


def remove_options(world, names):
    """Removes these options for all OSDs, and returns the values that they had."""
    found = {name: value for name, value in options(world).items() if name in names}
    for name in found:
        world.lab("ceph", "config", "rm", "osd", name)
    return found


def set_options(world, values):
    for name, value in values.items():
        world.lab("ceph", "config", "set", "osd", name, str(value).removesuffix(".0"))


def outs(world):
    """Returns the `osd out` commands of osd-migrate."""
    return [line for line in world.written() if '"osd out"' in line and "entity='client.osd-migrate'" in line]


def expect_as_before(world, before, watch=None):
    assert not world.records(), f"open records: {list(world.records())}"
    world.expect_nothing_left()
    if watch:
        clean(world)
    assert world.shape() == before, f"the cluster changed its shape:\n{before}\n{world.shape()}"
    assert world.is_ready(OSD) and sick.slot(world, OSD)["up"], f"osd.{OSD} does not serve"


# ---- it is not emptied


def no_space(world, before):
    """Checks that the OSD is skipped, and nothing changes, if another OSD would get too full."""
    used = max(node["utilization"] for node in world.ceph("osd", "df")["nodes"]) / 100
    ratios(world, f"{used + 0.001:.4f}", f"{used + 0.0015:.4f}")
    ratios_are_seen(world)
    job = world.start("no-space", RUN)
    result = world.wait_for(job, 120)
    log = world.log(job)
    assert result == SOME_NOT_MIGRATED, (result, log)
    said = [line for line in log.splitlines() if f"osd.{OSD} can't be emptied" in line]
    assert said and ("backfillfull at" in said[-1] or "nearfull at" in said[-1]), log
    assert not outs(world), outs(world)
    ratios(world, *USUAL_RATIOS)
    expect_as_before(world, before)
    world.say(f"too little space: {said[-1][-300:]}")


def ratios(world, nearfull, backfillfull):
    """Sets the ratios in the order in which they stay in order."""
    commands = [("set-nearfull-ratio", nearfull), ("set-backfillfull-ratio", backfillfull)]
    for command, ratio in commands if nearfull < "0.5" else reversed(commands):
        world.lab("ceph", "osd", command, ratio)


def ratios_are_seen(world):
    checks = world.ceph("health")["checks"]
    assert not {"OSD_NEARFULL", "OSD_BACKFILLFULL"} & checks.keys(), f"an OSD is too full already: {checks}"


def cancelled(world, watch, before):
    """Checks that a run that is cancelled while the OSD is emptied marks it in, and leaves all as before."""
    of_lab = remove_options(world, WPQ)
    slow(world, 0.05)
    job, at = world.start("cancelled", [*RUN, "--recovery", "fast"]), watch.now()
    emptying(world, watch, job)
    assert options(world) == WPQ, options(world)
    world.command("cancel")
    result = world.wait_for(job, 60)
    assert result == CANCELLED, (result, world.log(job))
    world.command("resume")
    assert sick.slot(world, OSD)["in"], f"osd.{OSD} is still out:\n{world.log(job)}"
    assert not options(world), options(world)
    set_options(world, of_lab)
    slow(world, 0)
    expect_as_before(world, before, watch)
    assert len(outs(world)) == 1, outs(world)
    fewest = min(len(sample.names) for sample in watch.since(at))
    expect_replicas(watch, at, returned(watch.since(at)))
    world.say(f"cancelled: marked in again, with {fewest} PGs still on it; all is as before")


def emptying(world, watch, job):
    """Waits until the OSD is marked out, with PGs on it."""

    def is_out():
        assert world.result(job) is None, f"osd.{OSD} was not marked out:\n{world.log(job)}"
        return not watch.last().is_in

    world.until(f"osd.{OSD} to be marked out", 120, is_out)
    assert watch.last().names, f"osd.{OSD} was emptied too fast for this test"


def never(world, before):
    """Checks that `--empty never` refuses the OSD."""
    written = len(outs(world))
    job = world.start("never", [*RUN, "--empty", "never"])
    result = world.wait_for(job, 60)
    log = world.log(job)
    assert result == SOME_NOT_MIGRATED and "no-redundancy" in log, (result, log)
    assert len(outs(world)) == written, outs(world)
    expect_as_before(world, before)
    world.say(f"--empty never: {log.strip().splitlines()[-1][-240:]}")


# ---- it is emptied


def migrated(world, watch, before, fsids, meanwhile, fast=WPQ):
    """Checks that the OSD is emptied, stopped without a PG, recreated, and marked in with its in-weight."""
    of_lab = remove_options(world, WPQ.keys() - {THEIR_OPTION})
    configured = options(world)
    faster = {**fast, **configured}
    assert len(configured) == 1 and len(faster) > 1 and faster != WPQ, (configured, faster)
    number, at, moved, held = len(outs(world)), watch.now(), watch.moved, watch.last().held
    world.lab("ceph", "osd", "set", THEIRS)
    job = world.start("empty", [*RUN, "--no-scrub", "--recovery", "fast"])
    emptying(world, watch, job)
    assert scrub_flags(world) == {"noscrub", THEIRS}, scrub_flags(world)
    assert options(world) == faster, options(world)
    recorded = world.until("the bytes to be recorded", 10, lambda: world.records()[OSD]["empty"]["bytes"])
    assert abs(recorded - held) < held / 10, f"recorded: {recorded}, held: {held}"
    meanwhile(world, watch, job, configured)
    world.until("the options to be set before the stop", 120, lambda: options(world) == faster)
    result = world.wait_for(job, 300)
    assert result == ("Complete", 0), (result, world.log(job))
    assert scrub_flags(world) == {THEIRS}, scrub_flags(world)
    assert options(world) == configured, options(world)
    world.say(f"recovery: {faster} while data moves, {configured} before and after")
    set_options(world, of_lab)
    world.lab("ceph", "osd", "unset", THEIRS)
    world.expect_migrated(before, fsids, [OSD])
    assert len(outs(world)) == number + 1, f"marked out more than once: {outs(world)[number:]}"
    expect_replicas(watch, at)
    expect_stopped_without_pg(world, watch, at)
    moved = watch.moved - moved
    assert LEAST * held < moved < MOST * held, f"moved: {moved / MIB:.1f} MiB, held: {held / MIB:.1f} MiB"
    words = f"{held / MIB:.1f} MiB, and {moved / MIB:.1f} MiB were moved: {moved / held:.2f} times"
    world.say(f"osd.{OSD} had {words}")
    record = world.closed()[-1]
    world.say(f"osd.{OSD}: " + " ".join(f"{word}@{at[11:19]}" for word, at in record["milestones"]))


def disturbed(world, watch, job, configured):
    """Kills the runner's pod, and pauses the run until the OSD is empty: it is not stopped."""
    kills.KINDS["runner pod"](world, job)
    world.command("pause")
    assert watch.last().names, f"osd.{OSD} was empty before the pause"
    world.say(f"paused and its pod killed while {len(watch.last().names)} PGs are on osd.{OSD}")
    slow(world, 0)
    world.until(f"osd.{OSD} to be empty", 90, lambda: not watch.last().names)
    world.until("the next pod to report the pause", 60, lambda: "[paused]" in world.log(job))
    world.until("noscrub to be unset", 30, lambda: scrub_flags(world) == {THEIRS})
    world.until("the options to be removed", 30, lambda: options(world) == configured)
    at = watch.now()
    time.sleep(PAUSED)
    calm = watch.since(at)
    assert calm and all(sample.up and not sample.is_in and not sample.names for sample in calm), calm
    assert world.result(job) is None and world.is_ready(OSD), world.log(job)
    print(world.command("status"), flush=True)
    world.say(f"paused: osd.{OSD} is empty, out and up for {PAUSED} s")
    world.command("resume")


def scrub_flags(world):
    """Returns which of the flags of scrubs are set."""
    return {"noscrub", THEIRS} & set(world.ceph("osd", "dump")["flags"].split(","))


def expect_replicas(watch, at, back=frozenset()):
    """Checks that no PG lacked a replica, at any moment since then. PGs that came back may have recovered objects."""
    watch.last()
    lacking = []
    for sample in watch.since(at):
        found = {pg: state for pg, state in sample.lacking.items() if pg not in back or "undersized" in state}
        lacking += [(round(sample.at, 1), found)] if found else []
    assert not lacking, f"PGs lacked a replica: {lacking}"


def expect_stopped_without_pg(world, watch, at):
    """Checks the moments before the stop, and those until the OSD is in again."""
    samples = watch.since(at)
    out = next(number for number, sample in enumerate(samples) if not sample.is_in)
    down = next(number for number, sample in enumerate(samples) if not sample.up)
    back = next(number for number, sample in enumerate(samples) if number > down and sample.is_in)
    assert out < down and all(not sample.is_in for sample in samples[out:back]), "it was in meanwhile"
    calm = [sample for sample in samples[out:down] if sample.at > samples[down].at - CALM]
    assert len(calm) > CALM, f"only {len(calm)} samples"
    assert samples[down].at - samples[out].at > HEARD, "it was stopped too early"
    assert all(sample.safe and not sample.names for sample in calm), calm
    assert not any(sample.names for sample in samples[down:back]), "PGs named it while it was down"
    early = [sample for sample in samples[out:down] if sample.safe and sample.names]
    empty = next(sample for sample in samples[out:down] if not sample.names)
    world.say(
        f"empty {empty.at - samples[out].at:.0f} s after it was marked out, down after "
        f"{samples[down].at - samples[out].at:.0f} s, in after {samples[back].at - samples[out].at:.0f} s; "
        f"`safe-to-destroy` said yes {len(early)} times while PGs named it"
    )


def ended(world, epoch):
    world.expect_downs_on_one_host(epoch)
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    world.say(f"client: {client}")
    assert client["ops"] > 100 and not client["failed"] and not client["slow"], client


# ---- --full


def others_interfere(world):
    """Checks an emptying that another client ends, and one while OSDs get full and an OSD elsewhere dies."""
    world.down()
    bring_up(world, f"{OSD}=filestore-part")
    before, fsids = world.shape(), world.fsids()
    marked_in(world, before)
    full_and_dead(world, before, fsids)
    world.lab("client", "stop")


def marked_in(world, before):
    slow(world, 0.05)
    with Watch(OSD) as watch:
        world.until("the first statistics", 10, watch.last)
        job = world.start("marked-in", RUN)
        emptying(world, watch, job)
        world.lab("ceph", "osd", "in", str(OSD))
        result = world.wait_for(job, 60)
        log = world.log(job)
        assert result == SOME_NOT_MIGRATED and "another client marked it in" in log, (result, log)
        slow(world, 0)
        expect_as_before(world, before, watch)
        expect_replicas(watch, 0)
    assert len(outs(world)) == 1, outs(world)
    world.say(f"`ceph osd in` of another client: osd.{OSD} is skipped in this run, and unchanged")


def full_and_dead(world, before, fsids):
    slow(world, 0.05)
    with Watch(OSD) as watch:
        world.until("the first statistics", 10, watch.last)
        job = world.start("full-and-dead", RUN)
        emptying(world, watch, job)
        ratios(world, "0.001", "0.0011")
        world.until("PGs that find an OSD too full", 60, lambda: "toofull" in " ".join(sick.pg_states(world)))
        log = world.until("the run to report it", 90, lambda: said(world, job, "toofull", "full"))
        world.say(f"OSDs are too full meanwhile: {log[-300:]}")
        assert watch.last().names and watch.last().up
        ratios(world, *USUAL_RATIOS)
        world.command("pause")  # it holds up the stop, not the emptying
        slow(world, 0)
        world.until(f"osd.{OSD} to be empty", 120, lambda: not watch.last().names)
        world.kubectl("scale", "deployment", f"rook-ceph-osd-{ELSEWHERE}", "--replicas=0")
        world.until(f"osd.{ELSEWHERE} to be down", 60, lambda: not sick.slot(world, ELSEWHERE)["up"])
        world.command("resume")
        log = world.until("the run to report it", 90, lambda: said(world, job, "lacks a replica elsewhere"))
        time.sleep(20)
        assert world.result(job) is None and world.is_ready(OSD) and watch.last().up, world.log(job)
        world.say(f"osd.{ELSEWHERE} died: {log[-240:]}")
        world.kubectl("scale", "deployment", f"rook-ceph-osd-{ELSEWHERE}", "--replicas=1")
        result = world.wait_for(job, 300)
        assert result == ("Complete", 0), (result, world.log(job))
        stopped = next(sample for sample in watch.samples if not sample.up)
        calm = [sample for sample in watch.samples if stopped.at - CALM < sample.at < stopped.at]
        assert calm[-1].clean and not any(sample.names for sample in calm), calm
    world.expect_migrated(before, fsids, [OSD])


def said(world, job, *words):
    """Returns the last line of the log that has one of these words."""
    lines = [line for line in world.log(job).splitlines() if any(word in line for word in words)]
    return lines[-1] if lines else None


def on_release(world, release):
    world.down()
    bring_up(world, f"{OSD}=bluestore-dev", release)
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    with Watch(OSD) as watch:
        world.until("the first statistics", 10, watch.last)
        migrated(world, watch, before, fsids, lambda *_: None, MCLOCK)
    ended(world, epoch)
    world.say(f"the same on {release}")
