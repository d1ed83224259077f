"""A table of results: a line for each scenario that finished, so that a full run that was interrupted can go on.

Columns: scenario, seed, `full` or `usual`, `ok` or `FAILED`, seconds, date, commit. The folder FILE.d has the account of
each scenario that passed: with it, a run that goes on knows which rights of the chart were used.
"""
import collections
import datetime
import os
import subprocess

UNKNOWN = "unknown"  # the commit of a tree without git


class Table:
    def __init__(self, path, full, commit=None):
        self.path, self.kind = path, "full" if full else "usual"
        self.commit = commit or described()

    def append(self, name, seed, total, seconds):
        """Appends the line of a scenario, and keeps its account (lanes.Sum) if it passed."""
        is_good = not (total.failed or total.refused)
        if is_good:
            os.makedirs(os.path.dirname(self.account(name, seed)), exist_ok=True)
            total.save(self.account(name, seed))
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = [name, str(seed), self.kind, "ok" if is_good else "FAILED", f"{seconds:.1f}", date, self.commit]
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\t".join(line) + "\n")

    def account(self, name, seed):
        return os.path.join(f"{self.path}.d", self.commit, f"{name}-{seed}-{self.kind}.json")

    def rest(self, rounds):
        """Returns the rounds (name, seed) that have not passed with this commit, and the accounts of the others.

        A scenario that is in the list several times must pass as often, each time with another seed. What passed with
        changes that are not committed does not count: nobody knows with which.
        """
        passed = collections.defaultdict(dict)
        for name, seed, kind, result, _, _, commit in self.lines() if is_certain(self.commit) else []:
            is_of_this = (kind, result, commit) == (self.kind, "ok", self.commit)
            if is_of_this and os.path.exists(self.account(name, seed)):
                passed[name][seed] = self.account(name, seed)
        accounts = [passed[name].pop(str(seed), None) for name, seed in rounds]
        rest = []
        for number, (name, seed) in enumerate(rounds):
            if not accounts[number] and passed[name]:  # with another seed
                accounts[number] = passed[name].popitem()[1]
            if not accounts[number]:
                rest.append((name, seed))
        return rest, [account for account in accounts if account]

    def lines(self):
        """Yields the complete lines of the table; there is none before the first scenario."""
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                yield from (line.rstrip("\n").split("\t") for line in file if line.count("\t") == 6)


def is_certain(commit):
    return commit != UNKNOWN and not commit.endswith("-dirty")


def described():
    """Returns the commit of this tree."""
    command = ["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
