"""A real Prometheus and kube-state-metrics, with the PrometheusRule and the PodMonitor of the chart.

Both run in the network of the lab. The Prometheus operator is not there: what it makes of a PodMonitor is in
`scrape_config`. Debian builds Prometheus without the discovery of Kubernetes: `Discovery` writes the same targets with
the same labels into a file that Prometheus watches.
"""
import json
import os
import re
import subprocess
import threading
import time
import urllib.parse

from . import NAMESPACE
from .world import HERE

GROUP = "monitoring.coreos.com"
CRDS = {"prometheusrules": "PrometheusRule", "podmonitors": "PodMonitor"}
WEB, METRICS_OF_KUBERNETES, OWN_METRICS = 9090, 8080, 8081
INTERVAL = "2s"
# Prints the answer to a GET request. Debian's minimal system has no curl.
GET = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
# An alert is to fire within this time after its cause.
SECONDS = 240


def install():
    """Installs Helm, Debian's Prometheus and kube-state-metrics, and returns the path of the last."""
    build = os.path.join(HERE, "..", "..", "build")
    subprocess.run([os.path.join(build, "install"), "helm", "promtool", "state-metrics"], check=True)
    text = f". {build}/lib.sh; echo $KUBE_STATE_METRICS_ROOT/kube-state-metrics"
    return subprocess.run(["bash", "-c", text], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def create_crds(world):
    """Creates the kinds of the Prometheus operator that the chart uses; they accept any fields."""
    for plural, kind in CRDS.items():
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
        spec = {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]}
        name = f"{plural}.{GROUP}"
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}}
        world.lab("kubectl", "create", "-f", "-", stdin=json.dumps(head | {"spec": spec}))
        world.lab("kubectl", "wait", "--for=condition=Established", "--timeout=30s", f"crd/{name}")


