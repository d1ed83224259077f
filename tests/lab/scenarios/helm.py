"""The real Helm, as a person calls it outside of the cluster."""
import glob
import os
import subprocess

from . import NAMESPACE
from .world import HERE

TREE = os.path.join(HERE, "..", "..")
CHART = os.path.join(TREE, "charts", "osd-migrate")


def installed(tool):
    """Returns the path of a tool of build/install, which installs it if it is missing.

    The lab begins while the tools of later stages are installed.
    """
    subprocess.run([os.path.join(TREE, "build", "install"), tool], check=True)
    return sorted(glob.glob(os.path.expanduser(f"~/.cache/osd-migrate/{tool}-*/{tool}")))[-1]


def helm_binary():
    """Returns the Helm of build/install, or another one: LAB_HELM=/path/of/helm."""
    return os.environ.get("LAB_HELM") or installed("helm")


def run_helm(world, *words, code=0):
    """Runs `helm WORDS`, expects success (or a failure, if `code` is not 0), and returns its output."""
    done = world.lab("net", "env", f"HELM_CACHE_HOME={world.folder()}/helm", helm_binary(), "-n", NAMESPACE, *words, check=False)
    text = done.stdout + done.stderr
    assert (done.returncode != 0) == (code != 0), f"helm {' '.join(words)}: exit {done.returncode}\n{text[-3000:]}"
    return text
