"""Compares the assumptions of the project about Ceph with a real Ceph.

It plays tests/suite/fixtures/fidelity/*.txt and compares each answer with the written one. The hermetic test of the
same name plays the same lines on the simulated cluster, so both equal one committed truth.

A line is `COMMAND [ARGUMENTS] = ANSWER`. Without ` = ANSWER` the answer is `ok`. The commands are the methods of `Real`.
OSDs that a script stops are started by hand on their host (`boot`), not by Kubernetes (`start`). This is faster, and the
result of each boot is known.
"""
import base64
import errno
import json
import os
import struct
import time

from .fidelity_watch import Labels, Watch
from .sessions import Ceph
from .world import HERE

FIXTURES = os.path.join(HERE, "..", "suite", "fixtures", "fidelity")
SCRIPTS = ["slot.txt", "removal.txt", "volume.txt"]  # in this order: each continues where the one before it ends
# The mon logs a boot that it ignores only at this level. It publishes a map every 0.1 s instead of every second.
MON = {"debug_mon": "7", "paxos_propose_interval": "0.1"}
BLANK_GIB = "6"
# Shim of ceph-osd. It fails after the id was registered and before anything is written.
FAILING = '#!/bin/sh\ncase "$*" in *--mkfs*) exit 1 ;; esac\nexec /usr/bin/ceph-osd "$@"\n'
# Shim of ceph, like the agent's: it refuses a purge, and passes all other commands on.
NO_PURGE = '#!/bin/sh\ncase "$*" in *purge-new*) exit 1 ;; esac\nexec /usr/bin/ceph "$@"\n'


def host_of(osd):
    return f"h{int(osd) % 3 + 1}"


def run(world):
    world.up()
    world.lab("write", "100")
    on_running_lab(world)


def on_running_lab(world):
    with Real(world) as real:
        checks, wrong = 0, []
        for name in SCRIPTS:
            began = time.monotonic()
            count = play(real, name, wrong)
            world.say(f"{name}: {count} checks in {time.monotonic() - began:.0f} s")
            checks += count
    world.say(f"the mgr was behind the map for up to {real.watch.longest:.1f} s; PG states: {' '.join(sorted(real.watch.combined))}")
    assert not wrong, f"{len(wrong)} of {checks} answers of real Ceph are not as written:\n" + "\n".join(wrong)
    assert checks >= 40, f"only {checks} checks"


def play(real, name, wrong):
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as file:
        lines = list(enumerate(file, 1))
    count = 0
    for number, line in lines:
        line = line.split("#")[0].strip()
        if not line:
            continue
        step, written = (part.strip() for part in line.split(" = ", 1)) if " = " in line else (line, "ok")
        word, *arguments = step.split()
        found = getattr(real, word.replace("-", "_"))(*arguments)
        count += 1
        if found != written:
            wrong.append(f"{name}:{number}: `{step}`: written `{written}`, found `{found}`")
            print(wrong[-1], flush=True)
    return count


def named(status):
    return "ok" if status >= 0 else errno.errorcode[-status]


def weight(number):
    """Returns a weight with five digits, which distinguish any two weights: Ceph counts in parts of 65536."""
    return f"{number:.5f}".rstrip("0").rstrip(".")


