"""OSDs on PersistentVolumeClaims, recreated in place on u1: encrypted, plain, and encrypted again.

Each has its own device set, whose `encrypted` is changed; one has its database on a second PVC. Rook rotates the key
of one before its stop. Runners, agents and the kubelet are killed, and u1 loses power while a LUKS mapping is open. With
--full also the key of a stopped OSD is deleted, u1 loses power while an encrypted OSD is stopped, and a PVC of an encrypted
set becomes a new OSD. An encrypted OSD gets a database, and is not stopped while its Secret has another key. At the end a
PVC is recreated on another disk while the agent is suspended before its wipe: that disk must not change.
"""
import base64
import json
import random
import time

from . import frozen, key_rotation, kills, passphrase
from .disks import digest
from .killed import PHASES
from .new_osds import by_id, say_times
from .provision import finished
from .pvc import TO_BE_ENCRYPTED, bind
from .pvc_osds import FIRST, NEW, ROOKS, RUN, RUNNER, THIRD, WITH_DB, Before, Osds

OTHER = "other"  # a disk that belongs to none of them
# Moments of kills. An agent works in some phases only, and may fail a few times only.
AGENT_PHASES = ["inspect", "rebuilding"]
LONGEST = {"inspect": 5, "stopping": 3, "rebuilding": 30, "settling": 5}
KINDS = {
    "runner pod": kills.KINDS["runner pod"],
    "agent pod": lambda world, _job: kill_agent_pod(world),
    "kubelet": lambda world, _job: world.lab("restart", "u1", "kubelet"),
}
FILL = 'dd if=/dev/urandom of="$1" bs=1M count=64 oflag=direct status=none && blockdev --flushbufs "$1"'


def run(world):
    world.up(osds=3, layout="0=raw", uml=True)
    osds = Osds(world)
    more = [key_deleted, power_loss_while_stopped] if world.full else []
    new = [new_osd] if world.full else []
    for step in [encryption_on, encryption_off, killed, power_loss, *more, databases, *new, encrypted_database, pvc_swapped]:
        began = time.monotonic()
        step(osds)
        world.say(f"{step.__name__}: {time.monotonic() - began:.1f} s")
    say_times(world)


# ---- steps


def encryption_on(osds):
    """Encrypts an OSD; the next run changes nothing, and the passphrase is in the key Secret only."""
    world = osds.world
    osds.declare(FIRST, ROOKS)
    osds.expect_plan("to-encrypt", **{f"osd{FIRST}": TO_BE_ENCRYPTED})
    assert not osds.secret(FIRST), "there is a key before the run"
    before, watch = Before(osds), passphrase.Watch(world)
    osds.run("encrypt")
    watch.end()
    before.expect_recreated(FIRST)
    osds.expect_encrypted(FIRST)
    osds.expect_plan("encrypted")
    written, state = world.written(), versions(osds)
    finished(world, "nothing-more", RUN, 300)
    new = world.written()[len(written) :]
    assert not new and versions(osds) == state, f"a run with nothing to do changed something: {new}"
    world.say("encrypted; second run: nothing to do")
    watch.expect_nowhere(osds.key(FIRST), osds.secret(FIRST))


def versions(osds):
    """Returns uids and versions of the Deployments and the keys."""
    deployments = [osds.deployment(osd)["metadata"] for osd in osds.ids]
    secrets = [osds.secret(osd) for osd in osds.ids]
    return [(one["uid"], one["generation"]) for one in deployments], [one and one["metadata"]["resourceVersion"] for one in secrets]


def encryption_off(osds):
    """Makes encrypted OSDs plain, one that osd-migrate encrypted and one of Rook; their keys are kept.

    The first one is not stopped while Rook rotates its key.
    """
    osds.declare()
    to_be_plain = ("Mismatched", "encrypted, declared not encrypted")
    osds.expect_plan("to-decrypt", **{f"osd{FIRST}": to_be_plain, f"osd{ROOKS}": to_be_plain})
    before, secrets = Before(osds), [osds.secret(osd) for osd in (FIRST, ROOKS)]
    job = osds.world.start("decrypt", RUN, node=RUNNER)
    later = key_rotation.holds_back(osds.world, job)
    osds.ends(job)
    later.begins()
    later.ends()
    before.expect_recreated(FIRST, ROOKS)
    for osd in (FIRST, ROOKS):
        osds.expect_plain(osd)
    assert [osds.secret(osd) for osd in (FIRST, ROOKS)] == secrets, "a key was changed"
    expect_original(osds, FIRST, osds.plain)
    osds.expect_plan("plain")


