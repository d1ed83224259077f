"""What docs/guides/recover-by-hand.md says to type where no run may be used, typed on real Ceph: each command is taken from the page, its
placeholders (osd.5, h1, NAME, DEV, FSID, WEIGHT ...) are filled in by what the page's own questions answer.

Runs bring an OSD to a phase and are deleted there, as the page says. Each case ends with the cluster as it was before."""
import functools
import json
import os
import re
import shutil
import subprocess
import time

from . import faults, rights
from .bad_day import slot
from .world import HERE, LAB

RUNBOOK, LEDGER, RECOVER = "docs/guides/recover-by-hand.md", "docs/concepts/ledger.md", "docs/guides/recover-the-ledger.md"
LOST = "When it is lost"  # how to recover the ledger
DOCUMENTS = os.path.join(HERE, "..", "..")
# Placeholders that must not be left in what is typed.
OPEN = r"\b(NAME|DEV|FSID|PATH|CLASS|WEIGHT|REWEIGHT|AFFINITY|PG FROM TO|OLD|ISSUED)\b"
# What a person has there: root on the nodes, Ceph's toolbox, the program. Not of the page: the lab has them otherwise.
THERE = """set -e -o pipefail; cd {folder}; export KUBECONFIG={folder}/kubeconfig-by-hand
ceph() {{ {lab} ceph "$@"; }}
ssh() {{ {lab} on "$@"; }}
sgdisk() {{ {lab} on {host} sgdisk "$@"; }}
osd-migrate() {{ {binary} "$@"; }}
"""


def run(world):
    world.up()
    world.lab("write", "100")
    world.adorn()
    shutil.copy(os.path.join(world.folder(), "kubeconfig"), os.path.join(world.folder(), "kubeconfig-by-hand"))
    for case, osd in [(prepared, 5), (stopped, 0), (lost, 0), (destroyed, 0), (destroyed, 1), (recreated, 0), (gone, 1)]:
        before, began = world.shape(), time.monotonic()
        world.say(f"osd.{osd}, {case.__name__}")
        case(world, osd)
        world.lab("wait-clean", "200")
        world.expect_nothing_left()
        world.lab("verify")
        assert world.shape() == before, f"the cluster changed its shape:\n{before}\n{world.shape()}"
        world.say(f"osd.{osd}, {case.__name__}: as before, after {time.monotonic() - began:.0f} s")
    assert set(world.stores().values()) == {"bluestore"}, world.stores()


# ---- the page


@functools.cache
def read(name):
    with open(os.path.join(DOCUMENTS, name), encoding="utf-8") as file:
        return file.read()


def section(heading, page=RUNBOOK):
    return re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", read(page), re.MULTILINE | re.DOTALL)[1]


def commands(heading, *words, without=(), page=RUNBOOK):
    """The commands in a section's indented blocks, in their order; where words are given those that have one of them."""
    found, begun = [], []
    for line in re.findall(r"^    (.*)$", section(heading, page), re.MULTILINE):
        begun.append(line)
        whole = "\n".join(begun)
        if not line.endswith(("|", "\\")) and subprocess.run(["bash", "-n", "-c", whole], capture_output=True, check=False).returncode == 0:
            found.append(whole)
            begun = []
    assert not begun, f"{heading}: no end of {begun}"
    chosen = [one for one in found if (not words or any(word in one for word in words)) and not any(word in one for word in without)]
    assert all(any(word in one for one in chosen) for word in words), f"{heading}: not all of {words} are in {found}"
    return chosen


def entry(phase, *verbs):
    """The commands of a phase's entry that begin so."""
    return quoted(re.search(rf"^- (?:<a id=\S+></a>\s+)?\*\*`{phase}`\*\*(.*?)(?=^- |\Z)", section("Phase by phase"), re.MULTILINE | re.DOTALL)[1], *verbs)


def quoted(text, *verbs):
    """The commands in a text's sentences that begin so."""
    found = [one for one in re.findall("`([^`]+)`", " ".join(text.split())) if one.startswith(verbs)]
    assert len(found) == len(verbs), f"{found} instead of {verbs}"
    return found


