"""node_config.py NODE FACTS < (sfdisk -J of the node's disks, one after the other)

Prints the ConfigMap rook-ceph-osd-NODE-config of a node, as Rook <= 1.2 stored it: in `osd-dirs` the paths of `directories`
with their OSDs, in `partition-scheme` the partitions that Rook itself had created. Prints nothing for a node without them.
"""
import json
import os
import re
import sys

TYPES = {"WAL": "0", "DB": "1", "BLOCK": "2", "FS-DATA": "3"}
REST_OF_DISK = -1
MIB = 2048  # sectors


def facts_of(folder):
    osds = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            osds[int(name)] = dict(line.rstrip("\n").split("=", 1) for line in file)
    return osds


def tables(text):
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        table, at = decoder.raw_decode(text, at)
        yield table["partitiontable"]


def rook_partitions(table):
    """Yields (id, type, details) of each partition that Rook created on a disk."""
    for part in table["partitions"]:
        match = re.fullmatch(r"ROOK-OSD(\d+)-(WAL|DB|BLOCK|FS-DATA)", part.get("name", ""))
        if match:
            yield int(match[1]), TYPES[match[2]], {
                "device": os.path.basename(table["device"]),
                "diskUuid": table["id"].lower(),
                "partitionUuid": part["uuid"].lower(),
                "sizeMB": REST_OF_DISK if match[2] in ("BLOCK", "FS-DATA") else part["size"] // MIB,
                "offsetMB": part["start"] // MIB,
            }


def scheme_of(disks, osds):
    metadata, entries = None, {}
    for table in disks:
        found = list(rook_partitions(table))
        for osd, kind, details in found:
            entry = entries.setdefault(osd, {
                "id": osd,
                "osdUuid": osds[osd]["uuid"],
                "partitions": {},
                "storeType": "filestore" if osds[osd]["kind"] == "rook-filestore" else "bluestore",
                "fsCreated": True,
            })
            entry["partitions"][kind] = details
        if found and all(kind in "01" for _, kind, _ in found):
            metadata = {"device": found[0][2]["device"], "diskUuid": found[0][2]["diskUuid"], "partitions": [
                {"id": osd, "osdUuid": osds[osd]["uuid"], "type": int(kind)}
                | {key: details[key] for key in ("partitionUuid", "sizeMB", "offsetMB")}
                for osd, kind, details in found
            ]}
    for entry in entries.values():
        entry["partitions"] = dict(sorted(entry["partitions"].items()))
    return {"metadata": metadata, "entries": [entries[osd] for osd in sorted(entries)]} if entries else None


node, folder = sys.argv[1:]
osds = facts_of(folder)
data = {}
dirs = {os.path.dirname(o["dir"]): i for i, o in osds.items() if o["host"] == node and o["kind"].endswith("-dir")}
if dirs:
    data["osd-dirs"] = json.dumps(dirs, separators=(",", ":"))
scheme = scheme_of(tables(sys.stdin.read()), osds)
if scheme:
    data["partition-scheme"] = json.dumps(scheme, separators=(",", ":"))
if data:
    print(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"rook-ceph-osd-{node}-config", "namespace": "rook-ceph"},
                      "data": data}))
    print("---")
