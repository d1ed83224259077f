"""wait_clean.py OSDS SECONDS: waits until at least OSDS OSDs exist, all are up and in, and every PG is active+clean.

PG statistics are a second or more older than the OSD map. So a clean state counts only if no OSD went up or down just
before.
"""
import datetime
import sys
import time

from labrados import command, connect

SETTLED = 2.5  # seconds; the lab's mgr_stats_period is 1


def age(stamp):
    then = datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z")
    return (datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()


n, limit = int(sys.argv[1]), float(sys.argv[2])
c = connect()
end = time.time() + limit
while True:
    status = command(c, "status")
    dump = command(c, "osd dump")
    pg = status["pgmap"]
    states = {x["state_name"]: x["count"] for x in pg.get("pgs_by_state", [])}
    clean = sum(v for k, v in states.items() if "active" in k and "clean" in k and "remapped" not in k)
    want = sum(x["pg_num"] for x in dump["pools"])
    up = sum(1 for o in dump["osds"] if o["up"] and o["in"])
    total = len(dump["osds"])
    line = "%d/%d OSDs up and in; PGs %s of %d" % (up, max(n, total), states, want)
    if (status["mgrmap"].get("available") and up == total >= n and want > 0 and clean == want == pg["num_pgs"]
            and not pg.get("degraded_objects") and not pg.get("misplaced_objects")
            and min(age(dump["last_up_change"]), age(dump["last_in_change"])) > SETTLED):
        print(line)
        c.shutdown()
        sys.exit(0)
    if time.time() > end:
        print("not clean after %g s: %s" % (limit, line), file=sys.stderr)
        c.shutdown()
        sys.exit(1)
    time.sleep(0.2)
