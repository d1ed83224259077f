"""setup.py POOL PGS SETTINGS MGR-KEYRING: central configuration, the manager's key, the pool."""
import sys

from labrados import command, connect

pool, pgs, settings, keyring = sys.argv[1:]
c = connect()
with open(settings, "rb") as f:
    command(c, "config assimilate-conf", f.read())
key = command(c, "auth get-or-create", entity="mgr.x", caps=["mon", "allow profile mgr", "osd", "allow *", "mds", "allow *"])
with open(keyring, "w") as f:
    f.write("[mgr.x]\n\tkey = %s\n" % key[0]["key"])
command(c, "osd pool create", pool=pool, pg_num=int(pgs), pgp_num=int(pgs))
command(c, "osd pool application enable", pool=pool, app="rados")
c.shutdown()