def expect_original(osds, osd, was):
    """Checks that the Deployment is the one before the encryption, except for the fsid, and labels and annotations that were added."""
    now = osds.deployment(osd)
    old = next(e["value"] for e in was["spec"]["template"]["spec"]["containers"][0]["env"] if e["name"] == "ROOK_OSD_UUID")
    was = json.loads(json.dumps(was).replace(old, osds.world.fsids()[osd]))
    for of in (lambda one: one, lambda one: one["spec"]["template"]):
        assert of(was)["metadata"]["labels"].items() <= of(now)["metadata"]["labels"].items(), (of(was)["metadata"], of(now)["metadata"])
    for one in (was, now):
        for added in ("labels", "annotations"):  # `cephx-status`: the key of the OSD is a new one
            one["spec"]["template"]["metadata"].pop(added, None)
    assert was["spec"] == now["spec"], f"before: {json.dumps(was['spec'])}\nafter: {json.dumps(now['spec'])}"
    osds.world.say("encrypted and plain again: the same Deployment, except for the fsid")


def killed(osds):
    """Encrypts an OSD while pods of the runner and the agents, and the kubelet of u1, are killed at seeded moments."""
    world = osds.world
    osds.declare(FIRST)
    before = Before(osds)
    moments = seeded_moments(random.Random(world.seed), 10 if world.full else 3)
    count, jobs = kills.spread(world, moments, "killed", RUN, KINDS)
    assert count == len(moments), f"{count} kills of {len(moments)}, {jobs} Jobs"
    before.expect_recreated(FIRST)
    osds.expect_encrypted(FIRST)


def seeded_moments(rng, count):
    """Returns moments in different phases, with each kind of a kill."""
    while True:
        moments = []
        for phase in sorted(rng.sample(PHASES, count), key=PHASES.index):
            kind = rng.choice([kind for kind in KINDS if kind != "agent pod" or phase in AGENT_PHASES])
            moments.append((FIRST, phase, rng.uniform(0, LONGEST.get(phase, 0.5)), kind))
        if {kind for *_, kind in moments} == set(KINDS):
            return moments


