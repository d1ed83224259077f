"""Random disturbances, by a seed, at intervals of 1 to 6 s.

Runner, agents, kubelets, mon and mgr are killed, Leases and node Jobs are deleted. Flags, pools, PG counts and
weights change meanwhile; scrubs and snapshot trims run. At the end all OSDs are migrated under their ids. Without
--full two legacy OSDs; with --full nine OSDs of nine kinds under two roots.
"""

import collections
import json
import random
import time

from . import kills, legacy, sick, variety

SAMPLE = ["bluestore-dev", "filestore-part", "raw", "raw", "raw", "raw"]
LIMIT = 120  # seconds of disturbances; the rest of the migration is not disturbed
RUN = ["run", "--confirm", "yes-really-migrate-osds"]
FLAGS = ["noout", "norebalance", "nobackfill", "norecover", "noscrub", "nodeep-scrub"]
# An agent has four attempts, and a kill ends an attempt.
AGENT_KILLS = 2
NODE_JOBS = "osd-migrate.io/task"


def run(world):
    kinds = legacy.MIXED if world.full else SAMPLE
    layout = ",".join(f"{osd}={kind}" for osd, kind in enumerate(kinds))
    world.up(layout=layout, osds=len(kinds))
    world.lab("write", "200")
    if world.full:
        homes = [osd for osd, kind in enumerate(kinds) if kind.endswith("-dir")]
        world.storage(devicePathFilter=f"^/dev/disk/by-id/lab-{legacy.AVAILABLE}-")
        for osd in homes:
            world.lab("disk", f"h{osd % 3 + 1}", f"{legacy.AVAILABLE}-{osd}")
        variety.customize(world, kinds)
    world.lab("client", "start")
    sick.merging_pool(world, 16)
    fsids, epoch, shape = world.fsids(), world.epoch(), world.shape()
    chaos = Chaos(world)
    chaos.until_done(LIMIT * (4 if world.full else 1))
    chaos.finish()
    due = [osd for osd, kind in enumerate(kinds) if not kind.startswith("raw")]
    expect(world, chaos, due, fsids, shape)
    world.expect_downs_on_one_host(epoch)
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    world.say(f"client: {client}")
    assert not client["failed"] and not client["slow"], client


def expect(world, chaos, due, fsids, shape):
    log = world.log(chaos.job)
    assert world.result(chaos.job) == ("Complete", 0), (world.result(chaos.job), log)
    world.lab("wait-clean", "180")
    now = world.fsids()
    assert sorted(now) == sorted(fsids), f"ids before {sorted(fsids)}, after {sorted(now)}"
    changed = {osd for osd, fsid in now.items() if fsid != fsids[osd]}
    assert changed == {*due}, f"rebuilt: {changed}, due: {due}\n{log}"
    stores = world.stores()
    assert set(stores.values()) == {"bluestore"}, stores
    after = world.shape()
    if not world.full:  # directories have other weights than the disks that replace them
        kept = ("tree", "osds", "flags", "node_flags")
        assert {part: after[part] for part in kept} == {part: shape[part] for part in kept}, (shape, after)
    world.expect_nothing_left()
    world.lab("verify")
    world.say(f"all OSDs migrated under their ids, every object equal, nothing left behind: {dict(chaos.done)}")


