"""objects.py write POOL N KIB > MANIFEST | objects.py verify POOL < MANIFEST

A random seed in the manifest determines the contents. Half of the objects have xattrs. Every third object has an omap,
except in an erasure-coded pool, which supports none.
"""
import hashlib
import json
import os
import random
import sys

import rados

from labrados import command, connect

IN_FLIGHT = 16


def xattrs(i, name):
    return {"lab": b"x%d" % i, "lab.name": name.encode()} if i % 2 == 0 else {}


def omap(i, name):
    return {"key%02d" % k: b"%d of %s" % (k, name.encode()) for k in range(1 + i % 10)} if i % 3 == 0 and not coded else {}


def finish(completion):
    completion.wait_for_complete()
    if completion.get_return_value() < 0:
        raise OSError("a write failed: %d" % completion.get_return_value())


def write(io, n, kib):
    seed = os.urandom(8).hex()
    sizes = random.Random(seed)
    objects, pending, total = {}, [], 0
    for i in range(n):
        name = "lab.%s.%05d" % (seed[:4], i)
        size = sizes.randint(1, 2 * kib * 1024)
        body = random.Random("%s/%s" % (seed, name)).randbytes(size)
        with rados.WriteOpCtx() as op:
            op.write_full(body)
            for key, value in xattrs(i, name).items():
                op.set_xattr(key, value)
            pairs = omap(i, name)
            if pairs:
                io.set_omap(op, tuple(pairs.keys()), tuple(pairs.values()))
            pending.append(io.operate_aio_write_op(op, name))
        objects[name] = [size, hashlib.sha256(body).hexdigest()]
        total += size
        while len(pending) > IN_FLIGHT:
            finish(pending.pop(0))
    for p in pending:
        finish(p)
    json.dump({"seed": seed, "bytes": total, "objects": objects}, sys.stdout)
    print("wrote %d objects, %d bytes" % (n, total), file=sys.stderr)
    return 0


def read_omap(io, name):
    with rados.ReadOpCtx() as op:
        pairs, _ = io.get_omap_vals(op, "", "", 100)
        io.operate_read_op(op, name)
        return dict(pairs)


def verify(io, manifest):
    bad = 0
    for i, (name, (size, digest)) in enumerate(manifest["objects"].items()):
        try:
            body = io.read(name, size + 1)
            if len(body) != size or hashlib.sha256(body).hexdigest() != digest:
                raise ValueError("content differs")
            if dict(io.get_xattrs(name)) != xattrs(i, name):
                raise ValueError("xattrs differ")
            if read_omap(io, name) != omap(i, name):
                raise ValueError("omap differs")
        except Exception as e:  # report each object, whatever its error
            bad += 1
            print("BAD %s: %r" % (name, e), file=sys.stderr)
    print("verified %d objects, %d bytes, %d bad" % (len(manifest["objects"]), manifest["bytes"], bad), file=sys.stderr)
    return 1 if bad else 0


mode, pool = sys.argv[1:3]
cluster = connect()
ioctx = cluster.open_ioctx(pool)
ERASURE = 3
coded = any(p["pool_name"] == pool and p["type"] == ERASURE for p in command(cluster, "osd dump")["pools"])
try:
    status = write(ioctx, int(sys.argv[3]), int(sys.argv[4])) if mode == "write" else verify(ioctx, json.load(sys.stdin))
finally:
    ioctx.close()
    cluster.shutdown()
sys.exit(status)
