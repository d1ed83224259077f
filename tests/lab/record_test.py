#!/usr/bin/python3
"""Tests of the table of results and of the lanes. They need no lab; build/shell runs them."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from scenarios import lanes, record  # noqa: E402

FULL = [("lvm", 1), ("killed", 2), ("killed", 3), ("frozen", 4)]


def total(failed=0, refused=()):
    one = lanes.Sum()
    one.passed, one.failed, one.asked, one.refused = int(not failed), failed, {("run", "list", "", "pods", None)}, set(refused)
    return one


class Lanes(unittest.TestCase):
    def test_one_scenario_with_a_user_mode_linux_host_runs_at_a_time(self):
        rounds = lanes.Lanes([("lvm", 1), ("mapped", 2), ("killed", 3)], None)
        self.assertEqual([rounds.take(), rounds.take(), rounds.take()], [("lvm", 1), ("killed", 3), None])
        del rounds.running["lvm", 1]
        self.assertEqual([rounds.take(), rounds.take()], [("mapped", 2), None])


class Record(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "cache", "full.tsv")

    def table(self, commit="v1-3-gabc", full=True):
        return record.Table(self.path, full, commit)

    def rest(self, rounds=FULL, **of):
        return self.table(**of).rest(rounds)[0]

    def test_rest_is_everything_without_a_table(self):
        self.assertEqual(self.table().rest(FULL), (FULL, []))

    def test_line_has_seven_columns(self):
        self.table().append("lvm", 1, total(), 12.34)
        with open(self.path, encoding="utf-8") as file:
            found = file.read().rstrip("\n").split("\t")
        self.assertEqual((found[:5], found[6:]), (["lvm", "1", "full", "ok", "12.3"], ["v1-3-gabc"]))
        self.assertRegex(found[5], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_passed_scenarios_are_left_out_and_their_accounts_kept(self):
        self.table().append("lvm", 77, total(), 1)
        rest, accounts = self.table().rest(FULL)
        self.assertEqual(rest, FULL[1:])
        again = lanes.Sum()
        again.add(accounts[0])
        self.assertEqual((again.passed, again.asked), (1, total().asked))

    def test_failed_refused_and_usual_scenarios_run_again(self):
        self.table().append("lvm", 1, total(failed=1), 1)
        self.table().append("frozen", 4, total(refused=[("run", "delete", "", "pods")]), 1)
        self.table(full=False).append("killed", 2, total(), 1)
        self.assertEqual(self.rest(), FULL)

    def test_repeated_scenario_passes_as_often_with_other_seeds(self):
        self.table().append("killed", 3, total(), 1)
        self.table().append("killed", 3, total(), 1)
        self.assertEqual(self.rest(), [("lvm", 1), ("killed", 2), ("frozen", 4)])
        self.table().append("killed", 9, total(), 1)
        self.assertEqual(self.rest(), [("lvm", 1), ("frozen", 4)])

    def test_other_commits_and_uncommitted_changes_do_not_count(self):
        for commit in ("v1-2-gdef", "v1-3-gabc-dirty", record.UNKNOWN):
            self.table(commit).append("lvm", 1, total(), 1)
            self.assertEqual(self.rest(), FULL)
            self.assertEqual(self.rest(commit=commit), FULL[1:] if commit == "v1-2-gdef" else FULL)

    def test_line_that_was_cut_off_does_not_count(self):
        self.table().append("lvm", 1, total(), 1)
        with open(self.path, "r+", encoding="utf-8") as file:
            file.truncate(20)
        self.assertEqual(self.rest(), FULL)


if __name__ == "__main__":
    unittest.main()
