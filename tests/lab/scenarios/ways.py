"""Ways to recreate a legacy OSD on its disk, for the scenario `bench`: osd-migrate, and three usual ways by hand.

A way by hand is a script that waits for what Ceph answers, without a pause for thought. Each way begins with the same
legacy OSD, and ends with an OSD that ceph-volume prepared, in a Deployment as created by Rook.
"""
import copy
import json

from . import course, sick
from .disks import attached

POLL = 0.3
RUN = ["run", "--confirm", "yes-really-migrate-osds"]
# BlueStore on a whole disk, with its data folder below dataDirHostPath: kind bluestore-dev of the lab.
MKFS = """set -e -o pipefail
id=$1 disk=$2 folder=$3 fsid=$4
rm -rf "$folder"; mkdir -p "$folder"; ln -s "$disk" "$folder/block"; chown ceph:ceph "$disk"
key=$(ceph-authtool --gen-print-key)
[ "$(echo "{\\"cephx_secret\\":\\"$key\\"}" | ceph osd new "$fsid" "$id" -i -)" = "$id" ]
ceph-authtool --create-keyring "$folder/keyring" --name "osd.$id" --add-key "$key"
echo bluestore > "$folder/type"; chown -R ceph:ceph "$folder/"
ceph-osd -i "$id" --mkfs --osd-uuid "$fsid" --osd-objectstore bluestore --osd-data "$folder" \\
  --osd-journal "$folder/journal" --keyring "$folder/keyring" --setuser ceph --setgroup ceph
"""


class Ways:
    """The ways for one OSD. Before the first one by hand, osd-migrate must have created its Deployment."""

    def __init__(self, world, osd):
        self.world, self.osd, self.parts = world, osd, []
        self.host, self.disk = attached(world)[f"osd{osd}"]
        self.folder = world.facts(osd)["dir"]
        self.legacy, self.migrated = self.deployment(), None

    def all(self):
        """Returns each way with its name. A way gets the thread that reads the statistics."""
        return [
            ("osd-migrate", self.by_osd_migrate),
            ("by hand, in place", self.in_place),
            ("drained first", self.drained),
            ("purged, created again", self.purged),
        ]

    # ---- four ways

    def by_osd_migrate(self, _watch):
        with course.Pods(self.world) as pods:
            job = self.world.start(f"bench-{len(self.world.jobs)}", [*RUN, "--select", f"osd.{self.osd}"])
            result = self.world.wait_for(job, 1800)
        assert result == ("Complete", 0), (result, self.world.log(job))
        self.parts.append(course.course(self.world, self.osd, pods))
        self.migrated = self.migrated or self.deployment()

    def in_place(self, _watch):
        """The least that a careful person does: the data of the other replicas fills the OSD again."""
        safe = lambda: not self.world.lab("ceph", "osd", "ok-to-stop", str(self.osd), check=False).returncode  # noqa: E731
        self.world.until(f"Ceph to agree to the stop of osd.{self.osd}", 60, safe)
        self.world.lab("ceph", "osd", "set", "noout")
        self.stop()
        self.ceph("destroy", "--yes-i-really-mean-it")
        self.prepare("--osd-id", str(self.osd))
        self.world.lab("ceph", "osd", "unset", "noout")

    def drained(self, watch):
        """The data moves away before the stop, and back afterwards."""
        self.ceph("out")
        self.emptied(watch)
        self.stop()
        self.ceph("destroy", "--yes-i-really-mean-it")
        self.prepare("--osd-id", str(self.osd))
        self.ceph("in")

    def purged(self, watch):
        """The OSD is removed as Rook's documentation says, and a new one is created on its disk."""
        self.ceph("out")
        self.emptied(watch)
        self.stop()
        self.ceph("purge", "--yes-i-really-mean-it")
        self.prepare()  # the lowest unused id is that of the purged OSD

    # ---- their steps

    def ceph(self, verb, *options):
        self.world.lab("ceph", "osd", verb, str(self.osd), *options)

    def emptied(self, watch):
        self.world.until(f"osd.{self.osd} to be empty", 1800, watch.is_empty, pause=POLL)

    def stop(self):
        self.world.kubectl("scale", "deployment", f"rook-ceph-osd-{self.osd}", "--replicas=0")
        self.world.until(f"osd.{self.osd} to be down", 90, lambda: not sick.slot(self.world, self.osd)["up"], pause=POLL)
        self.world.until("its pod to be gone", 90, lambda: not self.world.list("pods", selector=f"ceph-osd-id={self.osd}"), pause=POLL)

    def prepare(self, *options):
        """Wipes the disk of a stopped OSD, prepares a new OSD on it with ceph-volume, and starts it."""
        self.discard()
        self.on("ceph-volume", "raw", "prepare", "--bluestore", "--data", self.disk, *options)
        folder = f"/var/lib/ceph/osd/ceph-{self.osd}"
        fsid = self.on("cat", f"{folder}/fsid")
        self.on("umount", folder)
        self.on("rmdir", folder)
        self.start(self.migrated, fsid)

    def discard(self):
        self.on("blkdiscard", "--force", self.disk)
        self.world.lab("settle", self.host)

    def on(self, *words):
        return self.world.lab("on", self.host, *words).stdout.strip()

    def start(self, deployment, fsid):
        """Starts a prepared OSD by a Deployment, and waits until it is up."""
        new = json.loads(json.dumps(deployment).replace(fsid_of(deployment), fsid))
        self.world.kubectl("replace", "-f", "-", stdin=json.dumps(new))
        self.world.until(f"osd.{self.osd} to be up", 120, lambda: sick.slot(self.world, self.osd)["up"], pause=POLL)

    def deployment(self):
        """Returns the Deployment of the OSD without what the API server adds."""
        found = self.world.get("deployment", f"rook-ceph-osd-{self.osd}")
        kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
        metadata = {key: found["metadata"][key] for key in kept if key in found["metadata"]}
        return copy.deepcopy({key: found[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata})

    # ---- between two ways

    def make_legacy(self):
        """Recreates the OSD as the legacy one that it was."""
        self.stop()
        self.ceph("destroy", "--yes-i-really-mean-it")
        self.discard()
        with open("/proc/sys/kernel/random/uuid", encoding="ascii") as file:
            fsid = file.read().strip()
        self.on("bash", "-c", MKFS, "-", str(self.osd), self.disk, self.folder, fsid)
        self.start(self.legacy, fsid)


def fsid_of(deployment):
    environment = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    return next(variable["value"] for variable in environment if variable["name"] == "ROOK_OSD_UUID")
