"""The real Helm, as a person calls it outside of the cluster."""
import glob
import os

from . import NAMESPACE
from .world import HERE

CHART = os.path.join(HERE, "..", "..", "charts", "osd-migrate")


def helm_binary():
    """Returns the Helm that build/install installed, or another one: LAB_HELM=/path/of/helm."""
    found = sorted(glob.glob(os.path.expanduser("~/.cache/osd-migrate/helm-*/helm")))
    assert found, "Helm is not installed. Install it: build/install helm"
    return os.environ.get("LAB_HELM", found[-1])


def run_helm(world, *words, code=0):
    """Runs `helm WORDS`, expects success (or a failure, if `code` is not 0), and returns its output."""
    done = world.lab("net", "env", f"HELM_CACHE_HOME={world.folder()}/helm", helm_binary(), "-n", NAMESPACE, *words, check=False)
    text = done.stdout + done.stderr
    assert (done.returncode != 0) == (code != 0), f"helm {' '.join(words)}: exit {done.returncode}\n{text[-3000:]}"
    return text
