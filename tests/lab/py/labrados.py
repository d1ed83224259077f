"""A librados session and its commands, for the lab's scripts (needs Debian's python3-rados)."""
import json
import signal
import sys

import rados

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a script without a stack trace


def connect():
    cluster = rados.Rados(conffile="/etc/ceph/ceph.conf", name="client.admin")
    cluster.connect(timeout=30)
    return cluster


def command(cluster, prefix, data=b"", **args):
    """Sends a mon command, and returns its answer, parsed if it is JSON.

    Ends the script if the mon refuses the command.
    """
    status, out, error = cluster.mon_command(json.dumps(dict(args, prefix=prefix, format="json")), data)
    if status != 0:
        cluster.shutdown()  # without this, librados may crash at exit
        sys.exit("%s: %s (%d)" % (prefix, error, status))
    try:
        return json.loads(out)
    except ValueError:
        return out.decode()
