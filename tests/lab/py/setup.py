"""setup.py SETTINGS MGR-KEYRING: sets the central configuration, and creates the key of the mgr."""
import sys

from labrados import command, connect

settings, keyring = sys.argv[1:]
c = connect()
with open(settings, "rb") as f:
    command(c, "config assimilate-conf", f.read())
key = command(c, "auth get-or-create", entity="mgr.x", caps=["mon", "allow profile mgr", "osd", "allow *", "mds", "allow *"])
with open(keyring, "w") as f:
    f.write("[mgr.x]\n\tkey = %s\n" % key[0]["key"])
c.shutdown()
