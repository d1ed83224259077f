"""PersistentVolumeClaims of a device set become OSDs, while no Rook is running.

The first OSD of the set exists, as Rook created it. A second PVC is Pending at first, because its storage class waits for
a pod; once it is bound, it becomes an OSD, while runner, agents and kubelets are killed. The device of a third one has
data of another owner, which does not change. A fourth OSD is declared and has no PVC. With --full on two releases of
Ceph, and an OSD whose PVC is gone gets its id back on another PVC.
"""
from . import kills, new_osds, sick
from .disks import digest, fill
from .new_osds import by_id
from .provision import CONFIRMED, finished, nothing_to_do
from .pvc import AS_DECLARED, bind, device_set, expect_plan
from .pvc_osds import parts

SET = "volumes"
FIRST, SECOND, THIRD = 3, 4, 5  # ids of the OSDs on PVCs, on h1 to h3
MOMENTS = [
    (SECOND, "record", 0.3, "runner process"),
    (SECOND, "rebuilding", 2, "agent"),
    (SECOND, "rebuilding", 1, "kubelet"),
    (SECOND, "new", 0.5, "runner pod"),
]


def run(world):
    for release in [None, "20.2"] if world.full else [None]:
        if release:
            world.down_completely()
        world.up(osds=3, layout="0=raw", release=release)
        New(world).check()


class New:
    """The set and its PVCs, by index."""

    def __init__(self, world):
        self.world = world
        self.pvcs = [self.pvc("h1", 0)]
        world.lab("pvc-osd", str(FIRST), self.pvcs[0])
        self.declare(1)
        world.lab("write", "100")
        world.lab("wait-clean", "120")
        world.say(f"osd.{FIRST} is created on {self.pvcs[0]}")

    def check(self):
        self.pending()
        self.killed()
        self.foreign()
        self.missing()
        if self.world.full:
            self.replaced()
        new_osds.say_times(self.world)

    def pvc(self, host, index, name=None):
        """Creates a disk, its PersistentVolume and the PVC of an index, and returns the name of the PVC."""
        return self.world.lab("pvc", host, name or f"volume-{index}", SET, "data", str(index)).stdout.strip()

    def declare(self, count):
        """Declares the number of OSDs of the set, and no disks of nodes."""
        self.world.storage(storageClassDeviceSets=[{**device_set(SET, False), "count": count}], useAllNodes=False)

    def nothing_created(self, name, *words):
        """Runs, and checks that no OSD was created and that a warning has these words."""
        world = self.world
        slots, written = world.fsids(), world.written()
        log = finished(world, name, ["provision", *CONFIRMED])
        said = [line for line in log.splitlines() if all(word in line for word in words)]
        assert said, f"no word about {words}:\n{log}"
        assert world.fsids() == slots and len(world.written()) == len(written), f"something was written to Ceph:\n{log}"
        world.expect_nothing_left()
        print(f"    {said[-1][:400]}", flush=True)

    def expect(self, osd, host, index):
        """Checks that a PVC has exactly this OSD: up, in, in its place, with the Deployment of the first one."""
        world, pvc = self.world, self.pvcs[index]
        slot = sick.slot(world, osd)
        assert sorted(slot["state"]) == ["exists", "up"] and slot["in"] and slot["weight"] == 1, slot
        new_osds.in_crush(world, {(host, by_id(f"volume-{index}")): osd}, {host: {}}, {osd: 1})  # osd-settings.conf
        world.until(f"the pod of osd.{osd} to be ready", 60, lambda: world.is_ready(osd))
        found, first = (world.get("deployment", f"rook-ceph-osd-{one}") for one in (osd, FIRST))
        assert parts(found, osd, pvc) == parts(first, FIRST, self.pvcs[0]), (found, first)
        env = {e["name"]: e.get("value") for e in found["spec"]["template"]["spec"]["containers"][0]["env"]}
        wanted = {"ROOK_OSD_UUID": slot["uuid"], "ROOK_OSD_ID": str(osd), "ROOK_BLOCK_PATH": f"/mnt/{pvc}"}
        assert wanted.items() <= env.items(), env
        wanted = {"ceph.rook.io/pvc": pvc, "ceph.rook.io/DeviceSet": SET, "ceph-osd-id": str(osd), "topology-location-host": host}
        assert wanted.items() <= found["metadata"]["labels"].items(), found["metadata"]["labels"]
        ids = {FIRST: 0, SECOND: 1, THIRD: 2}
        pvcs = {one: self.pvcs[at] for one, at in ids.items() if at < len(self.pvcs) and one in world.fsids()}
        expect_plan(world, f"created-{osd}-{slot['up_from']}", pvcs, dict.fromkeys(pvcs, AS_DECLARED))
        world.lab("wait-clean", "120")
        world.lab("verify")
        world.expect_nothing_left()
        world.say(f"osd.{osd} is created on {pvc} of {host}, with the Deployment of a sibling; all objects equal")

    def pending(self):
        """Checks that a PVC without a volume is named and not used."""
        self.declare(2)
        self.pvcs.append(self.pvc("h2", 1))
        self.nothing_created("pending", self.pvcs[1], "Pending", "WaitForFirstConsumer")

    def killed(self):
        """Checks that a bound PVC becomes one OSD, although the run is killed."""
        bind(self.world, self.pvcs[1], "volume-1")
        kills.spread(self.world, MOMENTS, "new", ["provision", *CONFIRMED])
        self.expect(SECOND, "h2", 1)
        nothing_to_do(self.world, "again", ["provision", *CONFIRMED])

    def foreign(self):
        """Checks that a device with data of another owner does not change, and becomes an OSD when it is blank."""
        world, disk = self.world, by_id("volume-2")
        self.pvcs.append(self.pvc("h3", 2))
        bind(self.world, self.pvcs[2], "volume-2")
        fill(world, "h3", disk, "ext4")
        sha = digest(world.image("volume-2"))
        self.declare(3)
        self.nothing_created("foreign", self.pvcs[2], "ext4")
        world.lab("on", "h3", "blockdev", "--flushbufs", disk)
        assert digest(world.image("volume-2")) == sha, f"{self.pvcs[2]} was written to"
        world.lab("on", "h3", "blkdiscard", "-f", disk)
        finished(world, "blank", ["run", *CONFIRMED])
        self.expect(THIRD, "h3", 2)

    def missing(self):
        """Checks that a missing PVC is named, because only Rook creates it."""
        self.declare(4)
        self.nothing_created("missing", SET, "the PVC is missing")
        self.declare(3)

    def replaced(self):
        """Checks that a destroyed OSD whose PVC is gone gets its id back on another PVC of its set and host."""
        world, gone = self.world, self.pvcs[1]
        sick.stop(world, SECOND)
        world.lab("ceph", "osd", "destroy", str(SECOND), "--yes-i-really-mean-it")
        world.kubectl("delete", "pvc", gone, "--timeout=60s")
        fsid = world.fsids()[SECOND]
        self.pvcs[1] = self.pvc("h2", 1, "volume-1-new")
        bind(self.world, self.pvcs[1], "volume-1-new")
        finished(world, "replaced", ["run", *CONFIRMED])
        assert world.fsids()[SECOND] != fsid, f"osd.{SECOND} was not created"
        self.expect(SECOND, "h2", 1)
        nothing_to_do(world, "replaced-again", ["provision", *CONFIRMED])
