"""Types the commands of docs/guides/recover-by-hand.md, for cases in which no run may be used, on real Ceph.

Each command is taken from the page. The answers to the page's own questions replace its placeholders (osd.5, h1, NAME,
DEV, FSID, WEIGHT ...).

A run brings an OSD to a phase and is deleted there, as the page says. After each case, the cluster is as it was before.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import time

from . import faults, kills, rights
from .bad_day import slot
from .world import HERE, LAB

RUNBOOK, LEDGER, RECOVER = "docs/guides/recover-by-hand.md", "docs/concepts/ledger.md", "docs/guides/recover-the-ledger.md"
LOST = "When it is lost"  # heading of the section that recovers the ledger
DOCUMENTS = os.path.join(HERE, "..", "..")
# Placeholders that must not be left in a command.
PLACEHOLDERS = r"\b(NAME|DEV|FSID|PATH|CLASS|WEIGHT|REWEIGHT|AFFINITY|PG FROM TO|OLD|ISSUED)\b"
# Tools that the page assumes: root on the nodes, Ceph's toolbox, the program. The lab provides them as functions.
SHELL = """set -e -o pipefail; cd {folder}; export KUBECONFIG={folder}/kubeconfig-by-hand
ceph() {{ {lab} ceph "$@"; }}
ssh() {{ {lab} on "$@"; }}
sgdisk() {{ {lab} on {host} sgdisk "$@"; }}
osd-migrate() {{ {binary} "$@"; }}
"""


def run(world):
    world.up()
    world.lab("write", "100")
    world.customize()
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
    """Returns the commands in a section's indented blocks, in their order; with words, those that contain one of them."""
    found, block = [], []
    for line in re.findall(r"^    (.*)$", section(heading, page), re.MULTILINE):
        block.append(line)
        whole = "\n".join(block)
        if not line.endswith(("|", "\\")) and subprocess.run(["bash", "-n", "-c", whole], capture_output=True, check=False).returncode == 0:
            found.append(whole)
            block = []
    assert not block, f"{heading}: the command is incomplete: {block}"
    chosen = [one for one in found if (not words or any(word in one for word in words)) and not any(word in one for word in without)]
    assert all(any(word in one for one in chosen) for word in words), f"{heading}: not all of {words} are in {found}"
    return chosen


def entry(phase, *verbs):
    """Returns the commands of a phase's entry that begin with these verbs."""
    return quoted(re.search(rf"^- (?:<a id=\S+></a>\s+)?\*\*`{phase}`\*\*(.*?)(?=^- |\Z)", section("Phase by phase"), re.MULTILINE | re.DOTALL)[1], *verbs)


def quoted(text, *verbs):
    """Returns the commands in a text that begin with these verbs."""
    found = [one for one in re.findall("`([^`]+)`", " ".join(text.split())) if one.startswith(verbs)]
    assert len(found) == len(verbs), f"{found} instead of {verbs}"
    return found


def typed(world, osd, lines, code=0, **values):
    """Types commands of the page in one shell with the page's functions, and returns their output."""
    host = faults.host_of(osd)
    values = {"5": osd, "h1": host, **{name: value for name, value in values.items() if value is not None}}
    fill = re.compile(r"\b(%s)\b" % "|".join(sorted(map(re.escape, values), key=len, reverse=True)))
    filled = [fill.sub(lambda found: str(values[found[1]]), line) for line in lines]
    for line in filled:
        assert not re.search(PLACEHOLDERS, re.sub(r" # .*", "", line)), f"a placeholder is left: {line}"
        print("    " + line.replace("\n", "\n      "), flush=True)
    functions = commands("Before you type", "input() {", "hand() {")
    there = SHELL.format(folder=world.folder(), lab=LAB, host=host, binary=world.binary)
    with open(os.path.join(world.folder(), "typed"), "w", encoding="utf-8") as file:
        file.write("\n".join([there, *functions, *filled, ""]))
    done = world.lab("net", "bash", "-c", 'exec bash < "$0"', file.name, check=False)  # as pasted: what reads stdin gets the next lines
    assert (done.returncode == 0) == (code == 0), f"exit {done.returncode}:\n{filled}\n{done.stdout}{done.stderr}"
    return done.stdout


