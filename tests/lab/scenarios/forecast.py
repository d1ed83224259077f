"""`plan --remove` is compared with what the cluster then does: the up set of each PG, and the bytes of each OSD.

So is the placement after an OSD is marked out, by `osdmaptool --mark-out`, which a run asks before it empties an OSD.
A pool of size 3, one of size 2 and an erasure coded one; an upmap; a removal for which there is no place, and one for
which there is no space. With --full, on three releases of Ceph, and in a cluster with racks, a device class, different
CRUSH weights and a compat weight-set.
"""

import json
import random
import re
import time

from .replicas import entries

POOLS = {"three": ["replicated"], "two": ["replicated"], "coded": ["erasure", "k2m1"]}
MIB = 1 << 20
HOLE = 0x7FFFFFFF
# An OSD reports its usage every 5 s, and the mgr publishes it up to 5 s later.
SETTLED = 15


def run(world):
    for release in [None, "18.2", "20.2"] if world.full else [None]:
        if release:
            world.down()
        compare(world, release)
    for release in [None, "18.2", "20.2"] if world.full else []:
        world.down()
        in_racks(world, release)


def compare(world, release):
    # Only 16.2 has Filestore.
    world.up(osds=8, release=release, layout="0=raw" if release else None)
    create_pools(world)
    write(world, POOLS)
    osd = random.Random(world.seed).randrange(8)
    beside = (osd + 1) % 8  # on another host
    for one in (osd, beside):
        upmap(world, one)
    world.lab("wait-clean", "180")
    marked_out(world, beside)
    removed(world, osd)
    no_place(world)
    no_space(world, osd)


def in_racks(world, release):
    """Compares in a cluster of four hosts under three racks, with two thirds of the OSDs in a class of their own."""
    world.up(osds=12, hosts=4, layout="0=raw", release=release)
    ceph = lambda words: world.lab("ceph", *words.split())  # noqa: E731
    ceph("config set osd osd_crush_update_on_start false")
    for host, rack in {"h1": "a", "h2": "a", "h3": "b", "h4": "c"}.items():
        ceph(f"osd crush add-bucket rack-{rack} rack")
        ceph(f"osd crush move rack-{rack} root=default")
        ceph(f"osd crush move {host} rack=rack-{rack}")
    for osd in range(12):
        ceph(f"osd crush reweight osd.{osd} {0.006 + osd / 4000:.5f}")
    for osd in range(8):  # two OSDs of each host
        ceph(f"osd crush rm-device-class osd.{osd}")
        ceph(f"osd crush set-device-class fast osd.{osd}")
    for pool, rule in {"by-rack": "default rack", "on-fast": "default host fast"}.items():
        ceph(f"osd crush rule create-replicated {pool} {rule}")
        ceph(f"osd pool create {pool} 16 16 replicated {pool}")
        ceph(f"osd pool application enable {pool} test")
        ceph(f"osd pool set {pool} pg_autoscale_mode off")
    write(world, ["by-rack", "on-fast"])
    random_osd = random.Random(world.seed)
    fast, slow = random_osd.randrange(8), random_osd.randrange(8, 12)
    removed(world, fast)
    # What the balancer of mode crush-compat sets: weights beside the CRUSH weights.
    ceph("osd crush weight-set create-compat")
    ceph(f"osd crush weight-set reweight-compat osd.{(slow - 7) % 8} 0.004")
    world.lab("wait-clean", "180")
    removed(world, slow)


def write(world, pools):
    for name in pools:
        world.lab("write", "60", "1024", name)
    world.lab("wait-clean", "180")


def removed(world, osd):
    """Compares the forecast of a removal with the cluster after the OSD has CRUSH weight 0."""
    before = settled(world)
    # The forecast has a tenth in reserve, and a fifth more for what comes from Filestore.
    off = 0.4 if world.stores()[osd] == "filestore" else 0.2
    found = forecast(world, osd)
    assert found["possible"], found["obstacles"]
    world.say(
        f"without osd.{osd}: {len(found['pgs'])} PGs, {found['movedBytes'] / MIB:.1f} MiB, "
        f"{found['movedBytes'] / max(found['heldBytes'], 1):.2f} times what it has"
    )
    up = up_sets(world)
    for pg in found["pgs"]:
        assert sorted(pg["now"]) == up[pg["pg"]], (pg, up[pg["pg"]])
    world.lab("ceph", "osd", "crush", "reweight", f"osd.{osd}", "0")
    expected = {**up, **{pg["pg"]: sorted(pg["then"]) for pg in found["pgs"]}}
    world.until("the PGs are mapped as forecast", 60, lambda: up_sets(world) == expected)
    world.lab("wait-clean", "300")
    assert up_sets(world) == expected, "the up sets changed while the data moved"
    try:
        world.until("the bytes are as forecast", 20, lambda: not wrong(found, before, data(world), off))
    except AssertionError:
        raise AssertionError(f"forecast and seen, in MiB: {wrong(found, before, data(world), off)}") from None
    gained = sum(max(now - before[osd], 0) for osd, now in data(world).items())
    world.say(f"all up sets and the bytes of all OSDs are as forecast; {gained / MIB:.1f} MiB were gained")


