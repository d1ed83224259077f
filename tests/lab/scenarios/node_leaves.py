"""A node leaves: all its OSDs are emptied at the same time, stopped one after the other, and its CRUSH host is removed.

Eight OSDs on four hosts; pools of size 3 and 2; a client writes. The removal of the node is forecast, only listed
without the confirmation, then requested. The runner's pod is killed while the OSDs are emptied. Ceph's map and
statistics are read continuously: no PG lacks a replica, and one OSD is down at most.
"""

from . import empty, forecast, kills, remove
from .replicas import Watch, trim

HOST, OSDS = "h2", (1, 5)
KEYS = {f"osd-{osd}" for osd in OSDS}
REMOVE_HOST = "osd crush rm"
PREFIXES = (remove.REWEIGHT, remove.DESTROY, remove.PURGE, REMOVE_HOST)
MIB = remove.MIB
MOST = 1.5  # times the bytes that the OSDs have; one after the other, it would be 1.7 to 2.5 times


def run(world):
    bring_up(world)
    before, epoch = world.shape(), world.epoch()
    with Watch(OSDS[0]) as first, Watch(OSDS[1]) as second:
        watches = (first, second)
        for watch in watches:
            world.until("the first statistics", 20, watch.last)
        listed(world)
        found = forecast.forecast_of(world, HOST, ["--remove-node", HOST])
        assert found["possible"], found["obstacles"]
        leaves(world, watches, found, before)
        for watch in watches:
            empty.expect_replicas(watch, 0)
            down = [sample.down for sample in watch.samples if len(sample.down) > 1]
            assert not down, f"more than one OSD was down: {down}"
    world.lab("verify")
    empty.ended(world, epoch)
    world.say("all objects are equal, no PG lacked a replica, and one OSD was down at most")


def bring_up(world):
    world.up(osds=8, layout="0=raw", hosts=4)
    remove.pool_of_two(world, pgs="32", objects="600")
    empty.clean(world)
    trim(world)


def listed(world):
    """Checks that without the confirmation, all OSDs of the node are listed, and none is requested."""
    text = remove.person(world, "remove", "--node", HOST, code=3)
    words = [HOST, remove.WORDS, *(world.fsids()[osd] for osd in OSDS)]
    missing = [word for word in words if word not in text]
    assert not missing, f"{missing} are not in:\n{text}"
    assert not remove.requests(world), remove.requests(world)


def leaves(world, watches, found, before):
    held, moved = sum(watch.last().held for watch in watches), watches[0].moved
    up, fsids = forecast.up_sets(world), world.fsids()
    expected = {**up, **{pg["pg"]: sorted(pg["then"]) for pg in found["pgs"]}}
    empty.slow(world, 0.1)
    remove.person(world, "remove", "--node", HOST, "--confirm", remove.WORDS)
    requests = remove.requests(world)
    assert requests.keys() == KEYS and all(one["node"] == HOST for one in requests.values()), requests
    assert {one["fsid"] for one in requests.values()} == {fsids[osd] for osd in OSDS}, requests
    job = world.start("node-leaves", remove.RUN)
    emptying(world, watches, job)
    remove.not_fenced(world, OSDS)
    kills.KINDS["runner pod"](world, job)
    world.say(f"the runner's pod is killed while {[len(watch.last().names) for watch in watches]} PGs are on {OSDS}")
    empty.slow(world, 0)
    result = world.wait_for(job, 420)
    assert result == ("Complete", 0), (result, world.log(job))
    for osd in OSDS:
        remove.absent(world, osd)
        assert remove.ends(world, osd) == 0, f"the disk of osd.{osd} is not blank"
    assert HOST not in [node["name"] for node in world.ceph("osd", "tree")["nodes"]], f"{HOST} is in CRUSH"
    remove.nothing_left(world)
    remove.unchanged_but(world, before, set(OSDS), HOST)
    assert forecast.up_sets(world) == expected, "the PGs are not where they were forecast"
    sent_in_order(world)
    moved_once(world, found, held, watches[0].moved - moved)
    closed = {(record["osd"], record["outcome"]) for record in world.closed()}
    assert closed == {(osd, "removed") for osd in OSDS}, closed


def emptying(world, watches, job):
    """Waits until all OSDs of the node have CRUSH weight 0 at the same time, with PGs on each."""

    def are_dropped():
        assert world.result(job) is None, f"the OSDs of {HOST} were not emptied at the same time:\n{world.log(job)}"
        return all(remove.crush_weight(world, osd) == 0 for osd in OSDS)

    world.until(f"the CRUSH weights of all OSDs of {HOST} to be 0", 180, are_dropped)
    assert all(watch.last().names and watch.last().up for watch in watches), "an OSD was emptied too fast for this test"


def sent_in_order(world):
    """Checks that the weights come first, each OSD is destroyed and purged once, and the host goes last."""
    written = world.written()
    at = {prefix: [written.index(line) for line in remove.sent(world, prefix)] for prefix in PREFIXES}
    assert [len(at[prefix]) for prefix in PREFIXES] == [2, 2, 2, 1], at
    assert max(at[remove.REWEIGHT]) < min(at[remove.DESTROY]), "an OSD was destroyed before all were emptied"
    assert max(at[remove.PURGE]) < at[REMOVE_HOST][0], "the host was removed before its OSDs"


def moved_once(world, found, held, moved):
    assert moved < MOST * held, f"moved: {moved / MIB:.1f} MiB, {moved / held:.2f} times what they had"
    forecasted = found["movedBytes"]
    assert abs(moved - forecasted) < 0.3 * forecasted + 4 * MIB, f"moved: {moved}, forecast: {forecasted}"
    words = f"{moved / held:.2f} times what they had; forecast: {forecasted / MIB:.1f} MiB"
    world.say(f"{moved / MIB:.1f} MiB moved, {words}")
