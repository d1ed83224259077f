"""Checks that the passphrase of an encrypted OSD is in its key Secret, and nowhere else.

Watched on u1 during the run: the arguments of all processes, and the logs of all pods. Searched after the run: these,
the logs of the runs, objects, the bodies of all requests about such objects (audit log), osd-migrate's folder on u1,
and what the mons store. The passphrase is searched as it is, and in base64 at each of the three offsets.
"""
import json
import os
import subprocess

from .secrets import OBJECTS, forms
from .world import HERE, LAB

PROGRAM = os.path.join(HERE, "py", "uml_watch.py")
FOLDER = "cat /var/lib/rook/osd-migrate/* 2> /dev/null | tr -cd '\\11\\12\\40-\\176'"


class Watch:
    """A watch on u1, in parallel with the scenario."""

    def __init__(self, world):
        self.world, self.out = world, os.path.abspath(os.path.join(world.folder(), "watched-u1.json"))
        command = [LAB, "on", "u1", "/usr/bin/python3", "-B", PROGRAM, self.out]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE)
        world.background.append(self.process)

    def end(self):
        """Ends the watch."""
        self.process.stdin.close()
        assert self.process.wait(120 * self.world.patience) == 0, "the watch on u1 failed"
        with open(self.out, encoding="utf-8") as file:
            seen = json.load(file)
        self.lines, self.environments, self.logs = seen["lines"], seen["environments"], seen["logs"]

    def expect_nowhere(self, key, secret):
        """Checks that the passphrase is in the Secret, and nowhere else, although cryptsetup used it meanwhile."""
        world = self.world
        calls = [line for line in self.lines if "cryptsetup" in line]
        assert any("--key-file" in line for line in calls), f"the watch did not see cryptsetup with a key: {calls}"
        assert len(self.environments) > 10, "the watch read no environments"
        assert any("_osd-migrate-" in name for name in self.logs), f"no log of an agent: {sorted(self.logs)}"
        texts = {f"command line {number}, {line[:60]}": line for number, line in enumerate(self.lines)}
        texts |= {f"environment {number}": text for number, text in enumerate(self.environments)}
        texts |= self.logs
        texts |= {f"log of {job}": world.log(job) for job in world.jobs}
        texts |= {f"now: {kind}": world.kubectl("get", kind, "-o", "json") for kind in OBJECTS.split(",")}
        texts["osd-migrate's folder on u1"] = world.lab("on", "u1", "bash", "-c", FOLDER).stdout
        texts["config-key dump"] = world.lab("ceph", "config-key", "dump").stdout
        texts["auth ls"] = world.lab("ceph", "auth", "ls").stdout
        with open(os.path.join(world.folder(), "audit.log"), encoding="utf-8", errors="replace") as file:
            texts["requests"] = file.read()
        texts["its Secret"] = json.dumps(secret)
        needles = [needle for _, needle in forms({("the OSD", key)})]
        found = [name for name, text in texts.items() for body in [text.encode()] if any(needle in body for needle in needles)]
        assert found == ["its Secret"], f"the passphrase is in: {found}"
        size = sum(map(len, texts.values())) >> 10
        world.say(
            f"the passphrase is in its Secret, and in none of {len(self.lines)} command lines, {len(self.environments)} environments, "
            f"{len(self.logs)} logs of pods on u1, objects, requests and what the mons store: {size} KiB"
        )