def marked_out(world, osd):
    """Compares what `osdmaptool --mark-out` computes with what `osd out` does, and marks the OSD in again."""
    before, upmaps = up_sets(world), world.ceph("osd", "dump")["pg_upmap_items"]
    expected = computed_without(world, osd)
    used = settled(world)
    gains = bytes_gained(world, before, expected)
    world.lab("ceph", "osd", "out", str(osd))
    world.until(f"the PGs to be mapped as computed without osd.{osd}", 60, lambda: up_sets(world) == expected)
    world.until("the PGs to be moved", 180, lambda: {pg["state"] for pg in pg_stats(world, "pgs_brief")} == {"active+clean"})
    assert up_sets(world) == expected, "the up sets changed while the data moved"
    others = {one: gains.get(one, 0) for one in used if one != osd}
    found = {}

    def are_as_computed():
        found.update({one: now - used[one] for one, now in data(world).items() if one in others})
        return all(abs(found[one] - gain) <= gain / 5 + 4 * MIB for one, gain in others.items())

    world.until(f"the bytes to be as computed, {others} (seen: {found})", 20, are_as_computed)
    moved = sum(expected[pg] != before[pg] for pg in before)
    world.say(f"osd.{osd} marked out: {moved} PGs and {sum(gains.values()) / MIB:.1f} MiB moved as computed by osdmaptool")
    world.lab("ceph", "osd", "in", str(osd))
    for item in upmaps:  # `osd out` drops those that name the OSD
        mappings = [str(mapping[side]) for mapping in item["mappings"] for side in ("from", "to")]
        world.lab("ceph", "osd", "pg-upmap-items", item["pgid"], *mappings)
    world.until("the PGs to be mapped as before", 60, lambda: up_sets(world) == before)
    world.lab("wait-clean", "180")
    is_removed = lambda: all(now - used[one] < 2 * MIB for one, now in data(world).items())  # noqa: E731
    world.until("the replicas on the other OSDs to be removed", 120, is_removed)


def computed_without(world, osd):
    """Returns the up sets after an OSD is marked out, by the program that a run asks."""
    program = "ceph osd getmap -o /tmp/map 2> /dev/null; exec osdmaptool /tmp/map --clear-temp --mark-out $1 --test-map-pgs-dump-all"
    text = world.lab("on", "adm", "in-release", "bash", "-c", program, "-", str(osd)).stdout
    lines = re.findall(r"^(\S+)\s+raw \(.*? up \(\[(.*?)\]", text, re.M)
    sets = {pg: sorted(int(one) for one in words.split(",") if is_osd(one)) for pg, words in lines}
    assert sets and not any(osd in found for found in sets.values()), f"osd.{osd} is not left out:\n{text}"
    return sets


def is_osd(word):
    """Returns whether a word of the program is an OSD, and no hole of an erasure-coded PG."""
    return word.isdigit() and int(word) != HOLE


def bytes_gained(world, before, after):
    """Returns the bytes of the PGs that each OSD gets."""
    parts = {pool["pool"]: 2 if pool["erasure_code_profile"] else 1 for pool in world.ceph("osd", "dump")["pools"]}
    gains = {}
    for pg in pg_stats(world, "pgs"):
        for osd in set(after[pg["pgid"]]) - set(before[pg["pgid"]]):
            part = pg["stat_sum"]["num_bytes"] // parts[int(pg["pgid"].split(".")[0])]
            gains[osd] = gains.get(osd, 0) + part
    return gains


