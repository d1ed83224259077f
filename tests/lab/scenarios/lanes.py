"""Several labs in parallel, each with its own LAB_DIR.

A lane runs the next scenario of the common list until none is left. A scenario has its own process,
`tests/lab/test NAME --account FILE`, which writes its result to FILE.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from . import rights
from .world import LAB, CannotRun

# A lab needs two thirds of a core and 2 GiB. Three of them left nothing of two cores to the hermetic tests beside them, which
# have a lower priority, so that no OSD is marked down; and each scenario took twice as long as alone.
LANES = 2
# A User-Mode Linux host takes a core for itself: two of them beside each other are too slow for Ceph's heartbeats.
WITH_UML_HOST = {"lvm", "volumes", "databases", "mapped", "pvc", "pvc_lvm", "pvc_migration"}
SETS = ("asked", "granted", "refused")


def default_dir():
    return os.environ.get("LAB_DIR") or os.path.join(os.path.dirname(LAB), "..", "..", ".lab")


class Sum:
    """The results of the scenarios of one process, or of all."""

    def __init__(self):
        self.passed, self.failed, self.whys = 0, 0, []
        self.asked, self.granted, self.refused = set(), set(), set()

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**vars(self), **{name: sorted(getattr(self, name), key=str) for name in SETS}}, file)

    def add(self, path):
        with open(path, encoding="utf-8") as file:
            self.include(json.load(file))

    def include(self, other):
        """Adds another sum, given as its fields."""
        self.passed += other["passed"]
        self.failed += other["failed"]
        self.whys += other["whys"]
        for name in SETS:
            getattr(self, name).update(tuple(what) for what in other[name])

    def check_rights(self, full):
        """Checks that all scenarios together use every right that the chart grants."""
        assert self.granted, "the scenario chart did not report what is granted"
        needless = rights.unused(self.granted, self.asked, full)
        print(f"rights: {len(self.granted)} granted, {len(needless)} of them not needed", flush=True)
        self.passed, self.failed = self.passed + (not needless), self.failed + bool(needless)
        self.whys += [f"granted, and never used: {' '.join(right)}" for right in needless]

    def close(self):
        """Prints the closing lines, and returns the exit code."""
        refused = sorted(self.refused, key=str)
        self.whys += [f"refused by the API server: {' '.join(filter(None, what))}" for what in refused]
        self.failed += bool(refused)
        for why in self.whys:  # again at the end, because the last lines of the log are read first
            print(f"FAILED {why}")
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


class Lanes:
    def __init__(self, rounds, args, table=None):
        """Creates the common list from (name, seed) of each scenario, the longest first.

        `table`: gets a line for each scenario that finishes.
        """
        self.args, self.sum, self.lock, self.table = args, Sum(), threading.Lock(), table
        self.cannot, self.running = None, {}
        self.rounds = list(rounds)

    def run(self, number):
        # Build once what all labs need, so that no lab waits for another one.
        done = subprocess.run([LAB, "build"], check=False)
        if done.returncode == 3:
            raise CannotRun("this computer cannot run a lab")
        if done.returncode:
            raise RuntimeError(f"lab build: exit {done.returncode}")
        lanes = [
            threading.Thread(target=self.lane, args=(f"{default_dir()}-{lane + 1}",), daemon=True)
            for lane in range(number)
        ]
        for lane in lanes:
            lane.start()
        try:
            for lane in lanes:
                while lane.is_alive():  # Ctrl-C does not interrupt a join without a timeout
                    lane.join(1)
        except KeyboardInterrupt:
            self.interrupt()
            raise
        if self.cannot:
            raise CannotRun(self.cannot)
        return self.sum

    def take(self):
        """Takes the next scenario off the list; None if there is none that may run now."""
        with self.lock:
            with_host = any(name in WITH_UML_HOST for name, _ in self.running)
            allowed = (item for item in self.rounds if not (with_host and item[0] in WITH_UML_HOST))
            item = next(allowed, None)
            if item:
                self.rounds.remove(item)
                self.running[item] = None
            return item

    def lane(self, folder):
        while self.rounds and not self.cannot:
            item = self.take()
            if not item:
                time.sleep(1)
                continue
            name, seed = item
            if not self.scenario(name, seed, folder) and self.args.keep:
                print(f"{name}: its lab is still up: LAB_DIR={folder} tests/lab/lab status", flush=True)
                return

    def scenario(self, name, seed, folder):
        began = time.monotonic()
        with tempfile.NamedTemporaryFile() as account:
            words = [
                sys.argv[0],
                name,
                "--seed",
                str(seed),
                "--binary",
                self.args.binary,
                "--account",
                account.name,
            ]
            words += ["--full"] * self.args.full + ["--keep"] * self.args.keep
            child = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, "LAB_DIR": folder},
            )
            with self.lock:
                self.running[name, seed] = child
            for line in child.stdout:
                print(f"{name:>10} | {line}", end="", flush=True)
            code, took = child.wait(), time.monotonic() - began
            with self.lock:
                del self.running[name, seed]
                if code == 3:
                    self.cannot = f"{name}: this computer cannot run its lab"
                elif os.path.getsize(account.name):
                    self.add(name, seed, account.name, took)
                else:  # it ended without a result
                    self.sum.failed += 1
                    self.sum.whys.append(
                        f"{name} (seed {seed}): its process ended with {code} after {took:.0f} s"
                    )
        return code == 0

    def add(self, name, seed, account, seconds):
        one = Sum()
        one.add(account)
        self.sum.include(vars(one))
        if self.table:
            self.table.append(name, seed, one, seconds)

    def interrupt(self):
        """Ends all scenarios, each of which removes its lab first."""
        self.cannot = "interrupted"  # no lane begins another scenario
        with self.lock:
            children = [child for child in self.running.values() if child]
        for child in children:
            child.terminate()
        for child in children:
            child.wait()
