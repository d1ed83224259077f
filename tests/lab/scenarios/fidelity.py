"""What the project believes of Ceph, asked of a real one: plays tests/suite/fixtures/fidelity/*.txt and compares each answer
with the one written there. The hermetic test of the same name plays the same lines on the simulated cluster, so both equal
one committed truth.

A line is `COMMAND [ARGUMENTS] = ANSWER`, or without `= ANSWER` where it must succeed; README.txt beside the scripts tells the
words. OSDs that a script stops are started again by hand on their host, not by Kubernetes: that is quicker, and the
outcome of one boot can be told.
"""
import base64
import errno
import glob
import json
import os
import struct
import subprocess
import threading
import time

from .world import HERE, LAB

SCRIPTS = os.path.join(HERE, "..", "suite", "fixtures", "fidelity")
# Told at this level only: that the mon lets a boot pass by. And a map each tenth of a second instead of each second.
MON = {"debug_mon": "7", "paxos_propose_interval": "0.1"}
BLANK_GIB = "6"
# What ceph-osd is called as; where it is to fail it does so after the id was taken and before anything is written.
FAILING = '#!/bin/sh\ncase "$*" in *--mkfs*) exit 1 ;; esac\nexec /usr/bin/ceph-osd "$@"\n'
# As the agent's stand-in does: everything but a purge goes through.
NO_PURGE = '#!/bin/sh\ncase "$*" in *purge-new*) exit 1 ;; esac\nexec /usr/bin/ceph "$@"\n'


def host_of(osd):
    return f"h{int(osd) % 3 + 1}"


def run(world):
    world.up()
    world.lab("write", "100")
    on_running_lab(world)


def on_running_lab(world):
    total = 0
    for script in sorted(glob.glob(os.path.join(SCRIPTS, "*.txt"))):
        if os.path.basename(script) == "README.txt":
            continue
        began = time.monotonic()
        with Real(world) as real:
            count, wrong = play(real, script)
        total += count
        assert not wrong, f"{len(wrong)} of {count} answers of real Ceph are not as written:\n" + "\n".join(wrong)
        world.say(f"{os.path.basename(script)}: {count} checks in {time.monotonic() - began:.0f} s; {real.remarks()}")
    assert total >= 40, f"only {total} checks"
    return total


def play(real, script):
    wrong, count = [], 0
    with open(script, encoding="utf-8") as file:
        lines = list(enumerate(file, 1))
    for number, line in lines:
        line = line.split("#")[0].strip()
        if not line:
            continue
        step, expected = (part.strip() for part in line.split(" = ", 1)) if " = " in line else (line, "ok")
        words = step.split()
        found = getattr(real, words[0].replace("-", "_"))(*words[1:])
        count += 1
        if os.environ.get("FIDELITY_SHOW"):
            print(f"{time.monotonic() - real.began:5.1f} {'  ' if found == expected else '!!'} {step} = {found}", flush=True)
        if found != expected:
            wrong.append(f"{os.path.basename(script)}:{number}: `{step}`: written `{expected}`, found `{found}`")
    return count, wrong