def kill_agent_pod(world):
    """Kills the pod of an agent; it may not be created yet."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not world.list("pods", selector="osd-migrate.io/task"):
        time.sleep(0.2)
    kills.delete_pods(world, "osd-migrate.io/task")


def power_loss(osds):
    """Powers u1 off while ceph-volume writes to the new mapping; the existing key of the OSD is used, and kept."""
    world = osds.world
    osds.declare(FIRST, ROOKS)
    before, secret = Before(osds), osds.secret(ROOKS)
    job = world.start("power", RUN, node=RUNNER)
    world.until(f"{osds.mapping(ROOKS)} to be open", 600, lambda: osds.is_open(ROOKS))
    time.sleep(random.Random(world.seed).uniform(0, 8))
    assert osds.is_open(ROOKS) and not world.records()[ROOKS]["new"], "the agent has finished"
    power_cycle(osds)
    osds.ends(job)
    before.expect_recreated(ROOKS)
    for osd in (FIRST, ROOKS):
        osds.expect_encrypted(osd)
    assert osds.secret(ROOKS) == secret, "the key was changed"
    osds.expect_plan("powered-on")
    world.say("u1 lost power while the mapping was open, and was started again: its OSDs are encrypted, with their keys")


def key_deleted(osds):
    """Deletes the key of an OSD that is stopped: the run creates another one before it formats the device."""
    world = osds.world
    osds.declare(FIRST, ROOKS, THIRD)
    before, keys = Before(osds), []

    def delete_key():
        keys.append(osds.key(THIRD))
        world.kubectl("delete", "secret", osds.secret_name(THIRD))

    suspended_before_rebuild(osds, THIRD, delete_key)
    osds.run("new-key")
    before.expect_recreated(THIRD)
    osds.expect_encrypted(THIRD)
    assert osds.key(THIRD) not in keys, "it is the deleted key"
    world.say("the key was deleted after the stop: there is another one, and it opens the device")


def suspended_before_rebuild(osds, osd, act):
    """Does something while the OSD is stopped and its slot destroyed: the runner is suspended then, and killed."""
    sleeper = frozen.Sleeper(osds.world, "save-rebuild", osd)
    try:
        osds.world.until("a runner to be suspended before the rebuild", 600, sleeper.sleeps)
        act()
    finally:
        sleeper.kill()


def power_loss_while_stopped(osds):
    """Powers u1 off while the mapping of a stopped OSD is still open: afterwards its LUKS header proves what it is."""
    osds.declare(FIRST, ROOKS)
    before = Before(osds)

    def lose_power():
        assert osds.is_open(THIRD), "the mapping of the stopped OSD is closed"
        power_cycle(osds)
        assert not osds.is_open(THIRD)

    suspended_before_rebuild(osds, THIRD, lose_power)
    osds.run("after-power-loss")
    before.expect_recreated(THIRD)
    osds.expect_plain(THIRD)
    osds.world.say("u1 lost power while the OSD was stopped: it is plain, proven by its LUKS header")


# What starts an encrypted OSD with its database on a PVC, as Rook orders it. The rest is the same as without a database.
OPENING = [
    "blkdevmapper", "blkdevmapper-metadata", "encryption-open", "encryption-open-metadata", "blkdevmapper-encryption",
    "blkdevmapper-metadata-encryption", "encrypted-block-status", "expand-encrypted-bluefs", "activate",
]  # fmt: skip


def databases(osds):
    """Encrypts an OSD with its database on a PVC, with one key for both, and makes it plain again."""
    world = osds.world
    osds.add(WITH_DB)
    osds.declare(FIRST, ROOKS)
    world.lab("wait-clean", "120")
    osds.expect_plan("database")
    was = osds.deployment(WITH_DB)
    for name, encrypted in [("encrypt-database", [WITH_DB]), ("decrypt-database", [])]:
        osds.declare(FIRST, ROOKS, *encrypted)
        before = Before(osds)
        osds.run(name)
        before.expect_recreated(WITH_DB)
        (osds.expect_encrypted if encrypted else osds.expect_plain)(WITH_DB)
        found = world.ceph("osd", "metadata", str(WITH_DB))["bluefs_dedicated_db"]
        assert found == "1", f"osd.{WITH_DB} has no database of its own"
        if encrypted:
            names = [one["name"] for one in osds.deployment(WITH_DB)["spec"]["template"]["spec"]["initContainers"]]
            assert names[: len(OPENING)] == OPENING, names
    expect_original(osds, WITH_DB, was)
    osds.expect_plan("database-plain")


def new_osd(osds):
    """Checks that a PVC of an encrypted set that has no OSD becomes an encrypted one."""
    pvc = osds.pvc(NEW)
    bind(osds.world, pvc, f"pv-{NEW}")
    osds.note(NEW, [pvc])
    osds.declare(FIRST, ROOKS, NEW)
    osds.run("new-encrypted")
    osds.world.lab("wait-clean", "120")
    osds.world.lab("verify")
    osds.expect_encrypted(NEW)
    osds.expect_plan("new")


def encrypted_database(osds):
    """Gives an encrypted OSD a database on a PVC. With another key in its Secret, the OSD is not stopped."""
    world = osds.world
    osds.give_database(FIRST)
    osds.declare(FIRST, ROOKS)
    osds.expect_plan("encrypted-database", **{f"osd{FIRST}": ("Mismatched", "its database is with its data, declared on a PVC")})
    key = osds.key(FIRST)
    before = Before(osds)
    set_key(osds, FIRST, "another key")
    job = world.start("another-key", [*RUN, "--select", f"osd.{FIRST}"], node=RUNNER)
    result, log = world.wait_for(job, 900), world.log(job)
    assert result[0] == "Failed" and "does not open the LUKS header of its device" in log, (result, log)
    assert (world.fsids(), world.epoch()) == (before.fsids, before.epoch), f"osd.{FIRST} was stopped:\n{log}"
    set_key(osds, FIRST, key)
    world.command("retry", f"osd.{FIRST}", "-n", "rook-ceph")
    osds.run("encrypted-database")
    before.expect_recreated(FIRST)
    osds.expect_encrypted(FIRST)
    assert osds.key(FIRST) == key, "the key was changed"
    assert world.ceph("osd", "metadata", str(FIRST))["bluefs_dedicated_db"] == "1"
    world.say(f"osd.{FIRST} was not stopped with another key; with its own, it has an encrypted database")


def set_key(osds, osd, key):
    data = {"data": {"dmcrypt-key": base64.b64encode(key.encode()).decode()}}
    osds.world.kubectl("patch", "secret", osds.secret_name(osd), "--type", "merge", "-p", json.dumps(data))


def power_cycle(osds):
    osds.world.lab("power-off", "u1")
    osds.world.lab("power-on", "u1")


def pvc_swapped(osds):
    """Recreates a PVC on another disk while the agent is suspended before its wipe: the other disk does not change."""
    world, pvc = osds.world, osds.pvcs[FIRST]
    osds.declare(ROOKS)
    volume, sha = other_disk(osds)
    args = [*RUN, "--select", f"osd.{FIRST}"]
    begin = lambda: world.start("swapped", args, node=RUNNER)  # noqa: E731
    with frozen.SuspendedAgent(world, FIRST, "wipe", begin, host="u1", seconds=600) as agent:
        said = len(world.log("swapped"))
        recreate(world, pvc, volume)
        agent.wake()
    for job in ("swapped", "swapped-again"):
        sentence = world.until(f"{job} to name the PVC", 300, lambda j=job, n=said: names_pvc(world, j, n, pvc), pause=1)
        world.say(f"{job}: {world.result(job) or 'it waits'}: {sentence}")
        time.sleep(20)  # if an agent or a pod of the OSD is started on the other disk
        world.delete(job)
        if job == "swapped":
            world.start("swapped-again", args, node=RUNNER)
            said = 0
    osds.on_u1("blockdev", "--flushbufs", by_id(OTHER))
    assert digest(world.image(OTHER)) == sha, "the other disk was written to"
    world.lab("verify")
    world.say("the PVC was recreated on another disk: that disk was not written to, all objects equal")


def other_disk(osds):
    """Creates a disk with other data and its PersistentVolume, and returns the name of this and a digest of the disk."""
    world = osds.world
    pvc = world.lab("pvc", "u1", OTHER, "set9", "data", "0").stdout.strip()
    world.kubectl("delete", "pvc", pvc)
    osds.script(FILL, by_id(OTHER))
    return f"lab-{OTHER}", digest(world.image(OTHER))


def recreate(world, pvc, volume):
    """Recreates a PVC while it is in use, as a person can who removes its finalizer, and binds it to another volume."""
    was = world.get("pvc", pvc)
    world.kubectl("delete", "pvc", pvc, "--wait=false")
    world.kubectl("patch", "pvc", pvc, "--type", "merge", "-p", '{"metadata": {"finalizers": null}}', check=False)
    world.kubectl("wait", "--for=delete", f"pvc/{pvc}", "--timeout=60s", check=False)
    meta = {key: was["metadata"][key] for key in ("name", "namespace", "labels", "ownerReferences")}
    new = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {**was["spec"], "volumeName": volume}}
    world.kubectl("create", "-f", "-", stdin=json.dumps(new))
    world.until("the PVC to be bound", 60, lambda: world.get("pvc", pvc)["status"].get("phase") == "Bound")
    now = world.get("pvc", pvc)
    assert now["spec"]["volumeName"] == volume and now["metadata"]["uid"] != was["metadata"]["uid"], now
    world.say(f"{pvc} was recreated on {volume}")


def names_pvc(world, job, said, pvc):
    """Returns the sentence of a run, said meanwhile, that names the recreated PVC; the run must not succeed."""
    assert world.result(job) != ("Complete", 0), f"the run is successful:\n{world.log(job)}"
    lines = world.log(job)[said:].splitlines()
    return next((line for line in lines if pvc in line and "recreated" in line), None)
