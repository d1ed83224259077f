#!/usr/bin/python3
"""Checks which Ceph image Helm reads from the CephClusters of a namespace. An API server of this script answers Helm.

    tests/chart/lookup.py HELM CHART

The lab's scenario `chart` shows the same with a real API server.
"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

GROUP = "ceph.rook.io"
KIND = {"name": "cephclusters", "singularName": "cephcluster", "namespaced": True, "kind": "CephCluster", "verbs": ["get", "list"]}
VERSION = {"groupVersion": f"{GROUP}/v1", "version": "v1"}


def cluster(name, image):
    spec = {"cephVersion": {"image": image}} if image else {}
    return {"apiVersion": f"{GROUP}/v1", "kind": "CephCluster", "metadata": {"name": name, "namespace": "rook-ceph"}, "spec": spec}


def answers(clusters, crd=True):
    """Returns the answers of an API server by path; without `crd` it does not know CephClusters."""
    groups = [{"name": GROUP, "versions": [VERSION], "preferredVersion": VERSION}] if crd else []
    found = {
        "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    }
    if crd:
        found[f"/apis/{GROUP}/v1"] = {"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1", "resources": [KIND]}
        found[f"/apis/{GROUP}/v1/namespaces/rook-ceph/cephclusters"] = {"apiVersion": f"{GROUP}/v1", "kind": "CephClusterList", "items": clusters}
    return found


class Server(http.server.BaseHTTPRequestHandler):
    answers = {}

    def do_GET(self):
        answer = self.answers.get(self.path.split("?")[0])
        body = json.dumps(answer or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main(helm, chart):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    one, other, bare = cluster("rook-ceph", "quay.io/ceph/ceph:v20.2.4"), cluster("other", "quay.io/ceph/ceph:v18.2.7"), cluster("rook-ceph", "")
    none = "has no CephCluster that Helm can see"
    cases = [
        # answers, values, the image or a part of the sentence
        (answers([one]), [], "quay.io/ceph/ceph:v20.2.4"),
        (answers([one, other]), ["cluster=other"], "quay.io/ceph/ceph:v18.2.7"),
        (answers([one]), ["cephImage=example/ceph:v1"], "example/ceph:v1"),
        (answers([one, other]), [], "has several CephClusters (rook-ceph, other). Set cluster to the name of one of them"),
        (answers([one]), ["cluster=other"], "has no CephCluster other that Helm can see"),
        (answers([bare]), [], "CephCluster rook-ceph names no image"),
        (answers([]), [], none),
        (answers([], crd=False), [], none),
    ]
    with tempfile.TemporaryDirectory() as home:
        config = os.path.join(home, "config")
        clusters = [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}]
        contexts = [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "rook-ceph"}}]
        with open(config, "w", encoding="utf-8") as file:
            users = [{"name": "u", "user": {}}]
            json.dump({"apiVersion": "v1", "kind": "Config", "clusters": clusters, "contexts": contexts, "users": users, "current-context": "c"}, file)
        for given, values, expected in cases:
            Server.answers = given
            # `helm template` asks the server for objects, but not for its version and its resources
            known = ["--api-versions", f"{GROUP}/v1"] if f"/apis/{GROUP}/v1" in given else []
            sets = [word for value in ["image.repository=osd-migrate", *values] for word in ("--set", value)]
            command = [helm, "template", "osd-migrate", chart, "--namespace", "rook-ceph", "--dry-run=server", "--kube-version", "1.34.0", *known]
            command += ["--show-only", "templates/cronjob.yaml"]
            env = {**os.environ, "KUBECONFIG": config, "HELM_CACHE_HOME": home, "HOME": home}
            done = subprocess.run([*command, *sets], env=env, capture_output=True, text=True, check=False)
            right = f'- name: osd-migrate\n            image: "{expected}"' in done.stdout if done.returncode == 0 else f"{expected}" in done.stderr
            if not right or (done.returncode == 0) != (" " not in expected):
                sys.exit(f"{values}: '{expected}' was expected:\n{done.stdout[-2000:]}{done.stderr}")


if __name__ == "__main__":
    main(*sys.argv[1:])