class Chaos:
    def __init__(self, world):
        self.world, self.rng = world, random.Random(world.seed)
        self.done, self.jobs, self.job = collections.Counter(), 0, None
        self.flag_set, self.pool_there, self.pgs, self.agents = None, False, 16, collections.Counter()
        self.weights, self.snap = {}, 0
        self.next_job()

    def next_job(self):
        if self.job:
            self.world.delete(self.job)
        self.jobs += 1
        self.job = self.world.start(f"chaos-{self.jobs}", RUN)

    def until_done(self, limit):
        """Disturbs the run at random until it is finished or the time is over."""
        acts = [(act, weight) for act, weight in WEIGHTS.items()]
        end = time.monotonic() + limit
        while time.monotonic() < end:
            time.sleep(self.rng.uniform(1, 6))
            result = self.world.result(self.job)
            if result == ("Complete", 0):
                return
            assert not result or result[0] != "Failed" or result[1] in (1, None), self.world.log(self.job)
            if result:
                self.next_job()
            (name,) = self.rng.choices([act for act, _ in acts], [weight for _, weight in acts])
            remark = getattr(self, name)()
            if remark is not None:
                self.done[name] += 1
                self.world.say(f"chaos {sum(self.done.values())}: {name.replace('_', ' ')} {remark}")

    def finish(self):
        """Reverts the changes, and waits for a last Job that is not disturbed."""
        if self.flag_set:
            self.flags()
        if self.pool_there:
            self.pools()
        for osd, weight in self.weights.items():
            self.ceph("osd", "crush", "reweight", f"osd.{osd}", str(weight))
        if not self.world.result(self.job) == ("Complete", 0):
            self.next_job()
        self.world.wait_for(self.job, 900 if self.world.full else 300)

    def ceph(self, *words, check=True):
        return self.world.lab("ceph", *words, check=check)

    # ---- what is killed and deleted

    def kill_runner(self):
        kills.KINDS["runner process"](self.world, self.job)
        return ""

    def delete_runner_pod(self):
        kills.KINDS["runner pod"](self.world, self.job)
        return ""

    def replace_job(self):
        self.next_job()
        return self.job

    def kill_agent(self):
        open_ones = [osd for osd in self.world.records() if self.agents[osd] < AGENT_KILLS]
        if not open_ones:
            return None
        self.agents[open_ones[0]] += 1
        kills.KINDS["agent"](self.world, self.job)
        return f"(osd.{open_ones[0]} is in progress)"

    def restart_kubelet(self):
        host = self.rng.choice(["h1", "h2", "h3"])
        self.world.lab("restart", host, "kubelet")
        return host

    def kill_mon(self):
        self.restart("ceph-mon", "a")
        return ""

    def kill_mgr(self):
        self.restart("ceph-mgr", "x")
        return ""

    def restart(self, daemon, name):
        """Kills a daemon and starts it again after 1 to 3 s, as its pod would."""
        seconds = f"{self.rng.uniform(1, 3):.1f}"
        start = f"{daemon} -i {name} --setuser ceph --setgroup ceph"
        self.world.lab(
            "on",
            "adm",
            "bash",
            "-c",
            f"pkill -KILL -x {daemon}; sleep {seconds}; exec {start} > /dev/null 2>&1",
        )

    def delete_lease(self):
        self.world.kubectl("delete", "lease", "osd-migrate", "--ignore-not-found")
        return ""

    def delete_node_jobs(self):
        self.world.kubectl("delete", "jobs", "-l", NODE_JOBS, "--wait=false", "--ignore-not-found")
        return ""

    # ---- what an administrator and Ceph itself do meanwhile

    def flags(self):
        if self.flag_set:
            self.ceph("osd", "unset", self.flag_set)
            self.flag_set, text = None, f"unset {self.flag_set}"
        else:
            self.flag_set = self.rng.choice(FLAGS)
            self.ceph("osd", "set", self.flag_set)
            text = f"set {self.flag_set}"
        return text

    def pools(self):
        words = (
            ("rm", "chaos", "chaos", "--yes-i-really-really-mean-it")
            if self.pool_there
            else ("create", "chaos", "8", "8")
        )
        self.ceph("osd", "pool", *words)
        if not self.pool_there:
            self.ceph("osd", "pool", "application", "enable", "chaos", "rados")
        self.pool_there = not self.pool_there
        return words[0]

    def pg_count(self):
        self.pgs = 8 if self.pgs == 16 else 16
        sick.set_pg_num(self.world, self.pgs)
        return str(self.pgs)

    def weight(self):
        """Changes the weight of an OSD that is not in progress (other scenarios cover OSDs in progress)."""
        records = self.world.records()
        conforming = [
            node
            for node in self.world.ceph("osd", "tree")["nodes"]
            if node["type"] == "osd" and node["id"] not in records
        ]
        node = self.rng.choice(conforming)
        was = self.weights.setdefault(node["id"], node["crush_weight"])
        weight = was * self.rng.choice([0.9, 1, 1.1])
        self.ceph("osd", "crush", "reweight", f"osd.{node['id']}", f"{weight:.5f}")
        return f"of osd.{node['id']}: {weight:.5f}"

    def scrub(self):
        self.ceph("osd", self.rng.choice(["scrub", "deep-scrub"]), "all", check=False)
        return ""

    def snapshot(self):
        """Creates and deletes a pool snapshot while objects are written, so that Ceph trims."""
        self.snap += 1
        script = f"""rados -p merging mksnap s{self.snap}
          for i in 1 2 3 4 5; do echo {self.snap} | rados -p merging put o$i -; done
          rados -p merging rmsnap s{self.snap}"""
        self.world.lab("on", "adm", "timeout", "20", "bash", "-c", script, check=False)
        return ""


WEIGHTS = {
    "kill_runner": 3,
    "delete_runner_pod": 2,
    "replace_job": 2,
    "kill_agent": 3,
    "restart_kubelet": 3,
    "kill_mon": 2,
    "kill_mgr": 2,
    "delete_lease": 3,
    "delete_node_jobs": 3,
    "flags": 3,
    "pools": 2,
    "pg_count": 2,
    "weight": 1,
    "scrub": 1,
    "snapshot": 1,
}
