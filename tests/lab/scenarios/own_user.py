"""The Ceph user client.osd-migrate.

The mons' audit log shows which user acts. Commands outside of its capabilities are tried as that user. The user is also
created by hand as docs/guides/install.md says, with its key in its own Secret.
"""
import base64
import json
import os
import re

from .world import HERE

USER = "client.osd-migrate"
CREATE_USER = re.compile(r'"prefix": ?"auth (get-or-create|caps)"')
# Commands outside of the capabilities. Each would damage the cluster or reveal a key.
REFUSED = [
    "osd pool rm lab lab --yes-i-really-really-mean-it",
    "auth get client.admin",
    f"auth get {USER}",
    "auth ls",
    "auth export",
    "auth caps client.osd-migrate mon 'allow *'",
    "auth get-or-create client.of-lab mon 'allow *'",
    "auth rm osd.4",
    "config-key rm of-lab",
    "config-key get of-lab",
    "config set global debug_ms 1",
    "config set osd osd_max_backfills 3",
    "config rm osd osd_max_backfills",
    "osd set noout",
    "osd set-group noup osd.4",
    "osd down 4",
    "osd purge 4 --yes-i-really-mean-it",
    "osd destroy 4 --yes-i-really-mean-it",
]


def is_there(world, user=USER):
    return user in [entry["entity"] for entry in world.ceph("auth", "ls")["auth_dump"]]


def expect_acts(world, written, created):
    """Checks that the user client.osd-migrate sent all commands.

    `written`: commands since the run began. `created`: how often client.admin created the user or changed its capabilities.
    """
    own = [line for line in written if f"entity='{USER}'" in line]
    others = [line for line in written if line not in own]
    assert any("osd destroy-actual" in line for line in own), own
    assert len(others) == created and all(CREATE_USER.search(line) and USER in line for line in others), others
    world.say(f"{len(own)} acts by {USER}; {created} by client.admin, to create it")


def expect_refused(world):
    """Checks that each command outside of the capabilities is refused, and that a command within them is not."""
    world.lab("on", "adm", "ceph", "config-key", "set", "of-lab", "x")
    pools = [pool["pool_name"] for pool in world.ceph("osd", "dump")["pools"]]
    keyring = "/tmp/own.keyring"
    as_user = lambda words: world.lab(  # noqa: E731
        "on", "adm", "sh", "-c", f"ceph auth get {USER} -o {keyring} 2>/dev/null; ceph -n {USER} --keyring {keyring} {words}; code=$?; rm {keyring}; exit $code", check=False
    )
    for words in REFUSED:
        words = words.replace("rm lab lab", f"rm {pools[-1]} {pools[-1]}")
        done = as_user(words)
        assert done.returncode == 13 and "EACCES" in done.stderr, (words, done.returncode, done.stdout, done.stderr)
    done = as_user("osd df")
    assert done.returncode == 0, done
    assert pools == [pool["pool_name"] for pool in world.ceph("osd", "dump")["pools"]]
    world.lab("on", "adm", "ceph", "config-key", "rm", "of-lab")
    world.say(f"{len(REFUSED)} commands outside of its capabilities are refused to {USER}")


def by_hand(world, secret):
    """Creates the user and its Secret as docs/guides/install.md says."""
    with open(os.path.join(HERE, "..", "..", "docs", "guides", "install.md"), encoding="utf-8") as file:
        command = re.search(r"^    (ceph auth get-or-create client\.osd-migrate .*?')$", file.read(), re.S | re.M).group(1)
    if is_there(world):
        world.lab("on", "adm", "ceph", "auth", "rm", USER)
    world.lab("on", "adm", "sh", "-c", command)
    key = world.lab("on", "adm", "ceph", "auth", "get-key", USER).stdout.strip()
    data = {"userID": USER.split(".")[1], "userKey": key, "fsid": world.lab("on", "adm", "ceph", "fsid").stdout.strip()}
    data = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "data": data}
    world.kubectl("create", "-f", "-", stdin=json.dumps(manifest))
