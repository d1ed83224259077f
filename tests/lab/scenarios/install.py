"""From nothing to a plan, by the three commands of the installation guide.

A registry and a server of files have what a release publishes: the image, the chart, the archives and the manifest for krew.
In the commands, only the names of these two servers are replaced. The nodes pull the image from the registry.
"""
import os
import re
import subprocess
import time

from .helm import CHART, helm_binary, installed, run_helm
from .laptop import names
from .world import HERE

REPOSITORY = os.path.join(HERE, "..", "..")
REGISTRY, SERVER, OWNER = "10.99.0.1:5000", "10.99.0.1:5443", "owner"  # `lab registry`


def run(world):
    world.up(manifests=False)
    on_running_lab(world)


def on_running_lab(world):
    """Publishes, installs, reads the plan, and uninstalls. osd-migrate must not be installed."""
    laptop = Laptop(world)
    publish(world, laptop)
    written, jobs, began = world.written(), names(world), time.monotonic()
    assert not world.get("cronjob", "osd-migrate") and not pulled(world), "osd-migrate is installed already"
    install, plugin, plan = commands()

    said = laptop.types(install)
    assert "Nothing was changed." in said and world.get("cronjob", "osd-migrate")["spec"]["suspend"], said
    assert not world.list("pods", selector="app.kubernetes.io/name=osd-migrate"), "the installation started a pod"
    said = laptop.types(plugin)
    assert "Installed plugin: osd-migrate" in said, said
    said = laptop.types(plan)
    assert all(re.search(rf"\bosd\.{osd}\b", said) for osd in (0, 1, 5)), said
    took = time.monotonic() - began

    assert world.written() == written and not world.records(), "the plan changed something"
    assert names(world) == jobs, "the Job of the plan still exists"
    assert pulled(world), "no node has pulled the image from the registry"
    world.say(f"three commands, from nothing to a plan in {took:.1f} s:\n{said.rstrip()}")
    run_helm(world, "uninstall", "osd-migrate")


class Laptop:
    """A home of a person who has kubectl, Helm and krew, and who trusts the certificates of the lab."""

    def __init__(self, world):
        self.world, self.home = world, os.path.join(world.folder(), "laptop")
        os.makedirs(os.path.join(self.home, "bin"))
        for name, program in (("helm", helm_binary()), ("kubectl-krew", installed("krew"))):
            os.symlink(program, os.path.join(self.home, "bin", name))
        # krew clones its index of plugins, which is on GitHub, when it is used for the first time.
        index = os.path.join(self.home, "index")
        os.makedirs(os.path.join(index, "plugins"))
        with open(os.path.join(index, "plugins", "README"), "w", encoding="utf-8") as file:
            file.write("no plugins\n")
        as_lab = ["-c", "user.name=lab", "-c", "user.email=lab@example.org"]
        for words in (["init", "-q", "-b", "main"], ["add", "."], [*as_lab, "commit", "-q", "-m", "Index"]):
            subprocess.run(["git", "-C", index, *words], check=True)
        self.env = [f"HOME={self.home}", f"SSL_CERT_FILE={world.folder()}/pki/ca.crt", f"KREW_DEFAULT_INDEX_URI={index}"]

    def types(self, command):
        """Runs a command in a shell, expects success, and returns its output."""
        began = time.monotonic()
        path = 'PATH=$HOME/bin:$HOME/.krew/bin:$PATH; '
        done = self.world.lab("net", "env", *self.env, "bash", "-c", path + command, check=False)
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        self.world.say(f"{command}: {time.monotonic() - began:.1f} s")
        return done.stdout + done.stderr


def commands():
    """Returns the three commands of the guide, with the servers of the lab."""
    with open(os.path.join(REPOSITORY, "docs", "guides", "install.md"), encoding="utf-8") as file:
        typed = re.match(r"# Install\n\n((?:    .*\n)+)", file.read())[1].split("\n")
    typed = [line.strip() for line in typed if line]
    typed = [line.replace("ghcr.io/OWNER", f"{REGISTRY}/{OWNER}").replace("github.com/OWNER", f"{SERVER}/{OWNER}") for line in typed]
    assert len(typed) == 3 and all(len(line) <= 200 for line in typed), typed
    return typed


def version():
    with open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8") as file:
        return re.search(r"^version: (.*)$", file.read(), re.MULTILINE)[1]


def publish(world, laptop):
    """Does what the release workflow does, for this program and these servers."""
    served = os.path.join(world.folder(), "served")
    releases = os.path.join(served, OWNER, "osd-migrate", "releases")
    files = os.path.join(releases, "download", f"v{version()}")
    address = f"https://{SERVER}/{OWNER}/osd-migrate"
    make = ["build/packages", files, f"{REGISTRY}/{OWNER}/osd-migrate", address, f"v{version()}", world.binary, world.binary]
    subprocess.run(make, cwd=REPOSITORY, check=True)
    os.makedirs(os.path.join(releases, "latest"))
    os.symlink(files, os.path.join(releases, "latest", "download"))
    world.lab("registry", world.binary, served)
    laptop.types(f"helm push {files}/osd-migrate-{version()}.tgz oci://{REGISTRY}/{OWNER}/charts")


def pulled(world):
    """Returns the nodes that have the image of the registry."""
    name = f"{REGISTRY}/{OWNER}/osd-migrate:{version()}"
    return [node for node in world.hosts if name in world.lab("on", node, "ctr", "-n", "k8s.io", "images", "ls", "-q").stdout.split()]
