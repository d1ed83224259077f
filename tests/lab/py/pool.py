"""pool.py POOL PGS: creates the pool for objects, if it does not exist."""
import sys

from labrados import command, connect

pool, pgs = sys.argv[1:]
c = connect()
command(c, "osd pool create", pool=pool, pg_num=int(pgs), pgp_num=int(pgs))
command(c, "osd pool application enable", pool=pool, app="rados")
c.shutdown()
