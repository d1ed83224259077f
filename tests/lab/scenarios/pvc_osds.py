"""The OSDs of the scenario `pvc_migration`, and what must be true of an encrypted one and of a plain one."""
import base64
import collections
import json
import re

from .new_osds import by_id
from .pvc import AS_DECLARED, bind, device_set, expect_plan
from .volumes import done

# ROOKS is encrypted at first: its key and its LUKS header are as Rook creates them. THIRD exists with --full only.
# WITH_DB, with its database on a PVC of its own, is created by the step `databases`, NEW by osd-migrate.
FIRST, ROOKS, THIRD, WITH_DB, NEW = 3, 4, 5, 6, 7
SETS = {FIRST: "set1", ROOKS: "set2", THIRD: "set3", WITH_DB: "set4", NEW: "set2"}
RUN = ["run", "--confirm", "yes-really-migrate-osds"]
RUNNER = "h1"  # the node of a runner that must not lose power
HEADER = 'for tag in TYPE VERSION LABEL SUBSYSTEM; do echo "$tag $(blkid -p -o value -s $tag "$1")"; done'
# Both copies of a LUKS2 header, wherever the second one is.
MAGIC = r"""head -c 16M "$1" | LC_ALL=C grep -acP 'SKUL\xba\xbe|LUKS\xba\xbe'"""
# Whether a process of the daemon has the mapping open.
IN_USE = """
mapping=$(dmsetup info -c --noheadings --separator : -o major,minor "$2")
for fd in "/proc/$(pgrep -f "^ceph-osd --foreground --id $1 ")/fd/"*; do stat -L -c %Hr:%Lr "$fd"; done 2> /dev/null | grep -x "$mapping"
"""


