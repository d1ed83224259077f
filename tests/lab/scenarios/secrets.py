"""Checks that no key is exposed: what is watched during a run, and what is searched after it.

Watched: the arguments of every process that starts on the computer (the kernel reports each exec), every Secret of
osd-migrate, the logs of all pods, also of pods that are deleted meanwhile. Searched: all of these, and Events,
ConfigMaps, Jobs, Pods, Deployments, the bodies of all requests about such objects (audit log), osd-migrate's folder on
the hosts, its binary. It searches for every key of the cluster, as Ceph writes it and in base64 at each of the three
offsets, and for everything in the format of a key.

One exception is known: ceph-volume gives the new OSD's key to ceph-authtool as an argument. It does so in the agent's
container and in Rook's own `activate` container. This also proves that the watch detects keys.
"""
import base64
import glob
import hashlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

LAB = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab")
KEY_PATTERN = re.compile(rb"AQ[A-Za-z0-9+/]{36}==")
OBJECTS = "events,configmaps,jobs,pods,deployments,cronjobs,leases,cephclusters"


class Watch:
    """A watch in a separate process, in parallel with the scenario."""

    def __init__(self, world):
        self.world, self.folder = world, world.folder()
        self.keys = keys(world)
        self.out = os.path.join(self.folder, "watched.json")
        self.process = subprocess.Popen([sys.executable, "-B", __file__, self.folder, self.out])
        world.background.append(self.process)
        self.secrets = os.path.join(self.folder, "secrets.json")
        with open(self.secrets, "w", encoding="utf-8") as file:
            command = [LAB, "net", "kubectl", "-n", "rook-ceph", "get", "secrets", "--watch", "-o", "json"]
            # in a new session, because the children of the lab's script must end with it
            self.kubectl = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, start_new_session=True)
        world.until("the watch to begin", 10, lambda: os.path.exists(self.out))

    def end(self):
        """Ends the watch, and fails if a key was found."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, "the watch failed"
        os.killpg(self.kubectl.pid, signal.SIGTERM)
        self.kubectl.wait(10)
        self.search()

    def search(self):
        world = self.world
        seen = json.load(open(self.out, encoding="utf-8"))
        self.keys |= keys(world)
        needles = forms(self.keys)
        known = self.arguments(seen, needles)
        texts = {f"log {name}": text.encode() for name, text in seen["logs"].items()}
        texts |= {f"now: {kind}": world.kubectl("get", kind, "-o", "json").encode() for kind in OBJECTS.split(",")}
        with open(os.path.join(self.folder, "audit.log"), "rb") as file:
            texts["requests"] = file.read()
        assert b'"requestObject"' in texts["requests"] and b"osd-migrate-ledger" in texts["requests"], "the audit log has no bodies"
        state = glob.glob(os.path.join(self.folder, "h", "*", "rook", "osd-migrate", "*"))
        assert any(name.endswith(".issued") or name.endswith(".lock") for name in state), state
        for name in [*state, world.binary]:
            with open(name, "rb") as file:
                texts[name] = file.read()
        for name, text in texts.items():
            found = [who for who, needle in needles if needle in text]
            assert not found, f"{name} contains the key of {found}"
            shape = None if name == world.binary else KEY_PATTERN.search(text)
            assert not shape or shape.group().startswith(b"AQBpmTxl"), f"{name} contains text in the format of a key"
        own = self.own_secrets(needles)
        world.say(
            f"no key of {len(self.keys)} in {len(seen['argv'])} different command lines ({known} of ceph-volume's own children "
            f"excepted; {seen['missed']} of {seen['started']} ended before they were read), {len(seen['logs'])} logs, {sum(map(len, texts.values())) >> 10} KiB "
            f"in total; {own} Secrets of osd-migrate, only with the key of client.bootstrap-osd"
        )

    def arguments(self, seen, needles):
        known = 0
        for entry in seen["argv"]:
            # The lab's own scripts, which run on no host of the lab, restore keys that a scenario has changed.
            if not (entry["host"] or entry["line"].startswith(self.world.binary)):
                continue
            line = entry["line"].encode("utf-8", "surrogateescape")
            found = [who for who, needle in needles if needle in line]
            if not found and not KEY_PATTERN.search(line):
                continue
            assert entry["by"] == "ceph-volume", f"a key of {found} on a command line: {line.split()[:1]}, started by {entry['parents']}"
            known += 1
        assert known, "the watch did not detect the known exception of ceph-volume"
        return known

    def own_secrets(self, needles):
        with open(self.secrets, encoding="utf-8") as file:
            text = file.read()
        decoder, at, own = json.JSONDecoder(), 0, {}
        while (at := text.find("{", at)) >= 0:
            try:
                item, at = decoder.raw_decode(text, at)
            except ValueError:  # cut off by the end of the watch
                break
            if item["metadata"]["name"].startswith("osd-migrate"):
                own[item["metadata"]["name"]] = json.dumps(item).encode() + b"".join(map(base64.b64decode, item.get("data", {}).values()))
        assert own, "no Secret of osd-migrate was observed"
        for name, body in own.items():
            found = {who for who, needle in needles if needle in body}
            assert found <= {"client.bootstrap-osd"}, f"Secret {name} contains the keys of {found}"
        return len(own)


def keys(world):
    """Returns (entity, key) of all users of the cluster, and of the mons themselves."""
    found = {(entry["entity"], entry["key"]) for entry in world.ceph("auth", "ls")["auth_dump"]}
    mon = world.lab("on", "adm", "ceph-authtool", "-p", "-n", "mon.", "/etc/ceph/mon.keyring").stdout.strip()
    return found | {("mon.", mon)}


def forms(pairs):
    """Returns (entity, bytes): each key as it is, and in base64 at each offset in a text."""
    found = []
    for who, key in pairs:
        found.append((who, key.encode()))
        for offset in range(3):
            text = base64.b64encode(b"x" * offset + key.encode())
            # The first and the last characters also contain bits of the neighbouring text.
            found.append((who, text[4 if offset else 0 : -4]))
    return found


# ---- the separate process


def watch(folder, out):
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    events = execs()
    argv, born, logs, started, missed, listed = {}, {}, {}, 0, 0, 0.0
    mark = "osd-lab-" + hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:8]  # the lab's cgroup, see lib/common.sh
    os.nice(-10)  # the watch misses a process that ends before it is read
    with open(out, "w", encoding="utf-8"):
        pass
    parent = os.getppid()
    while not ended and os.getppid() == parent:  # it also ends with a scenario that failed
        if time.monotonic() - listed > 0.2:
            listed = time.monotonic()
            for name in glob.glob(os.path.join(folder, "h", "*", "log", "pods", "rook-ceph_*", "*", "*.log")):
                if name not in logs:
                    try:
                        logs[name] = open(name, encoding="utf-8", errors="replace")  # readable after its pod is deleted
                    except OSError:
                        pass
        try:
            data = events.recv(8192)
        except (TimeoutError, InterruptedError):
            continue
        except OSError:  # more events than the kernel's buffer holds
            missed += 1
            continue
        what, _, _, _, tgid = struct.unpack_from("=IIQII", data, 36)
        if what != 2:  # PROC_EVENT_EXEC
            continue
        started += 1
        entry = process(tgid, born, mark)
        if entry:
            argv.setdefault(entry["line"], entry)
        else:
            missed += 1
    if not ended:
        return
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"argv": list(argv.values()), "started": started, "missed": missed, "logs": {n: f.read() for n, f in logs.items()}}, file)


def execs():
    """Returns a socket on which the kernel's process connector reports events."""
    events = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 11)
    events.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    events.bind((0, 1))
    listen = struct.pack("=IIIIHHI", 1, 1, 0, 0, 4, 0, 1)
    events.send(struct.pack("=IHHII", 16 + len(listen), 3, 0, 0, os.getpid()) + listen)
    events.settimeout(0.1)
    return events


def process(pid, born, mark):
    """Returns the command line of a process and its parents, or None if it has ended.

    `born`: the processes so far.
    """
    try:
        born[pid] = line, parent = read(pid, "cmdline"), parent_of(pid)
        host = mark in read(pid, "cgroup")
    except (OSError, ValueError, IndexError):
        return None
    parents, by = [], None
    while parent > 1 and len(parents) < 12:
        try:
            born[parent] = born.get(parent) or (read(parent, "cmdline"), parent_of(parent))
        except (OSError, ValueError, IndexError):
            break
        words, parent = born[parent]
        parents.append(words[:80])
        by = by or ("ceph-volume" if re.search(r"(^|[ /])ceph-volume raw (prepare|activate) ", words) else None)
    return {"line": line, "parents": parents, "by": by, "host": host}


def read(pid, name):
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="surrogateescape") as file:
        return file.read().replace("\0", " ")


def parent_of(pid):
    return int(read(pid, "stat").rsplit(")", 1)[1].split()[1])


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2])
