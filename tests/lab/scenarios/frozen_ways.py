"""Steps of a runner for one OSD, in their order: the places at which `frozen` suspends runners (src/failpoint.rs)."""

STOP = ["save-stop", "save-fence", "fence", "set-osd-flags", "save-pdb", "limit-drains", "stop", "save-down", "destroy"]
REBUILD = ["save-rebuild", "agent-rebuild", "save-new", "deploy", "save-up", "unset-osd-flags", "unfence", "save-unfenced"]
CLOSE = ["save-closing", "limit-drains", "save-pdb-restored", "clean-up", "save-closed"]
BEGIN = ["save-record", "agent-inspect", "save-proof", "back-up"]
# An OSD that is migrated.
WAY = [*BEGIN, *STOP, *REBUILD, *CLOSE]
# The steps if Rook's PodDisruptionBudget does not exist.
WAY_OF_OWN_PDB = [
    {"limit-drains": "create-pdb", "save-pdb-restored": "delete-pdb"}.get(step, step)
    for at, step in enumerate(WAY)
    if step != "save-pdb" and (step != "limit-drains" or at < WAY.index("stop"))
]
# An OSD that is emptied before its stop. Runners are also suspended after the forecast, right before the command.
EMPTYING = [*BEGIN, "save-emptying", "mark-out", "placed-mark-out", "save-marked-out"]
WAY_OF_EMPTIED = [*EMPTYING, "save-emptied", *STOP, *REBUILD, "take-in", "save-up", *CLOSE]
# An OSD that is removed.
LEAVING = [{"mark-out": "drop-weight", "placed-mark-out": "placed-drop-weight"}.get(step, step) for step in EMPTYING]
REMOVED = ["save-wipe", "agent-wipe", "purge", "drop-deployment", "drop-request", "unfence", "save-unfenced", "save-removed"]
WAY_OF_REMOVED = [*LEAVING, "save-emptied", *STOP, *REMOVED, *CLOSE[1:]]
# An OSD that is kept after its weight was dropped.
WAY_OF_KEPT = [*LEAVING, "restore-weight", "save-withdrawn", "clean-up", "save-closed"]
