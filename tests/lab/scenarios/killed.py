"""The same migration, with runner, agents and kubelets killed at seeded moments spread over all phases: same end."""
import json
import random
import time

LEGACY = [0, 1, 5]
# Words of a record's milestones, in their order; each is reached by each OSD. A moment is one of them and a delay.
PHASES = ["record", "inspect", "proof", "stop", "stopping", "rebuild", "rebuilding", "new", "settling", "closing"]
KILLS = 20
LONGEST = {"record": 0.5, "inspect": 3, "proof": 0.5, "stop": 0.5, "stopping": 3, "rebuild": 1, "rebuilding": 5, "new": 3, "settling": 4, "closing": 0.5}
# What a phase looks like in the milestones: waiting phases begin with the save before them.
BEGINS = {"stopping": "stop", "rebuilding": "rebuild", "settling": "new", "inspect": "record"}


def run(world):
    rng = random.Random(world.seed)
    world.up()
    world.lab("write", "300")
    world.lab("client", "start")
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    world.confirm()
    moments = seeded_moments(rng)
    job, jobs = world.start("killed-1"), 1
    for number, (osd, phase, delay, kill) in enumerate(moments, 1):
        word = BEGINS.get(phase, phase)
        seen = world.until(f"osd.{osd} to reach {phase}", 240, lambda o=osd, w=word: reached(world, o, w), pause=0.1)
        time.sleep(delay)
        KINDS[kill](world, job)
        world.say(f"kill {number}: {kill} {delay:.1f} s into {phase} of osd.{osd}{' (closed by then)' if seen == 'closed' else ''}")
        result = world.result(job)
        if result == ("Complete", 0):
            break
        # A pod that failed waits 10 s, 20 s, 40 s ... for its successor; a new Job starts at once.
        if result or (kill.startswith("runner") and number % 5):
            world.delete(job)
            jobs += 1
            job = world.start(f"killed-{jobs}")
    if not world.result(job):
        world.until("the last Job to end", 400, lambda: world.result(job))
    assert world.result(job) == ("Complete", 0), (world.result(job), world.log(job))
    assert number >= KILLS, f"only {number} kills"
    assert jobs >= 7, f"only {jobs} Jobs"
    world.say(f"{number} kills, {jobs} Jobs")
    world.expect_migrated(before, fsids, LEGACY)
    world.expect_calm(epoch)
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    world.say(f"client: {client}")
    assert not client["failed"] and not client["slow"], client


def seeded_moments(rng):
    """At least KILLS moments: each OSD gets seven of the phases in their order, each phase is met at least once."""
    while True:
        moments = []
        for osd in LEGACY:
            for phase in sorted(rng.sample(PHASES, 7), key=PHASES.index):
                kind = rng.choice(["runner process", "runner pod", "runner pod", "agent", "kubelet"])
                if kind == "agent" and phase not in ("inspect", "rebuild", "rebuilding"):
                    kind = "runner process"
                moments.append((osd, phase, rng.uniform(0, LONGEST[phase]), kind))
        if {phase for _, phase, _, _ in moments} == set(PHASES) and len({kind for *_, kind in moments}) == len(KINDS):
            return moments


def reached(world, osd, word):
    record = world.records().get(osd)
    if record and any(done == word for done, _ in record["milestones"]):
        return "open"
    if not record and any(entry.get("record", entry)["osd"] == osd for entry in world.history()):
        return "closed"
    return None


def kill_process(world, pattern):
    for host in ("h1", "h2", "h3"):
        world.lab("on", host, "pkill", "-KILL", "-f", pattern, check=False)


def delete_pods(world, selector):
    world.kubectl("delete", "pods", "-l", selector, "--grace-period=0", "--force", "--wait=false", check=False)


def restart_a_kubelet(world, _job):
    pods = world.get("pods", "-l", "app.kubernetes.io/name=osd-migrate")["items"]
    hosts = sorted(pod["spec"].get("nodeName", "h1") for pod in pods if pod["status"].get("phase") == "Running")
    world.lab("restart", hosts[0] if hosts else "h1", "kubelet")


KINDS = {
    "runner process": lambda world, _job: kill_process(world, "^/usr/local/bin/osd-migrate run"),
    "runner pod": lambda world, job: delete_pods(world, f"batch.kubernetes.io/job-name={job}"),
    "agent": lambda world, _job: kill_process(world, "^/opt/osd-migrate/osd-migrate node agent"),
    "kubelet": restart_a_kubelet,
}
