"""Collects in u1 what a passphrase must not be in, until stdin is closed: command lines, environments, logs of pods.

    uml_watch.py OUT

Writes {"lines": [command line, ...], "environments": [environment, ...], "logs": {file: text}} to OUT. The kernel of u1 does not report each exec, so the
list of processes is read ten times a second, and the command line and environment of a process only a few times: a
call of that kernel takes up to a millisecond. A log that was opened is readable after its pod is deleted.
"""
import collections
import glob
import json
import os
import select
import sys

PAUSE = 0.1  # luksFormat with the few iterations of a random key takes less than half a second
READS = 15  # a process executes its program in the first moments
LOGS = "/var/log/pods/rook-ceph_*/*/*.log"
SCANS_PER_LOGS = 50


def read(pid, part):
    try:
        file = os.open(f"/proc/{pid}/{part}", os.O_RDONLY)
        text = os.read(file, 1 << 17)
        os.close(file)
    except OSError:  # it has ended
        return ""
    return text.replace(b"\0", b" ").decode("utf-8", "replace").strip()


def main():
    lines, environments, logs, reads, scans = set(), set(), {}, collections.Counter(), 0
    while not select.select([0], [], [], PAUSE)[0]:
        here = {pid for pid in os.listdir("/proc") if pid.isdigit()}
        for pid in [pid for pid in reads if pid not in here]:  # its number can be used again
            del reads[pid]
        for pid in here:
            if reads[pid] < READS:
                lines.add(read(pid, "cmdline"))
                environments.add(read(pid, "environ"))
                reads[pid] += 1
        for name in glob.glob(LOGS) if scans % SCANS_PER_LOGS == 0 else ():
            try:
                logs[name] = logs.get(name) or open(name, encoding="utf-8", errors="replace")
            except OSError:  # a pod is deleted
                pass
        scans += 1
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        found = {"lines": sorted(lines), "environments": sorted(environments)}
        json.dump({**found, "logs": {name: file.read() for name, file in logs.items()}}, out)


main()