class Osds:
    """The OSDs on PVCs, and what was created with them."""

    def __init__(self, world):
        self.world = world
        self.ids, self.pvcs, self.devices = [], {}, {}  # PVCs and devices of the data, by OSD
        self.databases = {}  # PVC and device of the database of an OSD that has one
        for osd in [FIRST, ROOKS, *([THIRD] if world.full else [])]:
            self.add(osd, *(["--encrypted"] if osd == ROOKS else []))
        self.declare(ROOKS)
        world.lab("write", "100")
        world.lab("wait-clean", "120")
        self.plain, self.encrypted = self.deployment(FIRST), self.deployment(ROOKS)
        self.expect_plan("as-created")

    def add(self, osd, *options):
        """Creates an OSD on PVCs of its set."""
        pvcs = [self.pvc(osd, role, end) for role, end in self.roles(osd).items()]
        self.world.lab("pvc-osd", str(osd), *pvcs, *options, timeout=3600)
        self.note(osd, pvcs)
        self.world.say(f"osd.{osd} is created on {' and '.join([*pvcs, *options])}")

    def pvc(self, osd, role="data", end=""):
        """Creates the PVC of a part of an OSD, with its disk and PersistentVolume, and returns the name of the PVC."""
        index = "1" if osd == NEW else "0"
        return self.world.lab("pvc", "u1", f"pv-{osd}{end}", SETS[osd], role, index).stdout.strip()

    def note(self, osd, pvcs):
        """Notes an OSD with its PVCs, which are bound."""
        devices = [by_id(self.world.get("pvc", pvc)["spec"]["volumeName"].removeprefix("lab-")) for pvc in pvcs]
        self.ids.append(osd)
        self.pvcs[osd], self.devices[osd] = pvcs[0], devices[0]
        if osd == WITH_DB:
            self.databases[osd] = pvcs[1], devices[1]

    def give_database(self, osd):
        """Creates a bound PVC for the database of an OSD that has none."""
        pvc = self.pvc(osd, "metadata", "-db")
        bind(self.world, pvc, f"pv-{osd}-db")
        self.databases[osd] = pvc, by_id(f"pv-{osd}-db")

    def roles(self, osd):
        """Returns the templates of the OSD's set, with the ends of the names of their disks."""
        return {"data": "", "metadata": "-db"} if osd == WITH_DB or osd in self.databases else {"data": ""}

    def places(self, osd):
        """Returns the PVC, the device and the mapping of each part of an OSD."""
        found = [(self.pvcs[osd], self.devices[osd], self.mapping(osd))]
        if osd in self.databases:
            pvc, device = self.databases[osd]
            found.append((pvc, device, f"{pvc}-db-dmcrypt"))
        return found

    def declare(self, *encrypted):
        """Declares the sets, those of some OSDs as encrypted."""
        are_encrypted = {SETS[osd] for osd in encrypted}
        sets = {SETS[osd]: device_set(SETS[osd], SETS[osd] in are_encrypted, self.roles(osd)) for osd in self.ids}
        counts = collections.Counter(SETS[osd] for osd in self.ids)
        self.world.storage(storageClassDeviceSets=[{**one, "count": counts[name]} for name, one in sets.items()])

    def expect_plan(self, name, **differ):
        """Checks that all OSDs are as declared, except some: class and reason by `osdN`."""
        expected = {osd: differ.get(f"osd{osd}", AS_DECLARED) for osd in self.ids}
        expect_plan(self.world, name, self.pvcs, expected)

    def deployment(self, osd):
        return self.world.get("deployment", f"rook-ceph-osd-{osd}")

    def secret(self, osd):
        return self.world.get("secret", self.secret_name(osd))

    def secret_name(self, osd):
        return f"rook-ceph-osd-encryption-key-{self.pvcs[osd]}"

    def key(self, osd):
        return base64.b64decode(self.secret(osd)["data"]["dmcrypt-key"]).decode()

    def mapping(self, osd):
        return f"{self.pvcs[osd]}-block-dmcrypt"

    def is_open(self, osd):
        return self.mapping(osd) in self.on_u1("dmsetup", "ls").split()

    def on_u1(self, *words, **more):
        return self.world.lab("on", "u1", *words, **more).stdout.strip()

    def script(self, text, *words, **more):
        return self.on_u1("bash", "-c", text, "-", *words, **more)

    def run(self, name):
        """Runs to the end, which must be successful, with the runner on another node than u1."""
        job = self.world.start(name, RUN, node=RUNNER)
        self.ends(job)

    def ends(self, job):
        result = self.world.wait_for(job, 1800)
        assert result == ("Complete", 0), (result, self.world.log(job))

    # ---- what must be true after a run

    def expect_encrypted(self, osd):
        """Checks that an OSD is encrypted as Rook's: its devices, its daemon, its key and its Deployment."""
        world, pvc = self.world, self.pvcs[osd]
        cluster = world.get("cephcluster", "rook-ceph")["metadata"]["uid"]
        secret = self.secret(osd)
        assert secret["type"] == "kubernetes.io/rook" and secret["metadata"]["labels"] == {"pvc_name": pvc}, secret["metadata"]
        assert [(owner["kind"], owner["uid"]) for owner in secret["metadata"]["ownerReferences"]] == [("CephCluster", cluster)], secret["metadata"]
        assert re.fullmatch("[A-Za-z0-9+/]{171}=", self.key(osd)), f"a key of {len(self.key(osd))} characters"
        for place in self.places(osd):
            self.expect_locked(osd, *place)
        found = self.expect_deployment(osd, f"/dev/mapper/{self.mapping(osd)}", "true")
        if osd not in self.databases:
            assert parts(found, osd, pvc) == parts(self.encrypted, ROOKS, self.pvcs[ROOKS]), (found, self.encrypted)
        self.expect_no_key_with_mons(osd)
        world.say(f"osd.{osd} is encrypted: LUKS2 header, mapping, key and Deployment are as Rook's")

    def expect_locked(self, osd, pvc, device, mapping):
        """Checks that a device has a LUKS header as Rook's, which the OSD's key opens, and that the daemon uses its mapping."""
        header = dict(line.partition(" ")[::2] for line in self.script(HEADER, device).splitlines())
        wanted = {"TYPE": "crypto_LUKS", "VERSION": "2", "LABEL": f"pvc_name={pvc}", "SUBSYSTEM": f"ceph_fsid={self.world.ceph('fsid')['fsid']}"}
        assert header == wanted, (header, wanted)
        assert self.script(IN_USE, str(osd), mapping, check=False), f"ceph-osd of osd.{osd} does not use {mapping}"
        unlock = ["cryptsetup", "open", "--test-passphrase", "--key-file", "-", device]
        done = self.world.lab("on", "u1", *unlock, stdin=self.key(osd), check=False)
        assert done.returncode == 0, f"the key of osd.{osd} does not open {device}"

    def expect_no_key_with_mons(self, osd):
        """Checks that the mons have neither a dm-crypt key of an OSD nor a user that could read one."""
        fsid = self.world.fsids()[osd]
        names = json.loads(self.world.lab("ceph", "config-key", "ls").stdout)
        names += [entry["entity"] for entry in self.world.ceph("auth", "ls")["auth_dump"]]
        found = [name for name in names if fsid in name]
        assert not found, f"the mons have {found}"

    def expect_plain(self, osd):
        """Checks that an OSD is plain: nothing is left of a LUKS header, and no mapping."""
        pvc, mapped = self.pvcs[osd], self.on_u1("dmsetup", "ls").split()
        for _, device, mapping in self.places(osd):
            found = self.on_u1("blkid", "-p", "-o", "value", "-s", "TYPE", device)
            assert found == "ceph_bluestore", f"osd.{osd} is on {found}"
            assert self.script(MAGIC, device, check=False) == "0", f"a LUKS header is left on {device}"
            assert mapping not in mapped, f"{mapping} is open"
        found = self.expect_deployment(osd, f"/mnt/{pvc}", "false")
        if osd not in self.databases:
            assert parts(found, osd, pvc) == parts(self.plain, FIRST, self.pvcs[FIRST]), (found, self.plain)
        self.world.say(f"osd.{osd} is plain: no LUKS header, no mapping; its Deployment is as Rook's")

    def expect_deployment(self, osd, path, encrypted):
        found = self.deployment(osd)
        pod = found["spec"]["template"]
        env = {e["name"]: e.get("value") for c in pod["spec"]["containers"] + pod["spec"]["initContainers"] for e in c.get("env", [])}
        wanted = {"ROOK_OSD_UUID": self.world.fsids()[osd], "ROOK_BLOCK_PATH": path, "ROOK_CV_MODE": "raw"}
        assert wanted.items() <= env.items(), {name: env.get(name) for name in wanted}
        wanted = {"encrypted": encrypted, "osd-store": "bluestore", "ceph.rook.io/pvc": self.pvcs[osd], "ceph.rook.io/DeviceSet": SETS[osd]}
        for labels in (found["metadata"]["labels"], pod["metadata"]["labels"]):
            assert wanted.items() <= labels.items(), (wanted, labels)
        assert found["spec"]["replicas"] == 1, found["spec"]
        return found