class Hand:
    """The pod in which `hand` runs commands."""

    def __init__(self, world, osd):
        self.world, self.osd = world, osd

    def __enter__(self):
        typed(self.world, self.osd, commands("Before you type", "node=h1", '"osd-hand"', "wait --for"))

    def __exit__(self, *_):
        typed(self.world, self.osd, commands("Before you type", "delete pod osd-hand"))


# ---- to a phase, by a run


def end_run(world, job, osd):
    """Ends the run as the page says, without ending its agent."""
    assert "true" in typed(world, osd, commands("First"), NAME=job)
    world.until("the runner's pod to be gone", 60, lambda: not world.get("pods", selector=f"batch.kubernetes.io/job-name={job}"))


def begin(world, osd):
    return world.start(f"run-{len(world.jobs)}", faults.select(osd))


def run_until_destroyed(world, osd):
    """Brings an OSD to the phase in which its slot is destroyed and its disk is unchanged.

    The agent that would wipe the disk cannot start, and its Job is deleted. Returns the values of the placeholders.
    """
    job = begin(world, osd)
    faults.block_before_rebuild(world, osd)
    end_run(world, job, osd)
    world.kubectl("delete", "job", "-l", f"osd-migrate.io/osd={osd}")
    faults.unblock_pods(world)
    return stands(world, osd, state={"destroyed", "exists"})


def outlived_by_its_agent(world, osd):
    """Ends a run while its agent creates the new OSD. The agent completes it, and nothing starts the OSD."""
    job = begin(world, osd)
    agent = lambda: world.list("pods", selector=f"osd-migrate.io/osd={osd},osd-migrate.io/task=rebuild")  # noqa: E731
    phase = lambda: [pod["status"]["phase"] for pod in agent()]  # noqa: E731
    world.until("its agent to run", 120, lambda: phase() == ["Running"], pause=0.1)
    end_run(world, job, osd)
    world.until("its agent to end", 90, lambda: phase() == ["Succeeded"])


def stands(world, osd, state=None):
    """Checks the answers to the page's questions about the phase, and returns the values of its placeholders."""
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
    """Removes the record by a run that is cancelled."""
    world.jobs.append(f"away-{len(world.jobs)}")
    typed(world, osd, commands("Remove the record", "osd-migrate -n rook-ceph cancel", "create job"), NAME=world.jobs[-1])
    assert world.wait_for(world.jobs[-1], 150) == ("Failed", 3), world.log(world.jobs[-1])
    typed(world, osd, commands("Remove the record", "osd-migrate -n rook-ceph resume"))


def restore_slot(world, osd, by, code=0, **values):
    typed(world, osd, commands("Restore the slot", by, "ceph osd new"), code=code, **values)
    assert ("destroyed" in slot(world, osd)["state"]) == (code != 0)


def started(world, osd, values):
    """Starts a finished OSD that nothing else starts."""
    typed(world, osd, commands("Start an OSD that was created by hand", "delete deployment"))
    typed(world, osd, commands("Remove the record", "--argjson"))
    select, adopt, unselect = commands("Start an OSD that was created by hand", "patch cephcluster", "osd-migrate -n rook-ceph provision")
    typed(world, osd, [select, adopt], **values)
    jobs = [job["metadata"]["name"] for job in world.get("jobs")["items"]]
    world.kubectl("delete", "job", *(job for job in jobs if job.startswith("osd-migrate-provision-")))
    typed(world, osd, [unselect])
    world.until(f"osd.{osd} to be up", 90, lambda: faults.is_up(world, osd))
    typed(world, osd, commands("Unset the flags"), **values)


# ---- cases