def typed(world, osd, lines, code=0, **values):
    """Types commands of the page one after the other in one shell, in which its functions are known; what they print."""
    host = faults.host_of(osd)
    values = {"5": osd, "h1": host, **{name: value for name, value in values.items() if value is not None}}
    fill = re.compile(r"\b(%s)\b" % "|".join(sorted(map(re.escape, values), key=len, reverse=True)))
    filled = [fill.sub(lambda found: str(values[found[1]]), line) for line in lines]
    for line in filled:
        assert not re.search(OPEN, re.sub(r" # .*", "", line)), f"a placeholder is left: {line}"
        print("    " + line.replace("\n", "\n      "), flush=True)
    functions = commands("Before you type", "input() {", "hand() {") + [re.search(r"^ +(osd_migrate\(\) \{.*?^ +\})", read("docs/guides/run.md"), re.M | re.S)[1]]
    there = THERE.format(folder=world.folder(), lab=LAB, host=host, binary=world.binary)
    with open(os.path.join(world.folder(), "typed"), "w", encoding="utf-8") as file:
        file.write("\n".join([there, *functions, *filled, ""]))
    done = world.lab("net", "bash", "-c", 'exec bash < "$0"', file.name, check=False)  # as pasted: what reads on eats what comes next
    assert (done.returncode == 0) == (code == 0), f"exit {done.returncode}:\n{filled}\n{done.stdout}{done.stderr}"
    return done.stdout


class Hand:
    """The pod in which `hand` types."""

    def __init__(self, world, osd):
        self.world, self.osd = world, osd

    def __enter__(self):
        typed(self.world, self.osd, commands("Before you type", "node=h1", '"osd-hand"', "wait --for"))

    def __exit__(self, *_):
        typed(self.world, self.osd, commands("Before you type", "delete pod osd-hand"))


# ---- to a phase, by a run


def put_aside(world, job, osd):
    """The run is ended as the page says; what an agent of its does goes on."""
    assert "true" in typed(world, osd, commands("First"), NAME=job)
    world.until("the runner's pod to be gone", 60, lambda: not world.get("pods", "-l", f"batch.kubernetes.io/job-name={job}"))


def begin(world, osd):
    return world.start(f"run-{len(world.jobs)}", faults.select(osd))


def hold_destroyed(world, osd):
    """Its slot is destroyed, its disk as it was: the agent that wipes it can't start, and its Job goes too."""
    job = begin(world, osd)
    faults.hold_before_rebuild(world, osd)
    put_aside(world, job, osd)
    world.kubectl("delete", "job", "-l", f"osd-migrate.io/osd={osd}")
    faults.let_pods_go(world)
    return stands(world, osd, state={"destroyed", "exists"})


def outlived_by_its_agent(world, osd):
    """A run that is ended while its agent makes the new OSD: that is finished, and nothing starts it."""
    job = begin(world, osd)
    agent = lambda: world.get("pods", "-l", f"osd-migrate.io/osd={osd},osd-migrate.io/task=rebuild") or {"items": []}  # noqa: E731
    phase = lambda: [pod["status"]["phase"] for pod in agent()["items"]]  # noqa: E731
    world.until("its agent to run", 120, lambda: phase() == ["Running"], pause=0.1)
    put_aside(world, job, osd)
    world.until("its agent to end", 90, lambda: phase() == ["Succeeded"])


def stands(world, osd, state=None):
    """What the page asks for to tell the phase, as expected; the values of its placeholders."""
    answers = [list(rights.documents(typed(world, osd, [question]))) for question in commands("Where it stands")]
    (record,), slots, deployments, reports = answers
    assert [set(one["state"]) - {"noout", "noin"} for one in slots] == ([state] if state else []), slots
    assert [(one["replicas"], one["mark"]) for one in deployments] == [(0, record["id"])], deployments
    issued = record["issued"] + [fsid for report in reports for fsid in report["issued"]]
    pairs = [(item["pg"], *pair) for item in record["upmaps"] for pair in item["mappings"]]
    return {
        "DEV": record["disk"][0], "OLD": record["old"], "ISSUED": issued[-1] if issued else None, "CLASS": record["class"], "WEIGHT": record["weight"],
        "REWEIGHT": record["reweight"], "AFFINITY": record["affinity"], "PG FROM TO": " ".join(map(str, pairs[0])) if pairs else None,
    }  # fmt: skip


# ---- what is typed


def serves(world, osd, *words):
    typed(world, osd, commands("Serve as before", *words))
    world.until(f"osd.{osd} to be up", 90, lambda: faults.is_up(world, osd))