class Session:
    """A connected session of its own, in the lab's network."""

    def __init__(self):
        command = [LAB, "on", "adm", "/usr/bin/python3", os.path.join(HERE, "py", "commands.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, daemon, prefix, given="", **arguments):
        self.process.stdin.write(json.dumps([daemon, dict(arguments, prefix=prefix), given]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{prefix}: the session ended")
        return json.loads(line)

    def read(self, prefix, daemon="mon", **arguments):
        status, answer, words = self.send(daemon, prefix, **arguments)
        if status:
            raise RuntimeError(f"{prefix}: {words}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def named(status):
    return "ok" if status >= 0 else errno.errorcode[-status]


def weight(number):
    """Five digits tell any two weights apart: Ceph counts in parts of 65536."""
    return f"{number:.5f}".rstrip("0").rstrip(".")


class Watch(threading.Thread):
    """Looks at the mgr's statistics all the time: which states PGs pass through, and whether any PG that still counts on an
    OSD was reported in an epoch in which that OSD was down."""

    def __init__(self):
        super().__init__(daemon=True)
        self.session, self.ended = Session(), threading.Event()
        self.states, self.lied, self.behind, self.longest = set(), [], 0, 0.0

    def run(self):
        behind_since = None
        while not self.ended.wait(0.02):
            pgs = self.session.read("pg dump", "mgr", dumpcontents=["pgs"])
            osds = {osd["osd"]: osd for osd in self.session.read("osd dump")["osds"]}
            behind = False
            for pg in pgs["pg_stats"] if pgs["pg_ready"] else []:
                self.states.update(pg["state"].split("+"))
                for osd in (osds[osd] for osd in pg["acting"] if osd in osds):
                    # The slot of an id that was purged and taken back tells no epoch.
                    if not osd["up"] and osd["down_at"] and "stale" not in pg["state"]:
                        behind = True
                        if pg["reported_epoch"] >= osd["down_at"]:
                            self.lied.append((pg["pgid"], pg["state"], pg["reported_epoch"], osd["osd"], osd["down_at"]))
            if behind:
                behind_since = behind_since or time.monotonic()
                self.longest = max(self.longest, time.monotonic() - behind_since)
            else:
                behind_since = None
            self.behind += behind

    def end(self):
        self.ended.set()
        self.join(30)
        self.session.close()


class Real:
    """Real Ceph, with the words of the scripts as methods."""

    def __init__(self, world):
        self.world, self.session, self.watch = world, Session(), Watch()
        self.began = time.monotonic()
        self.letters, self.keys, self.by_hand, self.disks, self.upmaps_made = {}, {}, set(), {}, set()

    def __enter__(self):
        self.watch.start()
        for osd in self.session.read("osd dump")["osds"]:
            self.letters[f"old-{osd['osd']}"] = osd["uuid"]
        for osd in self.session.read("osd metadata"):
            self.disks[str(osd["id"])] = osd.get("bluestore_bdev_dev_node")
        for name, value in MON.items():
            self.session.read("config set", who="mon", name=name, value=value)
        return self

    def __exit__(self, *_):
        for name in MON:
            self.session.read("config rm", who="mon", name=name)
        self.watch.end()
        self.session.close()

    def remarks(self):
        return f"the mgr was behind the map for up to {self.watch.longest:.1f} s; PG states seen: {' '.join(sorted(self.watch.states))}"

    # ---- helpers

    def on(self, osd, script, *args, check=True):
        return self.world.lab("on", host_of(osd), "bash", "-c", script, "-", str(osd), *args, check=check)

    def mon(self, prefix, given="", **arguments):
        return named(self.session.send("mon", prefix, given, **arguments)[0])

    def slot(self, osd):
        return next((slot for slot in self.session.read("osd dump")["osds"] if slot["osd"] == int(osd)), None)

    def fsid(self, letter):
        if letter not in self.letters:
            with open("/proc/sys/kernel/random/uuid", encoding="ascii") as file:
                self.letters[letter] = file.read().strip()
        return self.letters[letter]

    def letter(self, fsid):
        if fsid == "00000000-0000-0000-0000-000000000000":
            return "none"
        return next((letter for letter, known in self.letters.items() if known == fsid), "unknown")

    def key(self, osd):
        """The key on its disk, as long as Ceph still has it; else a new one."""
        status, answer, _ = self.session.send("mon", "auth get", entity=f"osd.{osd}")
        if status == 0:
            self.keys[osd] = answer[0]["key"]
        if osd not in self.keys:
            self.keys[osd] = base64.b64encode(struct.pack("<hiih", 1, int(time.time()), 0, 16) + os.urandom(16)).decode()
        return self.keys[osd]

    def until(self, what, seconds, look):
        return self.world.until(what, seconds, look, pause=0.05)

    # ---- what is sent

    def destroy(self, osd):
        self.key(osd)
        return self.mon("osd destroy-actual", id=int(osd), yes_i_really_mean_it=True)

    def new(self, letter, osd):
        secrets = json.dumps({"cephx_secret": self.key(osd)})
        return self.mon("osd new", secrets, uuid=self.fsid(letter), id=int(osd))

    def claim(self, letter, osd):
        return self.mon("osd new", uuid=self.fsid(letter), id=int(osd))

    def new_anywhere(self, letter):
        status, answer, _ = self.session.send("mon", "osd new", uuid=self.fsid(letter))
        return named(status) if status else f"osd.{answer['osdid'] if isinstance(answer, dict) else answer}"

    def purge_new(self, osd):
        self.key(osd)
        return self.mon("osd purge-new", id=int(osd), yes_i_really_mean_it=True)

    def set_group(self, flags, osd):
        return self.mon("osd set-group", flags=flags, who=[f"osd.{osd}"])

    def unset_group(self, flags, osd):
        return self.mon("osd unset-group", flags=flags, who=[f"osd.{osd}"])

    def reweight(self, osd, number):
        return self.mon("osd reweight", id=int(osd), weight=float(number))

    def affinity(self, osd, number):
        return self.mon("osd primary-affinity", id=int(osd), weight=float(number))

    def out(self, osd):
        return self.mon("osd out", ids=[osd])

    def mark_in(self, osd):
        return self.mon("osd in", ids=[osd])

    def crush_add(self, osd, number):
        return self.mon("osd crush add", id=int(osd), weight=float(number), args=[f"host={host_of(osd)}", "root=default"])

    def set_class(self, osd, name):
        return self.mon("osd crush set-device-class", **{"class": name}, ids=[f"osd.{osd}"])

    def upmap(self, source, target):
        """Onto TARGET, which is on the same host, for the first PG that SOURCE holds."""
        pgs = self.session.read("pg dump", "mgr", dumpcontents=["pgs"])["pg_stats"]
        pg = min(pg["pgid"] for pg in pgs if int(source) in pg["up"])
        return self.mon("osd pg-upmap-items", pgid=pg, id=[int(source), int(target)])

    def ok_to_stop(self, *osds):
        _, answer, _ = self.session.send("mgr", "osd ok-to-stop", ids=list(osds))
        return "yes" if answer["ok_to_stop"] else "no"

    def safe_to_destroy(self, osd):
        status, answer, _ = self.session.send("mgr", "osd safe-to-destroy", ids=[osd])
        return "yes" if status == 0 and int(osd) in answer["safe_to_destroy"] else "no"

    # ---- what is looked at

    def look(self, what, *args):
        return getattr(self, f"look_{what}")(*args)

    def look_slot(self, osd):
        slot = self.slot(osd)
        if not slot:
            return "absent"
        states = [word for word in ("destroyed", "exists", "new") if word in slot["state"]]
        flags = [word for word in ("noout", "noin") if word in slot["state"]]
        facts = [
            "+".join(states),
            self.letter(slot["uuid"]),
            "up" if slot["up"] else "down",
            "in" if slot["in"] else "out",
            weight(slot["weight"]),
            weight(slot["primary_affinity"]),
            *flags,
            *([] if slot["up_from"] else ["never-up"]),
        ]
        return " ".join(facts)

    def look_auth(self, osd):
        return named(self.session.send("mon", "auth get", entity=f"osd.{osd}")[0])

    def look_crush(self, osd):
        nodes = self.session.read("osd tree")["nodes"]
        node = next((node for node in nodes if node["id"] == int(osd)), None)
        above = [node for node in nodes if int(osd) in node.get("children", [])]
        if not node or not above:
            return "none"
        here = "its-host" if above[0]["name"] == host_of(osd) else above[0]["name"]
        return f"{here} {weight(node['crush_weight'])} {node.get('device_class') or 'no-class'}"

    def look_upmaps(self, osd):
        items = self.session.read("osd dump")["pg_upmap_items"]
        pairs = [f"{m['from']}>{m['to']}" for item in items for m in item["mappings"] if int(osd) in (m["from"], m["to"])]
        return " ".join(sorted(pairs)) or "none"

    def look_statistics(self):
        """Whether the mgr, where it is behind the map, shows it by the epoch of its report."""
        return "epochs-tell" if not self.watch.lied else f"a report too young: {self.watch.lied[0]}"

    def look_states(self, *known):
        """PG states passed through so far that are not among these."""
        return " ".join(sorted(self.watch.states - set(known))) or "none-else"

    # ---- daemons

    def stop(self, osd):
        self.key(osd)
        if osd in self.by_hand:
            self.kill(osd)
        else:
            self.world.kubectl("scale", "deployment", f"rook-ceph-osd-{osd}", "--replicas=0")
            self.until(f"the pod of osd.{osd} to be gone", 60, lambda: not self.world.get("pods", "-l", f"ceph-osd-id={osd}"))
        self.until(f"osd.{osd} to be down", 60, lambda: not (self.slot(osd) or {"up": 0})["up"])
        return "ok"

    def kill(self, osd):
        self.on(osd, 'p=$(cat "/run/ceph/hand.$1.pid") && kill "$p"; while kill -0 "$p" 2> /dev/null; do sleep 0.05; done')

    def boot(self, osd):
        """Starts its daemon and tells whether it came up, or how it was turned away."""
        self.by_hand.add(osd)
        self.mon_log_at = int(self.world.lab("on", "adm", "stat", "-c", "%s", "/var/log/ceph/ceph-mon.a.log").stdout) + 1
        log = f"/var/log/ceph/hand.{osd}.log"
        started = self.on(
            osd,
            """d=/var/lib/ceph/osd/ceph-$1; mkdir -p "$d"; rm -f "$3"
            [ -e "$d/whoami" ] || { ceph-volume raw activate --no-systemd --no-tmpfs --device "$2" && chown -R ceph:ceph "$d/" "$2"; } || exit 3
            timeout 30 ceph-osd -i "$1" --setuser ceph --setgroup ceph --pid-file "/run/ceph/hand.$1.pid" --log-file "$3" 2>&1""",
            self.disks[osd],
            log,
            check=False,
        )
        if started.returncode == 1 and "handle_auth_bad_method" in started.stdout:
            return "turned-away"
        if started.returncode:
            raise RuntimeError(f"osd.{osd} could not be started: {started.stdout}{started.stderr}")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if self.slot(osd)["up"]:
                return "up"
            if self.refused_by_mon(osd):
                break
            time.sleep(0.05)
        else:
            return "neither up nor refused"
        self.kill(osd)
        return "up" if self.slot(osd)["up"] else "turned-away"

    def refused_by_mon(self, osd):
        """Only the mon's log tells that it let a boot pass by: the daemon asks again and again, and says nothing."""
        path = "/var/log/ceph/ceph-mon.a.log"
        text = self.world.lab("on", "adm", "tail", "-c", f"+{self.mon_log_at}", path).stdout
        return any(f"osd.{osd} " in line and "clashes with existing osd: different fsid" in line for line in text.splitlines())

    def hear(self, osd):
        """Until the mgr has heard from every PG that lost this OSD."""
        pgs = lambda: self.session.read("pg dump", "mgr", dumpcontents=["pgs"])["pg_stats"]  # noqa: E731
        self.until(f"the mgr to know that osd.{osd} is down", 30, lambda: not any(int(osd) in pg["acting"] for pg in pgs()))
        return "ok"

    def settle(self):
        time.sleep(1.2)  # the lab's mgr_stats_period and a little
        self.world.lab("wait-clean", "40")
        return "ok"
