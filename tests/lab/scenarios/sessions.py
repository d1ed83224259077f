"""One session each with Kubernetes and with Ceph, for the questions that scenarios repeat.

A start of kubectl or of ceph takes 0.2 s of one core, and a scenario waits by asking again and again.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAB = os.path.join(HERE, "lab")
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
PATIENCE = 60  # seconds in which the proxy starts, or the API server answers


class Unix(http.client.HTTPConnection):
    """HTTP over a Unix socket, which also another network namespace can reach."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Kubernetes:
    """Objects of the API server, through `kubectl proxy`."""

    def __init__(self):
        self.kinds = {}  # every word for a kind: base of its path, "namespaced" or not, and its plural
        self.folder = tempfile.TemporaryDirectory()  # the path of a Unix socket has at most 107 characters
        self.socket = os.path.join(self.folder.name, "api")
        command = [LAB, "net", "kubectl", "proxy", f"--unix-socket={self.socket}"]
        # in its own process group: the process that is started here is a shell
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > end:
                self.close()
                raise RuntimeError("kubectl proxy did not start")
            time.sleep(0.02)
        self.connection = Unix(self.socket)

    def get(self, kinds, name, selector, namespace):
        """Returns an object, or a list of the objects of one or more kinds; None if it does not exist, or none exists."""
        if name:
            return self.ask(f"{self.path(kinds, namespace)}/{name}")
        items = [item for kind in kinds.split(",") for item in self.list(kind, selector, namespace)]
        return {"items": items} if items else None

    def log(self, job, namespace):
        """Returns the log of all pods of a Job, the oldest pod first. A pod whose container has not started has none."""
        pods = self.list("pods", f"batch.kubernetes.io/job-name={job}", namespace)
        pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        paths = [f"{self.path('pods', namespace)}/{pod['metadata']['name']}/log" for pod in pods]
        answers = [self.request(path, "*/*") for path in paths]
        return "".join(text.decode(errors="replace") for status, text in answers if status == 200)

    def list(self, kind, selector, namespace):
        words = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        found = self.ask(self.path(kind, namespace) + words)
        # The items of a list have no kind of their own.
        head = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        return [head | item for item in found["items"]]

    def path(self, kind, namespace):
        if kind not in self.kinds:
            self.discover()
        if kind not in self.kinds:
            raise RuntimeError(f"the API server has no resource {kind}")
        base, namespaced, plural = self.kinds[kind]
        return f"{base}/namespaces/{namespace}/{plural}" if namespaced else f"{base}/{plural}"

    def discover(self):
        for root in ("/api", "/apis"):
            for group in self.ask(root, DISCOVERY)["items"]:
                version = group["versions"][0]  # the preferred one
                name = group["metadata"].get("name")
                base = f"{root}/{name}/{version['version']}" if name else f"{root}/{version['version']}"
                for resource in version["resources"]:
                    plural = resource["resource"]
                    words = [plural, f"{plural}.{name}", resource["singularResource"], *resource.get("shortNames", [])]
                    for word in words:  # the core group comes first: `events` are its events
                        self.kinds.setdefault(word, (base, resource["scope"] == "Namespaced", plural))

    def ask(self, path, accept="application/json"):
        """Returns the answer to a request, or None if the object does not exist."""
        status, text = self.request(path, accept)
        if status == 404:
            return None
        if status != 200:
            raise RuntimeError(f"{path}: {status} {text.decode(errors='replace')[:600]}")
        return json.loads(text)

    def request(self, path, accept):
        """Returns the status and the body of the answer. If the connection fails, the request is sent once more."""
        try:
            return self.send(path, accept)
        except (http.client.HTTPException, OSError):
            return self.send(path, accept)

    def send(self, path, accept):
        try:
            self.connection.request("GET", path, headers={"Accept": accept})
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, OSError):
            self.connection.close()  # it opens again by itself
            raise

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.folder.cleanup()


class Ceph:
    """A session with the cluster, in the lab's network."""

    def __init__(self):
        command = [LAB, "on", "adm", "in-release", "/usr/bin/python3", os.path.join(HERE, "py", "commands.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, daemon, prefix, given="", **arguments):
        """Sends a command to `mon` or `mgr`, and returns its status, answer and message."""
        return self.exchange([daemon, dict(arguments, prefix=prefix), given])

    def exchange(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{request}: the session ended")
        return json.loads(line)

    def read(self, prefix, daemon="mon", **arguments):
        status, answer, message = self.send(daemon, prefix, **arguments)
        if status:
            raise RuntimeError(f"{prefix}: {message}")
        return answer

    def typed(self, *words):
        """Returns the answer to a command as a person types it."""
        status, answer, message = self.exchange(["mon", list(words), ""])
        if status:
            raise RuntimeError(f"ceph {' '.join(words)}: {message} ({status})")
        return answer

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(30)


class Sessions:
    """The two sessions of a scenario, which begin with the first question, and serve one thread at a time."""

    def __init__(self):
        self.lock, self.open = threading.Lock(), {}

    def kubernetes(self, question):
        return self.answer(Kubernetes, question)

    def ceph(self, question):
        return self.answer(Ceph, question)

    def answer(self, kind, question):
        with self.lock:
            if kind in self.open and self.open[kind].process.poll() is not None:
                self.open.pop(kind).close()  # it ended, for example with its host
            if kind not in self.open:
                self.open[kind] = kind()
            return question(self.open[kind])

    def close(self):
        with self.lock:
            for session in self.open.values():
                session.close()
            self.open.clear()
