"""Collects in u1 what a passphrase must not be in, until stdin is closed: command lines and the logs of pods.

    uml_watch.py OUT

Writes {"lines": [command line, ...], "logs": {file: text}} to OUT. The kernel of u1 does not report each exec, so the
list of processes is read ten times a second. A log that was opened is readable after its pod is deleted.
"""
import glob
import json
import os
import select
import sys

PAUSE = 0.1
LOGS = "/var/log/pods/rook-ceph_*/*/*.log"


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:  # it has ended
        return ""


def main():
    lines, logs = set(), {}
    while not select.select([0], [], [], PAUSE)[0]:
        lines |= {command_line(pid) for pid in os.listdir("/proc") if pid.isdigit()}
        for name in glob.glob(LOGS):
            try:
                logs[name] = logs.get(name) or open(name, encoding="utf-8", errors="replace")
            except OSError:  # a pod is deleted
                pass
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"lines": sorted(lines), "logs": {name: file.read() for name, file in logs.items()}}, out)


main()