def old_serves_again(world, osd):
    """Its record is put away by a run that is cancelled."""
    world.jobs.append(f"away-{len(world.jobs)}")
    typed(world, osd, commands("Remove the record", "osd-migrate -n rook-ceph cancel", "create job"), NAME=world.jobs[-1])
    assert world.wait_for(world.jobs[-1], 150) == ("Failed", 3), world.log(world.jobs[-1])
    typed(world, osd, commands("Remove the record", "osd-migrate -n rook-ceph resume"))


def restore_slot(world, osd, by, code=0, **values):
    typed(world, osd, commands("Restore the slot", by, "ceph osd new"), code=code, **values)
    assert ("destroyed" in slot(world, osd)["state"]) == (code != 0)


def started(world, osd, values):
    """A finished OSD that nothing starts."""
    typed(world, osd, commands("Start an OSD that was created by hand", "delete deployment"))
    typed(world, osd, commands("Remove the record", "--argjson"))
    world.jobs.append(f"adopt-{len(world.jobs)}")
    select, adopt, unselect = commands("Start an OSD that was created by hand", "patch cephcluster", "osd_migrate adopt")
    typed(world, osd, [select, adopt], adopt=world.jobs[-1], **values)
    assert world.wait_for(world.jobs[-1], 200) == ("Complete", 0), world.log(world.jobs[-1])
    typed(world, osd, [unselect])
    world.until(f"osd.{osd} to be up", 90, lambda: faults.is_up(world, osd))
    typed(world, osd, commands("Unset the flags"), **values)


# ---- cases


def stopped(world, osd):
    """Its pod is kept from going by a finalizer, so the run waits for it: then the run goes first."""
    pod = world.get("pods", "-l", f"ceph-osd-id={osd}")["items"][0]["metadata"]["name"]
    finalizers = lambda names: world.kubectl("patch", "pod", pod, "-p", json.dumps({"metadata": {"finalizers": names}}))  # noqa: E731
    finalizers(["lab.local/held"])
    job = begin(world, osd)
    world.until(f"osd.{osd} to be stopped", 90, lambda: not faults.is_up(world, osd))
    put_aside(world, job, osd)
    finalizers(None)
    stands(world, osd, state={"exists"})
    serves(world, osd, "annotate", "scale")
    old_serves_again(world, osd)


def destroyed(world, osd):
    """The old OSD is whole: BlueStore made by hand has its key in its data folder only; Filestore on its data partition."""
    values, folder, facts = hold_destroyed(world, osd), f"/var/lib/rook/osd{osd}", world.facts(osd)
    with Hand(world, osd):
        if facts["kind"].startswith("filestore"):
            folder = "/mnt"
            world.lab("on", faults.host_of(osd), "mount", "-o", "ro,norecovery", facts["part"], folder)
        else:
            restore_slot(world, osd, "show-label", code=1, FSID=values["OLD"], **values)
        restore_slot(world, osd, "ssh h1", FSID=values["OLD"], PATH=folder)
    if folder == "/mnt":
        world.lab("on", faults.host_of(osd), "umount", folder)
        world.kubectl("delete", "deployment", f"rook-ceph-osd-{osd}", "--cascade=foreground")
        serves(world, osd, "get configmap")
    else:
        serves(world, osd, "annotate", "scale")
    old_serves_again(world, osd)


def lost(world, osd):
    """The ledger of an OSD whose slot is destroyed is deleted, and nobody has a copy."""
    values = hold_destroyed(world, osd)
    lose_ledger(world, osd)
    looked = typed(world, osd, commands(LOST, "ceph osd dump", "get jobs,pods", "get deployments", page=RECOVER))
    assert '"destroyed"' in looked, looked
    kept = world.get("configmap", f"osd-migrate-osd-{osd}")["data"]["deployment"]
    assert re.search(r'--osd-uuid[^0-9a-f]+([0-9a-f-]{36})', kept)[1] == values["OLD"], kept
    with Hand(world, osd):
        restore_slot(world, osd, "ssh h1", FSID=values["OLD"], PATH=f"/var/lib/rook/osd{osd}")
    serves(world, osd, "annotate", "scale")
    reweight = next(node["reweight"] for node in world.ceph("osd", "tree")["nodes"] if node["id"] == osd)
    lift = commands(LOST, "osd reweight", "unset-group", "get cephcluster", page=RECOVER)
    fence = typed(world, osd, lift, REWEIGHT=reweight).splitlines()[-1]
    assert fence.startswith("osd-migrate-") and "new" not in slot(world, osd)["state"], (fence, slot(world, osd))
    typed(world, osd, commands(LOST, "label cephcluster", "patch pdb", page=RECOVER))
    log = faults.expect_end(world, begin(world, 5), 0, 300)  # osd.5 was migrated before
    assert "nothing is left to do" in log, log


