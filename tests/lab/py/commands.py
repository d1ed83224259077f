"""commands.py: one session with the cluster that sends the commands of its stdin.

A line of stdin is JSON: [daemon, command, input]. A line of stdout is JSON: [status, answer, message]. The answer is parsed
if it is JSON. It ends with its stdin.
"""
import json
import sys

from labrados import connect

c = connect()
for line in sys.stdin:
    daemon, arguments, given = json.loads(line)
    send = c.mon_command if daemon == "mon" else c.mgr_command
    status, out, message = send(json.dumps(dict(arguments, format="json")), given.encode())
    try:
        answer = json.loads(out)
    except ValueError:
        answer = out.decode()
    print(json.dumps([status, answer, message]), flush=True)
c.shutdown()
