"""epochs.py FROM | --now: checks in all OSD maps since epoch FROM whether OSDs of two hosts were down at the same time.

An OSD that exists and is not up counts as down (also a destroyed or a new one), on its host in the CRUSH tree of that
epoch. An OSD that is on no host yet has no data, and is ignored.
"""
import sys

from labrados import command, connect


def hosts_of(tree):
    return {child: node["name"] for node in tree["nodes"] if node["type"] == "host" for child in node["children"]}


c = connect()
now = command(c, "osd stat")["epoch"]
if sys.argv[1] == "--now":
    print(now)
    c.shutdown()
    sys.exit(0)
first = int(sys.argv[1])
if first > now:
    c.shutdown()
    sys.exit("epoch %d is in the future (now: %d)" % (first, now))
most, together, before = 0, 0, None
for epoch in range(first, now + 1):
    dump = command(c, "osd dump", epoch=epoch)
    down = [o["osd"] for o in dump["osds"] if not o["up"]]
    hosts = hosts_of(command(c, "osd tree", epoch=epoch)) if down else {}
    where = {}
    for osd in down:
        if osd in hosts:
            where.setdefault(hosts[osd], []).append(osd)
    most, together = max(most, len(where)), max(together, sum(map(len, where.values())))
    if len(where) > 1 and where != before:
        print("epoch %d (%s): down on %s" % (epoch, dump["modified"], ", ".join("%s: osd %s" % (h, o) for h, o in sorted(where.items()))))
    before = where
print("epochs %d..%d checked, max hosts down at once %d, max OSDs %d" % (first, now, most, together))
c.shutdown()
sys.exit(1 if most > 1 else 0)
