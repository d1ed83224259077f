#!/usr/bin/python3
"""Checks the rendered objects for Prometheus and Grafana, which Kubernetes has no schemas for.

    tests/chart/monitoring.py RENDERED NAMESPACE

RENDERED has the manifests of a release in NAMESPACE, with everything enabled.
"""
import json
import sys

import yaml

with open(sys.argv[1], encoding="utf-8") as file:
    objects = [it for it in yaml.safe_load_all(file) if it]
namespace = sys.argv[2]


def one(kind, name):
    found = [it for it in objects if it["kind"] == kind and it["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind} {name}: {len(found)}"
    assert found[0]["metadata"]["namespace"] == namespace
    return found[0]


run = one("CronJob", "osd-migrate")["spec"]["jobTemplate"]["spec"]["template"]
monitor = one("PodMonitor", "osd-migrate")["spec"]
labels = run["metadata"]["labels"]
assert monitor["selector"]["matchLabels"].items() <= labels.items(), f"the PodMonitor does not select {labels}"
(endpoint,) = monitor["podMetricsEndpoints"]
(container,) = run["spec"]["containers"]
ports = [port["name"] for port in container["ports"]]
assert endpoint["port"] in ports, f"no port {endpoint['port']} in {ports}"
assert set(endpoint) == {"port", "interval", "relabelings"}

rules = one("PrometheusRule", "osd-migrate")["spec"]
with open("charts/osd-migrate/files/alerts.yaml", encoding="utf-8") as file:
    expected = yaml.safe_load(file.read().replace("rook-ceph", namespace))
assert rules == expected, "the PrometheusRule differs from files/alerts.yaml"
assert "rook-ceph" not in json.dumps(rules), "an alert is about another namespace"

dashboard = one("ConfigMap", "osd-migrate-dashboard")
assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
(text,) = dashboard["data"].values()
assert json.loads(text)["panels"], "the dashboard has no panels"
