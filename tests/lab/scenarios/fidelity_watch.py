"""What is read all the time while the scripts of `fidelity` are played: PG states, and the label of a disk."""
import os
import threading
import time

from .sessions import Ceph


class Watch(threading.Thread):
    """A thread that continuously reads the mgr's statistics.

    It collects the states of the PGs. It also collects PGs that were reported in an epoch in which an OSD of their
    acting set was down.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.session, self.ended = Ceph(), threading.Event()
        self.states, self.combined, self.contradictions, self.longest = set(), set(), [], 0.0

    def run(self):
        behind_since = None
        while not self.ended.wait(0.02):
            pgs = self.session.read("pg dump", "mgr", dumpcontents=["pgs"])
            osds = {osd["osd"]: osd for osd in self.session.read("osd dump")["osds"]}
            behind = False
            for pg in pgs["pg_stats"] if pgs["pg_ready"] else []:
                self.states.update(pg["state"].split("+"))
                self.combined.add(pg["state"])
                for osd in (osds[osd] for osd in pg["acting"] if osd in osds):
                    # The slot of an id that was purged and registered again has no epoch.
                    if not osd["up"] and osd["down_at"] and "stale" not in pg["state"]:
                        behind = True
                        if pg["reported_epoch"] >= osd["down_at"]:
                            self.contradictions.append((pg["pgid"], pg["state"], pg["reported_epoch"], osd["osd"], osd["down_at"]))
            if behind:
                behind_since = behind_since or time.monotonic()
                self.longest = max(self.longest, time.monotonic() - behind_since)
            else:
                behind_since = None

    def end(self):
        self.ended.set()
        self.join(30)
        self.session.close()


class Labels(threading.Thread):
    """A thread that collects the states of a device's label, in their order, while an OSD is created on it."""

    def __init__(self, device):
        super().__init__(daemon=True)
        self.device, self.seen, self.ended = device, [], threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.005):
            fd = os.open(self.device, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 4096, os.POSIX_FADV_DONTNEED)
            label = os.pread(fd, 4096, 0)
            os.close(fd)
            state = "blank" if not label.startswith(b"bluestore block device") else "finished" if b"mkfs_done" in label else "unfinished"
            if self.seen[-1:] != [state]:
                self.seen.append(state)

    def end(self):
        self.ended.set()
        self.join()
        return self.seen
