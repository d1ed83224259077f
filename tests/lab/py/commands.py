"""commands.py: one connected session that sends what it is told. A line of JSON in: [daemon, command, input]; a line of JSON
out: [status, answer, words], the answer parsed where it is JSON. Ends with its input."""
import json
import sys

from labrados import connect

c = connect()
for line in sys.stdin:
    daemon, arguments, given = json.loads(line)
    send = c.mon_command if daemon == "mon" else c.mgr_command
    status, out, words = send(json.dumps(dict(arguments, format="json")), given.encode())
    try:
        answer = json.loads(out)
    except ValueError:
        answer = out.decode()
    print(json.dumps([status, answer, words]), flush=True)
c.shutdown()
