"""The fence that the owner of a cluster orders before an edit of the CephCluster, next to a running Rook.

Each step is checked on the label of the CephCluster, and at the end in the API server's audit log: who wrote the label.
"""
import json
import os

from . import laptop, rook
from .kills import delete_pods

THERE = ("-n", "rook-ceph")
ACCOUNT = "system:serviceaccount:rook-ceph:osd-migrate"
IN_FORCE = "the fence is in force"
EDIT = "Edit it now: kubectl -n rook-ceph edit cephcluster rook-ceph"
BY_OWNER = "has been fenced by its owner since"
NOT_FENCED = "the CephCluster has no fence of its owner: Rook reconciles it"


class Owner:
    """The owner of a cluster that a simulated Rook manages, which supports the fence."""

    def __init__(self, world):
        self.world, self.values, self.reconciled = world, [], 0
        self.operator = rook.Rook(world, "1.20.6", written=True)
        self.operator.start()

    def fence(self):
        """Returns the label of the CephCluster."""
        return self.world.get("cephcluster", "rook-ceph")["metadata"].get("labels", {}).get(rook.FENCE)

    def types(self, *args, code=0):
        """Types a command, which must end with this exit code, and returns what it says."""
        done = laptop.typed(self.world, *THERE, *args)
        said = done.stdout + done.stderr
        assert done.returncode == code, (args, done.returncode, said)
        return said

    def sets(self):
        """Types `fence`, which ends when Rook has acknowledged the label."""
        skipped = self.operator.skipped
        said = self.types("fence")
        value = self.fence()
        assert IN_FORCE in said and EDIT in said, said
        assert value and self.operator.skipped > skipped and value in self.operator.fences, (value, self.operator.fences)
        self.values.append(value)
        self.reconciled = self.operator.done
        self.world.say(f"fence: {rook.FENCE}={value}, acknowledged by Rook")

    def removes(self):
        """Types `fence --remove` before an edit."""
        said = self.types("fence", "--remove")
        assert NOT_FENCED in said and not self.fence(), (said, self.fence())
        self.world.say("fence --remove: the label is removed")

    def cannot_remove(self, *words):
        """Types `fence --remove`, which must be refused with these words, and leave the label."""
        said = self.types("fence", "--remove", code=3)
        assert all(word in said for word in words) and self.fence() == self.values[-1], (said, self.fence())
        self.world.say(f"fence --remove: refused: {said.splitlines()[-1]}")

    def runs_before_the_edit(self):
        """Starts a run as the CronJob does: it keeps the fence, and says so. So does `status`."""
        job = self.world.start("before-the-edit")
        assert self.world.wait_for(job, 120) == ("Complete", 0), self.world.log(job)
        assert BY_OWNER in self.world.log(job) and self.fence() == self.values[-1], (self.world.log(job), self.fence())
        assert "Fenced by its owner" in self.world.command(*THERE, "status")
        self.world.say("a run before the edit keeps the fence")

    def interrupts(self, osd, args):
        """Starts a run and deletes its Job when the OSD is destroyed: then nobody can remove the fence."""
        job, world = self.world.start("interrupted", args), self.world
        world.until(f"osd.{osd} to be destroyed", 120, lambda: "rebuild" in world.milestones(osd), pause=0.1)
        world.delete(job)
        delete_pods(world, f"batch.kubernetes.io/job-name={job}")
        self.cannot_remove("OSDs are in progress", f"osd.{osd}")

    def ends(self):
        """Checks that the label was only written by these steps, and that Rook finds the OSDs as declared."""
        world, operator = self.world, self.operator
        assert not self.fence(), self.fence()
        world.until("Rook to reconcile", 120, lambda: operator.done > self.reconciled)
        world.until("Rook's PodDisruptionBudget, which it deleted for a drain", 60, lambda: world.get("pdb", rook.PDB))
        failures = [*operator.failures]  # one that its end interrupts is none
        operator.end()
        assert not operator.trouble and not failures, (operator.trouble, failures)
        assert not (operator.started or operator.refilled or operator.reshaped), (operator.started, operator.refilled, operator.reshaped)
        assert operator.fences == set(self.values), (operator.fences, self.values)
        expected = [step for value in self.values for step in [(ACCOUNT, value), (ACCOUNT, None)]]
        assert label_writes(world) == expected, (label_writes(world), expected)
        world.kubectl("delete", "jobs", *(name for name in laptop.names(world) if name.startswith("osd-migrate-fence-")))
        world.say(f"fences {', '.join(self.values)} were set and removed once each, by osd-migrate; Rook finds the OSDs as declared")


def label_writes(world):
    """Returns the writes of the label, from the API server's audit log: the user, and the value, None if it was removed."""
    found, path = [], f"/metadata/labels/{rook.FENCE.replace('/', '~1')}"
    with open(os.path.join(world.folder(), "audit.log"), encoding="utf-8") as log:
        for line in log:
            entry = json.loads(line) if "do-not-reconcile" in line else {}
            if entry.get("objectRef", {}).get("resource") != "cephclusters" or entry["responseStatus"]["code"] >= 400:
                continue
            steps = [step for step in entry["requestObject"] if step["path"] == path and step["op"] != "test"]
            found += [(entry["user"]["username"], step.get("value")) for step in steps]
    return found
