"""An OSD is removed beside a running Rook operator, which a script simulates, under a client's load.

Rook reconciles all the time: it starts Deployments that are stopped, creates those of OSDs that it finds on disks, also
if Ceph does not know their ids, and resets CRUSH weights if the CephCluster allows it (`allowOsdCrushWeightUpdate`).

- If it is allowed, the removal is refused, and nothing is changed.
- If a person allows it while the OSD is emptied, Rook resets the weight. The run says so, drops the weight no second
  time, and the OSD serves as before. The next run is refused as well.
- If it is not allowed, the OSD is removed. Rook reconciles without a fence while the OSD is emptied. It is fenced from
  the stop to the deletion of the Deployment. Afterwards it reads the disk, and finds no OSD on it.
"""
from . import empty, remove, rook
from .remove import HOST, OSD, RUN, SOME_LEFT
from .replicas import Watch, returned

RESETS = "spec.storage.allowOsdCrushWeightUpdate is true"
# What the message tells a person to do.
SWITCH_OFF = '{"spec":{"storage":{"allowOsdCrushWeightUpdate":false}}}'
UNDONE = "another client restored its CRUSH weight while it was emptied"
OSDS = range(8)
# Seconds after each object that is moved, and between two reconciles: Rook reconciles several times while data moves.
PAUSE, PERIOD = 2, 12


def run(world):
    remove.bring_up(world)
    weigh_by_size(world)
    for osd in OSDS:  # Rook sets this label since 1.6, and handles no drains if one Deployment does not have it
        world.kubectl("label", "deployment", f"rook-ceph-osd-{osd}", f"{rook.HOST}=h{osd % 3 + 1}")
    before, epoch = world.shape(), world.epoch()
    operator = rook.Rook(world, "1.20.1", period=PERIOD, written=True)
    operator.start()
    with Watch(OSD) as watch:
        world.until("the first statistics", 10, watch.last)
        refused(world, operator, before)
        undone(world, watch, operator, before)
        at = watch.now()
        removed(world, watch, operator, before)
        empty.expect_replicas(watch, at)
    assert not operator.trouble and not operator.failures, (operator.trouble, operator.failures)
    operator.end()
    world.lab("verify")
    empty.ended(world, epoch)
    world.say("all objects are equal, and no PG lacked a replica")


def weigh_by_size(world):
    """Sets all CRUSH weights to what Rook would reset them to, so that a weight of 0 is the only one that it resets."""
    sizes = {osd["kb"] / (1 << 30) for osd in world.ceph("osd", "df")["nodes"]}
    assert len(sizes) == 1, sizes
    world.lab("ceph", "osd", "crush", "reweight-subtree", "default", f"{sizes.pop():f}")
    empty.clean(world)


def allow(world, allowed):
    world.storage(allowOsdCrushWeightUpdate=allowed)


def own(world):
    """Returns the commands of osd-migrate that changed something; Rook's are those of client.admin."""
    return [line for line in world.written() if "entity='client.osd-migrate'" in line]


def reconciles(world, operator):
    """Waits until Rook has ended a reconcile that it began afterwards."""
    done = operator.done
    world.until("Rook to reconcile", 180, lambda: operator.done >= done + 2 or operator.trouble)
    assert not operator.trouble, operator.trouble


def refused(world, operator, before):
    """Checks that an OSD is not removed if Rook would reset its weight."""
    allow(world, True)
    remove.request(world, OSD)
    reconciles(world, operator)
    refuses(world, "resets")
    remove.unchanged(world, before)
    assert not operator.reset and not operator.skipped, (operator.reset, operator.skipped)
    allow(world, False)


def refuses(world, name):
    """Checks that a run does nothing, keeps the request, and names the cause and the command against it."""
    written, requests = own(world), remove.requests(world)
    job = world.start(name, RUN)
    result = world.wait_for(job, 60)
    log = world.log(job)
    assert result == SOME_LEFT and RESETS in log and SWITCH_OFF in log, (result, log)
    assert own(world) == written, f"Ceph was changed: {own(world)[len(written):]}"
    assert remove.requests(world) == requests and f"osd-{OSD}" in requests, (requests, remove.requests(world))
    world.say(f"Rook would reset the weight: {log.strip().splitlines()[-1][-300:]}")


def undone(world, watch, operator, before):
    """Checks that an OSD whose weight Rook resets while it is emptied is left as it was."""
    empty.slow(world, PAUSE)
    job = world.start("undone", RUN)
    remove.emptying(world, watch, job)
    allow(world, True)
    world.until("Rook to reset the weight", 60, lambda: operator.reset)
    left = len(watch.last().names)
    empty.slow(world, 0)
    result = world.wait_for(job, 180)
    log = world.log(job)
    assert result == SOME_LEFT and UNDONE in log and RESETS in log and SWITCH_OFF in log, (result, log)
    assert operator.reset == [OSD], operator.reset
    empty.clean(world)
    remove.unchanged(world, before)
    empty.expect_replicas(watch, 0, returned(watch.since(0)))
    assert len(remove.sent(world, remove.REWEIGHT)) == 1, remove.sent(world, remove.REWEIGHT)
    assert not remove.sent(world, remove.DESTROY) and not operator.skipped, operator.skipped
    world.say(f"Rook reset the weight while {left} PGs were on osd.{OSD}: it serves as before, and its upmap is restored")
    refuses(world, "resets-again")
    remove.unchanged(world, before)
    allow(world, False)


def removed(world, watch, operator, before):
    """Checks that the OSD is removed, that Rook was fenced only after it was emptied, and creates it no more."""
    empty.slow(world, PAUSE)
    at, sent, skipped = watch.now(), len(remove.sent(world, remove.REWEIGHT)), operator.skipped
    job = world.start("removed", RUN)
    remove.emptying(world, watch, job)
    reconciles(world, operator)
    assert watch.last().names and not watch.last().clean, f"osd.{OSD} was emptied too fast for this test"
    assert operator.skipped == skipped, "Rook was fenced while the OSD was emptied"
    remove.not_fenced(world, [OSD])
    world.say(f"Rook reconciled twice while {len(watch.last().names)} PGs were on osd.{OSD}, and was not fenced")
    empty.slow(world, 0)
    result = world.wait_for(job, 300)
    assert result == ("Complete", 0), (result, world.log(job))
    assert operator.skipped > skipped and len(operator.fences) == 1, (operator.skipped, operator.fences)
    remove.gone(world, OSD, before)
    remove.expect_stopped_empty(world, watch, at)
    number = [len(remove.sent(world, one)) for one in (remove.REWEIGHT, remove.DESTROY, remove.PURGE)]
    assert number == [sent + 1, 1, 1], number
    assert remove.ends(world, OSD) == 0, f"the disk of osd.{OSD} is not blank"
    operator.read.clear()
    reconciles(world, operator)
    assert OSD in operator.read, f"Rook did not read the disk of osd.{OSD}: {operator.read}"
    found = (operator.hydrated, operator.started, operator.refilled, operator.reset)
    assert found == ([], [], [], [OSD]), f"created, started, found destroyed, reset: {found}"
    remove.gone(world, OSD, before)
    words = f"{operator.done} reconciles done, {operator.skipped} skipped"
    world.say(f"osd.{OSD} on {HOST} is removed; {words}; Rook read its disk, and created no Deployment")