def create_pools(world):
    world.lab("ceph", "osd", "erasure-code-profile", "set", "k2m1", "k=2", "m=1", "crush-failure-domain=host")
    for name, kind in POOLS.items():
        world.lab("ceph", "osd", "pool", "create", name, "16", "16", *kind)
        world.lab("ceph", "osd", "pool", "application", "enable", name, "test")
        world.lab("ceph", "osd", "pool", "set", name, "pg_autoscale_mode", "off")
    world.lab("ceph", "osd", "pool", "set", "two", "size", "2")


def upmap(world, osd):
    """Maps a PG that is on another OSD of the same host to this OSD."""
    others = [other for other in next(osds for osds in hosts(world) if osd in osds) if other != osd]
    pg, other = next((pg, other) for pg, osds in sorted(up_sets(world).items()) for other in others if other in osds)
    world.lab("ceph", "osd", "set-require-min-compat-client", "luminous")
    world.lab("ceph", "osd", "pg-upmap-items", pg, str(other), str(osd))
    world.until("the upmap is in force", 30, lambda: osd in up_sets(world)[pg])


def forecast(world, osd, code=0):
    return forecast_of(world, f"{osd}-{code}", ["--remove", f"osd.{osd}"], code)


def forecast_of(world, name, args, code=0):
    job = world.start(f"forecast-{name}", ["plan", *args, "-o", "json"])
    result = world.wait_for(job, 120)
    log = world.log(job)
    assert result == ("Complete" if code == 0 else "Failed", code), (result, log)
    return json.loads(log[log.index("{") : log.rindex("}") + 1])


def hosts(world):
    """Returns the OSDs of each host."""
    return [node["children"] for node in world.ceph("osd", "tree")["nodes"] if node["type"] == "host" and node["children"]]


def pg_stats(world, what):
    return entries(world.ceph("pg", "dump", what))


def up_sets(world):
    return {pg["pgid"]: sorted(osd for osd in pg["up"] if osd != HOLE) for pg in pg_stats(world, "pgs_brief")}


def data(world):
    """Returns the bytes of data and omap of each BlueStore OSD; Filestore does not tell them from its journal."""
    nodes = [node for node in world.ceph("osd", "df")["nodes"] if node["kb_used_meta"]]
    return {node["id"]: (node["kb_used_data"] + node["kb_used_omap"]) * 1024 for node in nodes}


def settled(world):
    """Returns the bytes of each BlueStore OSD after the mgr has shown no other ones for a while."""
    seen, since = data(world), time.monotonic()

    def stay():
        nonlocal seen, since
        now = data(world)
        if any(abs(now[osd] - seen[osd]) > MIB / 4 for osd in now):
            seen, since = now, time.monotonic()
        return time.monotonic() - since > SETTLED

    world.until("the usage of the OSDs to settle", 180, stay)
    return data(world)


def wrong(found, before, after, off):
    """Returns the OSDs with other bytes than forecast: this part of them and 4 MiB are allowed."""
    rows = {row["osd"]: (row["endBytes"] - row["usedBytes"]) / MIB for row in found["osds"]}
    seen = {osd: (after[osd] - before[osd]) / MIB for osd in before}
    return {osd: (rows.get(osd, 0), seen[osd]) for osd in seen if abs(rows.get(osd, 0) - seen[osd]) > abs(seen[osd]) * off + 4}


def no_place(world):
    """Without all OSDs of a host, pools of three copies on three hosts have no place."""
    osds = ",".join(f"osd.{osd}" for osd in hosts(world)[0])
    job = world.start("no-place", ["plan", "--remove", osds])
    assert world.wait_for(job, 120) == ("Failed", 3), world.log(job)
    log = world.log(job)
    assert "no-placement: without " in log and "for 3 copies, each on another host" in log, log
    world.say(next(line for line in log.splitlines() if line.startswith("no-placement")))


def no_space(world, gone):
    """Lowers Ceph's ratio below what an OSD would have at the end."""
    osd = next(osd for osd in range(8) if osd != gone)
    getting = [row for row in forecast(world, osd)["osds"] if row["pgsGained"]]
    most = max(row["endBytes"] / row["totalBytes"] for row in getting)
    world.lab("ceph", "osd", "set-nearfull-ratio", f"{most - 0.0005:.4f}")
    found = forecast(world, osd, code=3)
    reasons = {obstacle["reason"] for obstacle in found["obstacles"]}
    assert "no-space" in reasons, found["obstacles"]
    world.say(next(one["message"] for one in found["obstacles"] if one["reason"] == "no-space"))
    world.lab("ceph", "osd", "set-nearfull-ratio", "0.85")
