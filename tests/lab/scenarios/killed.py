"""The migration has the same result if runner, agents and kubelets are killed, at seeded moments in all phases."""
import json
import random

from . import kills

LEGACY = [0, 1, 5]
# Milestones of a record, in their order. Each OSD reaches each of them. A moment is a milestone and a delay.
PHASES = ["record", "inspect", "proof", "stop", "stopping", "rebuild", "rebuilding", "new", "settling", "closing"]
KILLS = 20
LONGEST = {"record": 0.5, "inspect": 3, "proof": 0.5, "stop": 0.5, "stopping": 3, "rebuild": 1, "rebuilding": 5, "new": 3, "settling": 4, "closing": 0.5}


def run(world):
    rng = random.Random(world.seed)
    world.up()
    world.lab("write", "300")
    world.lab("client", "start")
    before, fsids, epoch = world.shape(), world.fsids(), world.epoch()
    world.confirm()
    count, jobs = kills.spread(world, seeded_moments(rng))
    assert count >= KILLS, f"only {count} kills"
    assert jobs >= 7, f"only {jobs} Jobs"
    world.expect_migrated(before, fsids, LEGACY)
    world.expect_downs_on_one_host(epoch)
    client = json.loads(world.lab("client", "stop").stdout.strip().splitlines()[-1])
    world.say(f"client: {client}")
    assert not client["failed"] and not client["slow"], client


def seeded_moments(rng):
    """Returns at least KILLS moments: seven phases for each OSD, in their order, and each phase at least once."""
    while True:
        moments = []
        for osd in LEGACY:
            for phase in sorted(rng.sample(PHASES, 7), key=PHASES.index):
                kind = rng.choice(["runner process", "runner pod", "runner pod", "agent", "kubelet"])
                if kind == "agent" and phase not in ("inspect", "rebuild", "rebuilding"):
                    kind = "runner process"
                moments.append((osd, phase, rng.uniform(0, LONGEST[phase]), kind))
        if {phase for _, phase, _, _ in moments} == set(PHASES) and len({kind for *_, kind in moments}) == len(kills.KINDS):
            return moments
