"""Processes and pods that can be killed, and a run that is killed repeatedly at given moments until a Job completes."""
import collections
import time

# Milestone with which a phase begins: a phase that waits begins with the save before it.
BEGINS = {"stopping": "stop", "rebuilding": "rebuild", "settling": "new", "inspect": "record"}


def spread(world, moments, prefix="killed", args=None, kinds=None):
    """Starts the run, and kills at each moment (OSD, phase, seconds after its begin, kind) until the run is finished.

    `kinds`: what each kind of a kill does, if it is not one of KINDS. Fails if the run does not finish. Returns the
    numbers of kills and Jobs.
    """
    before = closings(world)
    job, jobs, kills = world.start(f"{prefix}-1", args), 1, 0
    for osd, phase, delay, kind in moments:
        name = "a node" if osd is None else f"osd.{osd}"
        seen = await_phase(world, job, osd, phase, name, before)
        time.sleep(delay)
        (kinds or KINDS)[kind](world, job)
        kills += 1
        world.say(f"kill {kills}: {kind} {delay:.1f} s into {phase} of {name}{' (closed by then)' if seen == 'closed' else ''}")
        result = world.result(job)
        if result == ("Complete", 0):
            break
        # A Job waits 10 s, 20 s, 40 s ... before it replaces a failed pod. A new Job starts at once.
        if result or (kind.startswith("runner") and kills % 5):
            world.delete(job)
            jobs += 1
            job = world.start(f"{prefix}-{jobs}", args)
    if not world.result(job):
        world.until("the last Job to end", 400, lambda: world.result(job))
    assert world.result(job) == ("Complete", 0), (world.result(job), world.log(job))
    world.say(f"{kills} kills, {jobs} Jobs")
    return kills, jobs


def closings(world):
    """Returns how many closed records each OSD has."""
    return collections.Counter(entry["osd"] for entry in world.closed())


def await_phase(world, job, osd, phase, name, before):
    limit, observations = 240 * world.patience, 0
    end = time.monotonic() + limit
    while time.monotonic() < end:
        seen = reached(world, osd, phase, before)
        if seen:
            return seen
        observations += 1
        result = world.result(job) if observations % 20 == 0 else None  # a Job that has failed reaches no phase
        assert not result or result[0] == "Complete", f"{name} did not reach {phase}: {result}\n{world.log(job)[-3000:]}"
        time.sleep(0.1)
    raise AssertionError(f"timeout after {limit} s: waited for {name} to reach {phase}")


def reached(world, osd, phase, before):
    if phase == "inventory":  # before the first record, the only Jobs are inventories of the nodes' disks
        return any(job["metadata"]["name"].startswith("osd-migrate-") for job in world.get("jobs")["items"])
    word = BEGINS.get(phase, phase)
    record = world.records().get(osd)
    if record and any(done == word for done, _ in record["milestones"]):
        return "open"
    if not record and closings(world)[osd] > before[osd]:
        return "closed"
    return None


def kill_process(world, pattern):
    for host in world.hosts:
        world.lab("on", host, "pkill", "-KILL", "-f", pattern, check=False)


def delete_pods(world, selector):
    world.kubectl("delete", "pods", "-l", selector, "--grace-period=0", "--force", "--wait=false", check=False)


def restart_a_kubelet(world, _job):
    pods = world.get("pods", selector="app.kubernetes.io/name=osd-migrate")["items"]
    hosts = sorted(pod["spec"].get("nodeName", "h1") for pod in pods if pod["status"].get("phase") == "Running")
    world.lab("restart", hosts[0] if hosts else "h1", "kubelet")


KINDS = {
    "runner process": lambda world, _job: kill_process(world, "^/opt/osd-migrate/osd-migrate (run|provision)"),
    "runner pod": lambda world, job: delete_pods(world, f"batch.kubernetes.io/job-name={job}"),
    "agent": lambda world, _job: kill_process(world, "^/opt/osd-migrate/osd-migrate node "),
    "kubelet": restart_a_kubelet,
}
