"""Rook's folders of an OSD on the hosts.

A folder with only Rook's files is removed with the old OSD. A folder with other files stays, and is reported.
"""
import glob
import os

GOES, STAYS = 0, 5


def folders(world, fsid):
    """Returns the folders of the OSD with that fsid, on all hosts."""
    return glob.glob(os.path.join(world.folder(), "h", "*", "rook", "*", f"*_{fsid}"))


def create_folders(world, fsids):
    """Creates the folders as Rook and ceph-volume do, one of them with another file."""
    nodes = {int(daemon["metadata"]["labels"]["ceph-osd-id"]): daemon["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] for daemon in world.get("deployments", selector="app=rook-ceph-osd")["items"]}
    cluster = world.ceph("status")["fsid"]
    for osd in (GOES, STAYS):
        folder = os.path.join(world.folder(), "h", nodes[osd], "rook", "rook-ceph", f"{cluster}_{fsids[osd]}")
        os.makedirs(folder)
        files = {"fsid": fsids[osd], "whoami": str(osd), "ceph_fsid": cluster, "type": "bluestore", "keyring": f"[osd.{osd}]\n"}
        if osd == STAYS:
            files["notes"] = "of the owner"
        for name, text in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        os.symlink("/dev/sdz", os.path.join(folder, "block"))
    assert all(len(folders(world, fsids[osd])) == 1 for osd in (GOES, STAYS))


def expect_gone(world, fsids, legacy, log):
    left = {osd: folders(world, fsids[osd]) for osd in legacy if folders(world, fsids[osd])}
    assert list(left) == [STAYS], left
    assert sorted(os.listdir(left[STAYS][0])) == ["block", "ceph_fsid", "fsid", "keyring", "notes", "type", "whoami"], left
    reported = [line for line in log.splitlines() if f"osd.{STAYS}: " in line and "stays on the host: " in line]
    assert len(reported) == 1 and "notes in it does not belong to Rook" in reported[0], reported
    world.say(f"old folders on the hosts: that of osd.{GOES} is gone, that of osd.{STAYS} with another file stays and is reported")
