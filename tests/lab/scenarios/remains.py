"""Folders of Rook on the hosts that an OSD had beside its disk: what holds Rook's files alone goes with the old OSD, what holds
anything else stays and is told."""
import glob
import os

GOES, STAYS = 0, 5


def folders(world, fsid):
    """On any host, of the OSD of that fsid."""
    return glob.glob(os.path.join(world.folder(), "h", "*", "rook", "*", f"*_{fsid}"))


def leave(world, fsids):
    """Makes them as Rook and ceph-volume do, one with a file of somebody else."""
    nodes = {int(daemon["metadata"]["labels"]["ceph-osd-id"]): daemon["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] for daemon in world.get("deployments", "-l", "app=rook-ceph-osd")["items"]}
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
    told = [line for line in log.splitlines() if f"osd.{STAYS}: " in line and "stays on the host: " in line]
    assert len(told) == 1 and "notes in it does not belong to Rook" in told[0], told
    world.say(f"old folders on the hosts: that of osd.{GOES} is gone, that of osd.{STAYS} with a file of somebody else stays and is told")