class Discovery(threading.Thread):
    """Writes the pods of the namespace into a file, as targets with the labels of kubernetes_sd_configs."""

    def __init__(self, world, path):
        super().__init__(daemon=True)
        self.world, self.path, self.ends, self.written = world, path, threading.Event(), None
        self.write([])

    def run(self):
        while not self.ends.wait(1):
            listed = self.world.lab("kubectl", "-n", NAMESPACE, "get", "pods", "-o", "json", check=False)
            if listed.returncode == 0:
                self.write([target for pod in json.loads(listed.stdout)["items"] for target in targets(pod)])

    def write(self, found):
        if found == self.written:
            return
        self.written = found
        with open(f"{self.path}.new", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(f"{self.path}.new", self.path)

    def kill(self):
        self.ends.set()

    def wait(self):
        self.join()


def targets(pod):
    """Returns one target for each port of a pod that has an address."""
    meta, status = pod["metadata"], pod["status"]
    of_pod = {f"pod_label_{valid(name)}": value for name, value in meta["labels"].items()}
    of_pod |= {"namespace": meta["namespace"], "pod_name": meta["name"], "pod_phase": status["phase"]}
    found = []
    for container in pod["spec"]["containers"] if status.get("podIP") else []:
        for port in container.get("ports", []):
            labels = of_pod | {"pod_container_name": container["name"], "pod_container_port_name": port.get("name", "")}
            labels = {f"__meta_kubernetes_{name}": value for name, value in labels.items()}
            found.append({"targets": [f"{status['podIP']}:{port['containerPort']}"], "labels": labels})
    return found


def valid(name):
    """Returns the name as the name of a label."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def scrape_config(monitor, discovered):
    """Returns the scrape configuration that the Prometheus operator makes of a PodMonitor."""
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    selector = monitor["spec"]["selector"]["matchLabels"]
    labels = {"namespace": "namespace", "pod": "pod_name", "container": "pod_container_name"}
    return {
        "job_name": f"podMonitor/{NAMESPACE}/osd-migrate",
        "scrape_interval": INTERVAL,
        "scrape_timeout": INTERVAL,
        "file_sd_configs": [{"files": [discovered]}],
        "relabel_configs": [
            {"action": "drop", "source_labels": ["__meta_kubernetes_pod_phase"], "regex": "(Failed|Succeeded)"},
            *(keep(f"pod_label_{valid(name)}", value) for name, value in selector.items()),
            keep("pod_container_port_name", endpoint["port"]),
            *(
                {"source_labels": [f"__meta_kubernetes_{source}"], "target_label": label}
                for label, source in labels.items()
            ),
            {"target_label": "job", "replacement": f"{NAMESPACE}/osd-migrate"},
            {"target_label": "endpoint", "replacement": endpoint["port"]},
            *(snake(relabeling) for relabeling in endpoint["relabelings"]),
        ],
    }


def keep(label, value):
    return {"action": "keep", "source_labels": [f"__meta_kubernetes_{label}"], "regex": value}


def snake(fields):
    """Returns the fields with the names of Prometheus' configuration: targetLabel is target_label."""
    return {re.sub("[A-Z]", lambda upper: "_" + upper[0].lower(), name): value for name, value in fields.items()}


def kubeconfig(world):
    return os.path.realpath(os.path.join(world.folder(), "kubeconfig"))


class Prometheus:
    """Debian's Prometheus, which ends with the lab."""

    def __init__(self, world, state_metrics):
        self.world = world
        self.folder = os.path.realpath(os.path.join(world.folder(), "prometheus"))
        os.makedirs(self.folder)
        rules, monitor = (world.get(f"{plural}.{GROUP}", "osd-migrate") for plural in CRDS)
        self.alerts = [rule["alert"] for group in rules["spec"]["groups"] for rule in group["rules"]]
        # JSON is YAML.
        rule_file = self.write("rules.yml", {"groups": rules["spec"]["groups"]})
        state = {"job_name": "kube-state-metrics", "honor_labels": True}
        state["static_configs"] = [{"targets": [f"127.0.0.1:{METRICS_OF_KUBERNETES}"]}]
        discovery = Discovery(world, os.path.join(self.folder, "targets.json"))
        config = {
            "global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL},
            "rule_files": [rule_file],
            "scrape_configs": [scrape_config(monitor, discovery.path), state],
        }
        discovery.start()
        world.background.append(discovery)
        self.start(
            "prometheus",
            f"--config.file={self.write('prometheus.yml', config)}",
            f"--storage.tsdb.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{WEB}",
        )
        self.start(
            state_metrics,
            f"--kubeconfig={kubeconfig(world)}",
            "--resources=jobs",
            f"--namespaces={NAMESPACE}",
            "--host=127.0.0.1",
            f"--port={METRICS_OF_KUBERNETES}",
            "--telemetry-host=127.0.0.1",
            f"--telemetry-port={OWN_METRICS}",
        )
        self.until('up{job="kube-state-metrics"} == 1')

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        return path

    def start(self, program, *args):
        """Starts a program in the network of the lab. It replaces nsenter, so that it ends with the scenario."""
        with open(os.path.join(self.world.folder(), "pids", "net"), encoding="utf-8") as file:
            net = file.read().split()[0]
        log = os.path.join(self.folder, f"{os.path.basename(program)}.log")
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(
                ["nsenter", "-t", net, "-n", program, *args], stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        self.world.background.append(process)

    def get(self, path):
        """Returns the data of an answer of Prometheus' API, or None if it does not answer."""
        done = self.world.lab("net", "python3", "-c", GET, f"http://127.0.0.1:{WEB}/api/v1/{path}", check=False)
        return json.loads(done.stdout)["data"] if done.returncode == 0 else None

    def query(self, expression):
        found = self.get(f"query?query={urllib.parse.quote(expression)}")
        return found["result"] if found else []

    def until(self, expression, seconds=60):
        return self.world.until(expression, seconds, lambda: self.query(expression))

    def firing(self, alert):
        """Returns the instances of an alert that are firing."""
        found = self.get("alerts") or {"alerts": []}
        named = [one for one in found["alerts"] if one["labels"]["alertname"] == alert]
        return [one for one in named if one["state"] == "firing"]

    def fires(self, alert, since, what, **labels):
        """Waits for an alert, and checks and prints the seconds since its cause."""
        is_it = lambda one: labels.items() <= one["labels"].items()  # noqa: E731
        found = self.world.until(f"{alert} to fire", SECONDS, lambda: list(filter(is_it, self.firing(alert))))
        seconds = time.monotonic() - since
        self.world.say(f"alert {alert} fires {seconds:.1f} s after {what}: {found[0]['annotations']['summary']}")
        assert seconds <= SECONDS, f"{alert} fired {seconds:.0f} s after {what}"
        assert f"-n {NAMESPACE} " in found[0]["annotations"]["description"], found[0]
        self.alerts = [name for name in self.alerts if name != alert]
        return found

    def ends(self, *alerts):
        """Waits until the alerts do not fire any more: their cause was removed."""
        for alert in alerts:
            self.world.until(f"{alert} to end", SECONDS, lambda: not self.firing(alert))
        self.world.say(f"resolved: {', '.join(alerts)}")

    def expect_silence(self):
        """Checks that no alert is pending or firing."""
        found = self.get("alerts")["alerts"]
        assert not found, found
