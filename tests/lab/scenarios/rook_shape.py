"""What a simulated Rook operator reads from a Deployment, and which Deployments it cannot read."""

PVC, DEVICE_SET = "ceph.rook.io/pvc", "ceph.rook.io/DeviceSet"
HOST = "topology-location-host"


def read_back(pod, labels):
    """Returns what Rook reads of an OSD from its Deployment (`getOSDInfo`, 1.20.6).

    A missing value fails the reconcile. The lab's OSDs are raw, of one device class, below a host of the root.
    """
    [osd] = [container for container in pod["containers"] if container["name"] == "osd"]
    env = {one["name"]: one.get("value", "") for one in osd["env"]}
    host = pod["nodeSelector"]["kubernetes.io/hostname"]
    location = f"--crush-location=root=default host={host}"
    found = (env["ROOK_CV_MODE"], env["ROOK_OSD_DEVICE_CLASS"], labels["osd-store"], labels["encrypted"], env["ROOK_NODE_NAME"])
    assert found == ("raw", "hdd", "bluestore", "false", host) and location in osd["args"], (found, osd["args"])
    assert "ROOK_PVC_BACKED_OSD" not in env and not env.get("ROOK_METADATA_DEVICE"), env
    assert labels[HOST] == host and env["ROOK_BLOCK_PATH"] and env["ROOK_OSD_UUID"], (labels, env)
    cluster = osd["args"][osd["args"].index("--fsid") + 1]
    return {"ID": labels["ceph-osd-id"], "HOST": host, "UUID": env["ROOK_OSD_UUID"], "FSID": cluster, "BLOCK": env["ROOK_BLOCK_PATH"]}


def differs(deployment, sets):
    """Returns whether Rook would start an OSD on a PVC in another shape, because its set declares that."""
    labels, pod = deployment["metadata"]["labels"], deployment["spec"]["template"]["spec"]
    declared = next((one for one in sets if one["name"] == labels.get(DEVICE_SET)), None)
    if not declared:
        return False
    roles = {template["metadata"]["name"] for template in declared["volumeClaimTemplates"]}
    names = {container["name"] for container in pod["initContainers"]}
    found = (labels["encrypted"], "blkdevmapper-metadata" in names)
    return found != (str(declared.get("encrypted", False)).lower(), "metadata" in roles)


def is_legacy(deployment):
    """Returns whether the Deployment is of Rook 1.2 or earlier: later versions cannot read from it where the data is."""
    pod = deployment["spec"]["template"]["spec"]
    named = {env["name"] for container in pod["containers"] for env in container.get("env", [])}
    activates = any(container["name"] == "activate" for container in pod.get("initContainers", []))
    return not activates and not named & {"ROOK_BLOCK_PATH", "ROOK_LV_PATH"}