def lost_and_put_back(world, osd):
    """The same, with a copy that was kept."""
    typed(world, osd, commands("Keep a copy", "> ledger.json", page=LEDGER))
    records = world.records()
    lose_ledger(world, osd)
    typed(world, osd, commands("You have a copy", "create -f", page=RECOVER))
    assert world.records() == records


def lose_ledger(world, osd):
    world.kubectl("delete", "configmap", "osd-migrate-ledger")
    log = faults.expect_end(world, begin(world, osd), 10, 300)
    assert f"Deployment rook-ceph-osd-{osd} has the mark of record" in log and "[ledger-lost]" in log, log


def recreated(world, osd):
    """First under another id, by mistake: that is undone."""
    values, stray = hold_destroyed(world, osd), len(world.fsids())
    wipe = commands("Recreate it", "set-group", "lvm zap", "raw list")
    make = commands("Recreate it", "mons=", "printf", "auth get client", "raw prepare", "show-label")
    with Hand(world, osd):
        assert list(rights.documents(typed(world, osd, wipe, **values)))[-1] == {}
        typed(world, osd, [line.replace(" --osd-id 5", "") for line in make], **values)
        assert slot(world, stray), f"ceph-volume did not make osd.{stray}"
        typed(world, osd, entry("Misplaced", "ceph osd purge-new"), **{"6": stray})
        typed(world, osd, wipe, **values)
        label = list(rights.documents(typed(world, osd, make, **values)))[-1]
    assert label == {"osd_uuid": slot(world, osd)["uuid"], "whoami": str(osd), "ready": "ready"}, label
    started(world, osd, values)


def prepared(world, osd):
    """The runner is gone before its agent has finished. Then somebody purges the id, and somebody else removes its key."""
    outlived_by_its_agent(world, osd)
    values = stands(world, osd, state={"exists", "new"})
    world.lab("ceph", "osd", "purge", str(osd), "--force", "--yes-i-really-mean-it")
    stands(world, osd)
    typed(world, osd, entry("Purged", "ceph osd new", "ceph osd destroy"), **values)
    typed(world, osd, commands("Restore the CRUSH location", without=["upmap"]), **values)
    with Hand(world, osd):
        restore_slot(world, osd, "show-label", FSID=values["ISSUED"], **values)
        world.lab("ceph", "auth", "rm", f"osd.{osd}")
        typed(world, osd, entry("Unauthed", "ceph osd destroy"))
        restore_slot(world, osd, "show-label", FSID=values["ISSUED"], **values)
    started(world, osd, values)
    typed(world, osd, commands("Restore the CRUSH location", "upmap"), **values)


def gone(world, osd):
    """The ledger is deleted and put back; an administrator purges it; the id and its place are put back by hand, a run does
    the rest; its key is removed on the way."""
    values, upmaps = hold_destroyed(world, osd), world.shape()["upmaps"]
    lost_and_put_back(world, osd)
    world.lab("ceph", "osd", "purge", str(osd), "--force", "--yes-i-really-mean-it")
    stands(world, osd)
    typed(world, osd, entry("Gone", "ceph osd new", "ceph osd destroy"), **values)
    typed(world, osd, commands("Restore the CRUSH location", without=["upmap"]), **values)
    outlived_by_its_agent(world, osd)
    world.lab("ceph", "auth", "rm", f"osd.{osd}")
    log = faults.expect_end(world, begin(world, osd), 0, 300)
    assert f"osd.{osd}: created a Job to restore the slot" in log, log
    for item in upmaps:  # of others; without this place CRUSH maps other PGs otherwise, and the mons drop their upmaps
        pairs = [str(pair[end]) for pair in item["mappings"] for end in ("from", "to")]
        world.lab("ceph", "osd", "pg-upmap-items", item["pgid"], *pairs)
