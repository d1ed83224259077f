"""A cluster with the variety of real ones, of nine OSDs, three on each of h1, h2 and h3.

It has hosts under racks, a second root with its own hosts, a device class that was set by hand, a rule for each of
these, pools with these rules, and an erasure-coded pool. Its weights, reweights and primary affinities differ from those
of a first boot. There is an upmap onto each OSD that can have one.
"""

# The weight of a directory is that of its file system, as Ceph itself weighs it; CRUSH weights are TiB.
DISK, FILE_SYSTEM = 6 / 1024, 20 / 1024
PGS = "8"
# osd-migrate would refuse k=2, m=1: while one OSD is stopped, another failure would lose data. For the four chunks of 2+2
# there are too few hosts, so the failure domain is the OSD.
PROFILE = ["k=2", "m=2", "crush-failure-domain=osd", "crush-root=default"]
REPLICATED = {"by-rack": ["default", "rack"], "on-fast": ["default", "host", "fast"], "elsewhere": ["other", "host"]}
FAST, ELSEWHERE = [3, 4, 5], [6, 7, 8]
# A PG that `reweight` takes from an OSD needs another OSD on that host, under that root and of that class. For OSDs 3 to 8
# there is none: their reweight has the effect of 1, but differs from that of a first boot.
REWEIGHTS = {0: 0.9, 1: 0.85, 2: 0.8}
ALL_BUT_ONE = 0.99999
# Pairs of OSDs of one host and one root: an upmap must not place two copies on a host.
UPMAPS = [(0, 3), (3, 0), (1, 4), (4, 1), (2, 5), (5, 2)]


def customize(world, kinds):
    ceph = lambda words: world.lab("ceph", *words.split())  # noqa: E731
    # Ceph requires this setting if OSDs are placed by hand. Otherwise the next start of an OSD moves it below its host.
    ceph("config set osd osd_crush_update_on_start false")
    for host in ("h1", "h2", "h3"):
        ceph(f"osd crush add-bucket rack-of-{host} rack")
        ceph(f"osd crush move rack-of-{host} root=default")
        ceph(f"osd crush move {host} rack=rack-of-{host}")
    ceph("osd crush add-bucket other root")
    for osd, kind in enumerate(kinds):
        weight = (FILE_SYSTEM if kind.endswith("-dir") else DISK) * (1 + osd / 100)
        where = f"root=other host=other-h{osd % 3 + 1}" if osd in ELSEWHERE else f"root=default host=h{osd % 3 + 1}"
        ceph(f"osd crush set osd.{osd} {weight:.5f} {where}")
        ceph(f"osd primary-affinity {osd} {0.5 + osd / 20}")
        ceph(f"osd reweight {osd} {REWEIGHTS.get(osd, ALL_BUT_ONE)}")
    for osd in FAST:
        ceph(f"osd crush rm-device-class osd.{osd}")
        ceph(f"osd crush set-device-class fast osd.{osd}")
    pools(ceph)
    world.lab("wait-clean", "180")
    for pool in [*REPLICATED, "coded"]:
        world.lab("write", "40", "128", pool)
    for pair in UPMAPS:
        upmap(world, *pair)
    world.lab("wait-clean", "180")
    world.say(f"racks, two roots, device classes, pools {', '.join(REPLICATED)} and coded (2+2)")


def pools(ceph):
    for pool, rule in REPLICATED.items():
        ceph(f"osd crush rule create-replicated {pool} {' '.join(rule)}")
        ceph(f"osd pool create {pool} {PGS} {PGS} replicated {pool}")
    ceph(f"osd erasure-code-profile set coded {' '.join(PROFILE)}")
    ceph(f"osd pool create coded {PGS} {PGS} erasure coded")
    for pool in [*REPLICATED, "coded"]:
        ceph(f"osd pool application enable {pool} rados")


def stays_where_it_was_put(world, legacy):
    """Checks that a recreated OSD stays in a location that differs from its node, without the setting of Ceph.

    Its Deployment has the location.
    """
    osd = next(osd for osd in legacy if osd in ELSEWHERE)
    booted = lambda: next(o["up_from"] for o in world.ceph("osd", "dump")["osds"] if o["osd"] == osd)  # noqa: E731
    before, up_from = world.crush(), booted()
    world.lab("ceph", "config", "rm", "osd", "osd_crush_update_on_start")
    world.kubectl("delete", "pod", "-l", f"ceph-osd-id={osd}", "--wait=false")
    world.until(f"osd.{osd} to be started again", 90, lambda: booted() > up_from)
    world.lab("wait-clean", "120")
    assert world.crush() == before, f"a restart of osd.{osd} moved it:\n{before}\n{world.crush()}"


def upmap(world, giver, taker):
    """Adds an upmap for a PG that has none yet."""
    taken = {item["pgid"] for item in world.ceph("osd", "dump")["pg_upmap_items"]}
    pgs = world.ceph("pg", "ls-by-pool", "labpool")["pg_stats"]
    pg = next(pg["pgid"] for pg in pgs if giver in pg["up"] and taker not in pg["up"] and pg["pgid"] not in taken)
    world.lab("ceph", "osd", "pg-upmap-items", pg, str(giver), str(taker))
    world.lab("wait-clean", "120")
    items = world.ceph("osd", "dump")["pg_upmap_items"]
    assert any(item["pgid"] == pg for item in items), f"the upmap of {pg} onto osd.{taker} was not accepted: {items}"
