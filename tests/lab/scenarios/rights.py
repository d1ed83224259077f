"""What the accounts of the chart may do against what they did: the API server's audit log of all scenarios, both ways."""
import json
import os

from . import NAMESPACE

PREFIX = f"system:serviceaccount:{NAMESPACE}:osd-migrate"
# Granted, and not to be seen in a log of this lab, or only with --full; each with its reason.
UNSEEN = {
    ("osd-migrate", "update", "ceph.rook.io", "cephclusters/finalizers"): "asked for only where the admission plugin OwnerReferencesPermissionEnforcement is on",
    ("osd-migrate-preflight", "list", "", "persistentvolumes"): "asked for only if a run's inventory of disks exists at that moment",
}
ONLY_FULL = {
    ("osd-migrate", "delete", "", "pods"): "frozen --full: a former runner's pod is told to end",
    ("osd-migrate", "list", "", "events"): "beside: Rook says in an event that it keeps off",
}


def granted(world, manifests):
    """{(account, verb, group, resource, name or None)} of the Roles in what the chart renders; `namespace/resource` where it is
    another one than Rook's cluster is in."""
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
    """JSON documents that stand one after the other."""
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        text = text[end:]
        yield document


def asked(world):
    """(what was asked and answered: {(account, verb, group, resource, name)}, what was refused: {(the same, its job)})."""
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
    """Rights that nobody made use of."""
    used = {what[:4] for what in done} | {what for what in done}
    excused = set(UNSEEN) | (set() if full else set(ONLY_FULL))
    return sorted(
        right[:4] + (right[4] or "",) for right in may if (right if right[4] else right[:4]) not in used and right[:4] not in excused
    )
