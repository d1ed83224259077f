"""client.py POOLS RESULT: writes small objects, reads others and checks them, about 10 operations a second, until SIGTERM.

POOLS: one pool, or several that are separated by commas.

It prints a line for every operation that fails or takes over 30 s, and writes the summary to RESULT.
"""
import json
import os
import random
import signal
import sys
import time

from labrados import connect

OBJECTS, PERIOD, LIMIT = 64, 0.1, 30.0
pools, result = sys.argv[1:]
stopping = False


def stop(_signal, _frame):
    global stopping
    stopping = True


class Client:
    def __init__(self, ios):
        self.ios, self.ops, self.failed, self.slow, self.times = ios, 0, 0, 0, []
        self.known = {}  # number of the object -> expected content
        self.prefix = "client.%s." % os.urandom(4).hex()

    def object(self, number):
        """Returns the pool and the name of an object."""
        return self.ios[number % len(self.ios)], self.prefix + str(number)

    def wait(self, what, start_op):
        """Runs and measures an asynchronous operation; returns its completion, or None if it failed or timed out."""
        self.ops += 1
        begin = time.monotonic()
        error, completion = None, None
        try:
            completion = start_op()
            # polled, because a blocked call can be neither measured nor ended
            while not completion.is_complete() and time.monotonic() - begin <= LIMIT:
                time.sleep(0.002)
            if not completion.is_complete():
                error = "no answer after %g s" % LIMIT
                while not completion.is_complete() and not stopping:  # one operation at a time: the next one would hang, too
                    time.sleep(0.05)
            elif completion.get_return_value() < 0:
                error = "error %d" % completion.get_return_value()
        except Exception as e:
            error = repr(e)
        took = time.monotonic() - begin
        self.times.append(took)
        self.slow += took > LIMIT
        if error:
            self.fail("%s: %s (%.1f s)" % (what, error, took))
            return None
        return completion

    def within(self, part):
        """Returns the seconds within which a part of the operations were done, for example 0.99."""
        times = sorted(self.times)
        return round(times[min(int(part * len(times)), len(times) - 1)], 4)

    def fail(self, line):
        self.failed += 1
        print(time.strftime("%H:%M:%S ") + line, flush=True)

    def write(self):
        number = random.randrange(OBJECTS)
        io, name = self.object(number)
        body = b"%s %d " % (name.encode(), self.ops) + os.urandom(random.randrange(1, 4096))
        self.known.pop(number, None)  # until the write is acknowledged, the object may have either content
        if self.wait("write " + name, lambda: io.aio_write_full(name, body)):
            self.known[number] = body

    def read(self):
        if not self.known:
            return
        number = random.choice(list(self.known))
        io, name = self.object(number)
        got = []
        if self.wait("read " + name, lambda: io.aio_read(name, 8192, 0, lambda _c, data: got.append(data))):
            for _ in range(500):  # the callback may come a moment after the completion
                if got:
                    break
                time.sleep(0.002)
            if not got or got[0] != self.known[number]:
                self.fail("read %s: wrong content" % name)


signal.signal(signal.SIGTERM, stop)
cluster = connect()
ioctxs = [cluster.open_ioctx(pool) for pool in pools.split(",")]
client = Client(ioctxs)
client.write()
print("started", flush=True)
iteration = 0
due = time.monotonic()
while not stopping:
    iteration += 1
    (client.write if iteration % 2 else client.read)()
    due = max(due + PERIOD, time.monotonic() - 1)
    time.sleep(max(0.0, due - time.monotonic()))
with open(result + ".new", "w") as f:
    times = {"p50_seconds": client.within(0.5), "p99_seconds": client.within(0.99), "max_seconds": client.within(1)}
    json.dump({"ops": client.ops, "failed": client.failed, "slow": client.slow, **times}, f)
    f.write("\n")
os.rename(result + ".new", result)
if client.failed == 0:  # shutdown could hang while an operation is in progress
    for ioctx in ioctxs:
        ioctx.close()
    cluster.shutdown()
os._exit(0)
