"""Compares the rights of the chart's accounts with their requests, in the API server's audit logs of all scenarios."""
import json
import os

from . import NAMESPACE

PREFIX = f"system:serviceaccount:{NAMESPACE}:osd-migrate"
# Granted, and never used in this lab, or only with --full; each with its reason.
UNSEEN = {
    ("osd-migrate", "update", "ceph.rook.io", "cephclusters/finalizers"): "needed only if the admission plugin OwnerReferencesPermissionEnforcement is enabled",
    ("osd-migrate", "list", "batch", "cronjobs"): "needed only if an encrypted OSD on a PVC may get a database or a log",
    ("osd-migrate-preflight", "list", "batch", "cronjobs"): "the same",
    ("osd-migrate-preflight", "list", "", "persistentvolumeclaims"): "needed only if an OSD is on a PVC",
    ("osd-migrate-preflight", "get", "", "persistentvolumes"): "needed only if an OSD is on a PVC",
    ("osd-migrate-preflight", "list", "", "persistentvolumes"): "needed only if many OSDs are on PVCs, or a run's inventory of disks exists",
}
ONLY_FULL = {
    ("osd-migrate", "delete", "", "pods"): "frozen --full: a former runner's pod is deleted",
}


def granted(world, manifests):
    """Returns {(account, verb, group, resource, name or None)} of the Roles that the chart renders.

    The resource is `namespace/resource` if the namespace is not that of the CephCluster.
    """
    as_json = world.lab("kubectl", "create", "--dry-run=client", "-o", "json", "-f", "-", stdin=manifests).stdout
    found = set()
    for role in filter(lambda document: document["kind"].endswith("Role"), documents(as_json)):
        account, namespace = role["metadata"]["name"].replace(f"-{NAMESPACE}", ""), role["metadata"].get("namespace")
        for rule in role["rules"]:
            for verb in rule["verbs"]:
                for resource in rule["resources"]:
                    what = (account, verb, rule["apiGroups"][0], placed(namespace, resource))
                    found |= {(*what, only) for only in rule.get("resourceNames", [None])}
    return found


def placed(namespace, resource):
    return resource if namespace in (None, NAMESPACE) else f"{namespace}/{resource}"


def documents(text):
    """Yields the JSON documents of a text that contains several."""
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        text = text[end:]
        yield document


def asked(world):
    """Returns the requests that were answered and those that were refused.

    Both are {(account, verb, group, resource, name)}.
    """
    done, refused = set(), set()
    with open(os.path.join(world.folder(), "audit.log"), encoding="utf-8") as log:
        for line in log:
            if PREFIX not in line:
                continue
            entry = json.loads(line)
            user = entry["user"]["username"]
            if not user.startswith(PREFIX) or "impersonatedUser" in entry:
                continue
            assert entry["userAgent"].startswith("osd-migrate/"), entry["userAgent"]
            ref = entry.get("objectRef", {})
            resource = ref.get("resource", "") + (f"/{ref['subresource']}" if "subresource" in ref else "")
            what = (user.split(":")[-1], entry["verb"], ref.get("apiGroup", ""), placed(ref.get("namespace"), resource), ref.get("name"))
            (refused if entry.get("responseStatus", {}).get("code") == 403 else done).add(what)
    return done, refused


def unused(may, done, full):
    """Returns the rights that no request used."""
    used = {what[:4] for what in done} | {what for what in done}
    excused = set(UNSEEN) | (set() if full else set(ONLY_FULL))
    return sorted(
        right[:4] + (right[4] or "",) for right in may if (right if right[4] else right[:4]) not in used and right[:4] not in excused
    )