def stopped(world, osd):
    """Restores an OSD that is stopped, whose pod is not deleted yet because of a finalizer."""
    pod = world.get("pods", selector=f"ceph-osd-id={osd}")["items"][0]["metadata"]["name"]
    finalizers = lambda names: world.kubectl("patch", "pod", pod, "-p", json.dumps({"metadata": {"finalizers": names}}))  # noqa: E731
    finalizers(["lab.local/blocked"])
    job = begin(world, osd)
    # The run destroys the slot as soon as it sees the OSD down and its container ended: it is killed before that.
    world.until(f"osd.{osd} to be stopped", 90, lambda: world.get("deployment", f"rook-ceph-osd-{osd}")["spec"]["replicas"] == 0, pause=0.1)
    kills.KINDS["runner process"](world, job)
    end_run(world, job, osd)
    finalizers(None)
    world.until(f"osd.{osd} to be down", 90, lambda: not faults.is_up(world, osd))
    stands(world, osd, state={"exists"})
    serves(world, osd, "annotate", "scale")
    old_serves_again(world, osd)


def destroyed(world, osd):
    """Restores an OSD whose slot is destroyed and whose data is complete.

    BlueStore that was created by hand has its key only in its data folder, Filestore on its data partition.
    """
    values, folder, facts = run_until_destroyed(world, osd), f"/var/lib/rook/osd{osd}", world.facts(osd)
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
    """Restores an OSD whose slot is destroyed, after the ledger was deleted and without a copy of it."""
    values = run_until_destroyed(world, osd)
    lose_ledger(world, osd)
    observed = typed(world, osd, commands(LOST, "ceph osd dump", "get jobs,pods", "get deployments", page=RECOVER))
    assert '"destroyed"' in observed, observed
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
    """Deletes the ledger, and restores it from a copy."""
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
    """Recreates the OSD by hand, first under another id by mistake, which is reverted."""
    values, misplaced = run_until_destroyed(world, osd), len(world.fsids())
    wipe = commands("Recreate it", "set-group", "lvm zap", "raw list")
    create = commands("Recreate it", "mons=", "printf", "auth get client", "raw prepare", "show-label")
    with Hand(world, osd):
        assert list(rights.documents(typed(world, osd, wipe, **values)))[-1] == {}
        typed(world, osd, [line.replace(" --osd-id 5", "") for line in create], **values)
        assert slot(world, misplaced), f"ceph-volume did not create osd.{misplaced}"
        typed(world, osd, entry("Misplaced", "ceph osd purge-new"), **{"6": misplaced})
        typed(world, osd, wipe, **values)
        label = list(rights.documents(typed(world, osd, create, **values)))[-1]
    assert label == {"osd_uuid": slot(world, osd)["uuid"], "whoami": str(osd), "ready": "ready"}, label
    started(world, osd, values)


def prepared(world, osd):
    """Starts an OSD that the agent of an ended run has created, after its id was purged and its key removed."""
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
    """Restores the id and the CRUSH location of a purged OSD by hand; a run does the rest.

    Before that the ledger is deleted and restored. Meanwhile the key is removed.
    """
    values, upmaps = run_until_destroyed(world, osd), world.shape()["upmaps"]
    lost_and_put_back(world, osd)
    world.lab("ceph", "osd", "purge", str(osd), "--force", "--yes-i-really-mean-it")
    stands(world, osd)
    typed(world, osd, entry("Gone", "ceph osd new", "ceph osd destroy"), **values)
    typed(world, osd, commands("Restore the CRUSH location", without=["upmap"]), **values)
    outlived_by_its_agent(world, osd)
    world.lab("ceph", "auth", "rm", f"osd.{osd}")
    log = faults.expect_end(world, begin(world, osd), 0, 300)
    assert f"osd.{osd}: created a Job to restore the slot" in log, log
    for item in upmaps:  # also of other OSDs: without this location CRUSH maps their PGs differently, and the mons remove the upmaps
        pairs = [str(pair[end]) for pair in item["mappings"] for end in ("from", "to")]
        world.lab("ceph", "osd", "pg-upmap-items", item["pgid"], *pairs)
