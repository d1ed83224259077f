"""commands.py: one session with the cluster that sends the commands of its stdin.

A line of stdin is JSON: [daemon, command, input]. The command is an object, or the words that a person types after
`ceph`. A line of stdout is JSON: [status, answer, message]. The answer is parsed if it is JSON. It ends with its stdin.
"""
import errno
import json
import sys

from ceph_argparse import parse_json_funcsigs, validate_command
from labrados import connect

signatures = {}


def object_of(words):
    """Returns the command that Ceph's own parser makes of words, or nothing if it finds none."""
    if not signatures:  # a megabyte, which is needed once
        _, text, _ = c.mon_command(json.dumps({"prefix": "get_command_descriptions"}), b"")
        signatures.update(parse_json_funcsigs(text.decode(), "cli"))
    return validate_command(signatures, words)


c = connect()
for line in sys.stdin:
    daemon, arguments, given = json.loads(line)
    if isinstance(arguments, list):
        arguments = object_of(arguments)
    if arguments:
        send = c.mon_command if daemon == "mon" else c.mgr_command
        status, out, message = send(json.dumps(dict(arguments, format="json")), given.encode())
    else:
        status, out, message = -errno.EINVAL, b"", "Ceph has no such command"
    try:
        answer = json.loads(out)
    except ValueError:
        answer = out.decode()
    print(json.dumps([status, answer, message]), flush=True)
c.shutdown()