def parts(deployment, osd, pvc):
    """Returns what the pod of an OSD consists of: its containers with their mounts and devices, and its volumes."""
    text = json.dumps(deployment["spec"]["template"]["spec"])
    pod = json.loads(text.replace(pvc, "PVC").replace(f"/ceph-{osd}", "/ceph-ID").replace(f'"ceph-{osd}"', '"ceph-ID"'))
    places = lambda entries, path: sorted((entry["name"], entry[path], entry.get("subPath")) for entry in entries)  # noqa: E731
    containers = [
        (one["name"], places(one.get("volumeMounts", []), "mountPath"), places(one.get("volumeDevices", []), "devicePath"))
        for one in [*pod["initContainers"], *pod["containers"]]
    ]
    return containers, sorted(json.dumps(volume, sort_keys=True) for volume in pod["volumes"]), pod.get("hostIPC")


class Before:
    """The cluster before a migration."""

    def __init__(self, osds):
        self.osds, world = osds, osds.world
        self.shape, self.fsids, self.epoch = world.shape(), world.fsids(), world.epoch()

    def expect_recreated(self, *ids):
        """Checks that these OSDs and no others were recreated, under their ids, and that all objects are equal."""
        world = self.osds.world
        done(world, self.shape, self.fsids, ids)
        world.expect_downs_on_one_host(self.epoch)
        world.expect_nothing_left()