class Real:
    """A real Ceph, with the commands of the scripts as methods."""

    def __init__(self, world):
        self.world, self.session, self.watch = world, Ceph(), Watch()
        self.began = time.monotonic()
        self.letters, self.keys, self.by_hand, self.disks, self.labels = {}, {}, set(), {}, {}

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

    # ---- building blocks

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
        """Returns the key of an OSD if Ceph has it, and otherwise the last one that Ceph had, or a new one."""
        status, answer, _ = self.session.send("mon", "auth get", entity=f"osd.{osd}")
        if status == 0:
            self.keys[osd] = answer[0]["key"]
        if osd not in self.keys:
            self.keys[osd] = base64.b64encode(struct.pack("<hiih", 1, int(time.time()), 0, 16) + os.urandom(16)).decode()
        return self.keys[osd]

    def until(self, what, seconds, condition):
        return self.world.until(what, seconds, condition, pause=0.05)

    # ---- commands

    def destroy(self, osd):
        self.key(osd)
        return self.mon("osd destroy-actual", id=int(osd), yes_i_really_mean_it=True)

    def new(self, letter, osd):
        secrets = json.dumps({"cephx_secret": self.key(osd)})
        return self.mon("osd new", secrets, uuid=self.fsid(letter), id=int(osd))

    def register(self, letter, osd):
        return self.mon("osd new", uuid=self.fsid(letter), id=int(osd))

    def new_anywhere(self, letter):
        status, answer, _ = self.session.send("mon", "osd new", uuid=self.fsid(letter))
        return named(status) if status else f"osd.{answer['osdid'] if isinstance(answer, dict) else answer}"

    def purge_new(self, osd):
        self.key(osd)
        return self.mon("osd purge-new", id=int(osd), yes_i_really_mean_it=True)

    def purge(self, osd):
        self.key(osd)
        return self.mon("osd purge-actual", id=int(osd), yes_i_really_mean_it=True)

    def crush_reweight(self, osd, number):
        return self.mon("osd crush reweight", name=f"osd.{osd}", weight=float(number))

    def crush_rm(self, host):
        return self.mon("osd crush rm", name=host)

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
        """Adds an upmap from SOURCE to TARGET, which is on the same host, for the first PG of SOURCE."""
        pgs = self.session.read("pg dump", "mgr", dumpcontents=["pgs"])["pg_stats"]
        pg = min(pg["pgid"] for pg in pgs if int(source) in pg["up"])
        return self.mon("osd pg-upmap-items", pgid=pg, id=[int(source), int(target)])

    def ok_to_stop(self, *osds):
        _, answer, _ = self.session.send("mgr", "osd ok-to-stop", ids=list(osds))
        return "yes" if answer["ok_to_stop"] else "no"

    def safe_to_destroy(self, osd):
        status, answer, _ = self.session.send("mgr", "osd safe-to-destroy", ids=[osd])
        return "yes" if status == 0 and int(osd) in answer["safe_to_destroy"] else "no"

    # ---- observations

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

    def look_host(self, name):
        nodes = self.session.read("osd tree")["nodes"]
        host = next((node for node in nodes if (node["type"], node["name"]) == ("host", name)), None)
        return "none" if not host else "items" if host["children"] else "empty"

    def look_upmaps(self, osd):
        items = self.session.read("osd dump")["pg_upmap_items"]
        pairs = [f"{m['from']}>{m['to']}" for item in items for m in item["mappings"] if int(osd) in (m["from"], m["to"])]
        return " ".join(sorted(pairs)) or "none"

    def look_statistics(self):
        """Returns whether the epoch of a report always shows that the mgr is behind the map."""
        return "epochs-tell" if not self.watch.contradictions else f"epoch too new: {self.watch.contradictions[0]}"

    def look_states(self, *known):
        """Returns the observed PG states that are not among these."""
        return " ".join(sorted(self.watch.states - set(known))) or "none-else"

    # ---- ceph-volume

    def prepare(self, osd, disk, *shims):
        if disk not in self.disks:
            self.disks[disk] = self.world.lab("disk", host_of(osd), BLANK_GIB, f"fidelity-{disk}").stdout.strip()
        labels = Labels(self.disks[disk])
        done = self.on(
            osd,
            """d=/run/fidelity; rm -rf "$d"; mkdir "$d"
            [ -z "$3" ] || printf %s "$3" > "$d/ceph-osd"; [ -z "$4" ] || printf %s "$4" > "$d/ceph"; chmod -R 755 "$d"
            umount "/var/lib/ceph/osd/ceph-$1" 2> /dev/null
            PATH="$d:$PATH" ceph-volume raw prepare --bluestore --data "$2" --osd-id "$1" """,
            self.disks[disk],
            FAILING if "mkfs-fails" in shims else "",
            NO_PURGE if "no-purge" in shims else "",
            check=False,
        )
        seen = labels.end()
        if len(seen) > 1:
            self.labels[disk] = seen
        return "done" if done.returncode == 0 else "failed"

    def look_disk(self, disk):
        label = self.world.lab("on", host_of(4), "ceph-bluestore-tool", "show-label", "--dev", self.disks[disk], check=False)
        if label.returncode:
            return "blank"
        (label,) = json.loads(label.stdout).values()
        slot = self.slot(label["whoami"])
        agrees = "as-slot" if slot and slot["uuid"] == label["osd_uuid"] else "another"
        return f"osd.{label['whoami']} {agrees} {'finished' if label.get('mkfs_done') == 'yes' else 'unfinished'}"

    def look_label(self, disk):
        return " ".join(self.labels.get(disk, ["never-changed"]))

    # ---- daemons

    def stop(self, osd):
        self.key(osd)
        if osd in self.by_hand:
            self.kill(osd)
        else:
            self.world.kubectl("scale", "deployment", f"rook-ceph-osd-{osd}", "--replicas=0")
            self.until(f"the pod of osd.{osd} to be gone", 60, lambda: not self.world.get("pods", selector=f"ceph-osd-id={osd}"))
        self.until(f"osd.{osd} to be down", 60, lambda: not (self.slot(osd) or {"up": 0})["up"])
        return "ok"

    def kill(self, osd):
        self.on(osd, 'p=$(cat "/run/ceph/hand.$1.pid") && kill "$p"; while kill -0 "$p" 2> /dev/null; do sleep 0.05; done')

    def start(self, osd):
        """Starts an OSD by its Deployment, which `stop` scaled to 0."""
        self.world.kubectl("scale", "deployment", f"rook-ceph-osd-{osd}", "--replicas=1")
        self.until(f"osd.{osd} to be up", 90, lambda: self.slot(osd)["up"])
        return "up"

    def boot(self, osd):
        """Starts the daemon, and returns whether the OSD is up or was rejected."""
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
        """Returns whether the mon ignored the boot, which only the mon's log shows."""
        path = "/var/log/ceph/ceph-mon.a.log"
        text = self.world.lab("on", "adm", "tail", "-c", f"+{self.mon_log_at}", path).stdout
        return any(f"osd.{osd} " in line and "clashes with existing osd: different fsid" in line for line in text.splitlines())

    def hear(self, osd):
        """Waits until no PG that the mgr reports has this OSD in its acting set."""
        pgs = lambda: self.session.read("pg dump", "mgr", dumpcontents=["pgs"])["pg_stats"]  # noqa: E731
        self.until(f"the mgr to know that osd.{osd} is down", 30, lambda: not any(int(osd) in pg["acting"] for pg in pgs()))
        return "ok"

    def is_known(self):
        pgs = self.session.read("pg dump", "mgr", dumpcontents=["pgs"])["pg_stats"]
        return all(pg["up"] == self.session.read("pg map", pgid=pg["pgid"])["up"] for pg in pgs)

    def settle(self):
        """Waits until all PGs are clean, and the mgr knows where CRUSH places them by now."""
        self.until("the mgr to know the up sets of all PGs", 30, self.is_known)
        time.sleep(1.2)  # a little more than the lab's mgr_stats_period
        self.world.lab("wait-clean", "40")
        return "ok"
