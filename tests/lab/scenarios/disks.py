"""Contents of disks before a run, and digests that show whether they changed."""
import hashlib
import os

# Offsets of the random bytes, in KiB: in the first MiB, and in the last MiB of 6 GiB. No tool knows a signature there,
# and a file system or an OSD would begin at another offset.
EARLY, LATE = 400, 6 * 1024 * 1024 - 400

FOREIGN_FSID = "99999999-9999-4999-8999-999999999999"
# An OSD of another cluster. The lab's cluster assigns the same id.
FOREIGN = f"""
home=$(mktemp -d); cd "$home"; ln -s "$1" block; echo bluestore > type; owner=$(stat -c %U:%G "$1")
printf '[global]\\nfsid = {FOREIGN_FSID}\\nauth_client_required = none\\nmon_host = 10.99.0.254\\n' > conf
ceph-authtool --create-keyring keyring --gen-key -n osd.0; chown -R ceph:ceph . "$1"
ceph-osd -c conf -i 0 --mkfs --no-mon-config --osd-uuid 88888888-8888-4888-8888-888888888888 --osd-objectstore bluestore \\
  --osd-data "$home" --keyring keyring --setuser ceph --setgroup ceph
cd /; rm -r "$home"; chown "$owner" "$1"
ceph-bluestore-tool show-label --dev "$1" | grep -q {FOREIGN_FSID}
"""
CONTENTS = {
    "ext4": 'mkfs.ext4 -q "$1"',
    "foreign": FOREIGN,
    # osd-migrate reads only the header, so the key is not needed
    "luks": 'echo -n secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$1" -',
    "early": f'dd if=/dev/urandom of="$1" bs=1K seek={EARLY} count=16 conv=notrunc status=none',
    "late": f'dd if=/dev/urandom of="$1" bs=1K seek={LATE} count=16 conv=notrunc status=none',
}


def fill(world, host, device, content):
    world.lab("on", host, "bash", "-e", "-c", CONTENTS[content], "-", device)


def attached(world):
    """Returns the disks of the lab: (host, device) by name."""
    with open(os.path.join(world.folder(), "disks"), encoding="utf-8") as file:
        return {name: (host, device) for host, name, device in (line.split() for line in file)}


def digest(path):
    """Returns the SHA-256 of an image's size and of each MiB that is not all zeros, with its offset.

    It skips the holes of a sparse image, so it is fast.
    """
    sha, at, mib = hashlib.sha256(), 0, 1 << 20
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        sha.update(str(size).encode())
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // mib * mib
            except OSError:  # the rest is a hole
                break
            piece = os.pread(file.fileno(), mib, at)
            if piece.strip(b"\0"):
                sha.update(str(at).encode() + piece)
            at += mib
    return sha.hexdigest()
