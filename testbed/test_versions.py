"""Tests of the table that versions.py writes, without a run: `python3 testbed/test_versions.py`, a part of `make lint`."""

import tempfile
import unittest
from pathlib import Path

import versions

PASSED = "\nrunning 66 tests\n....\ntest result: ok. 66 passed; 0 failed; 3 ignored; 0 measured; 9 filtered out; finished in 9.00s\n"
FAILED = """
failures:

---- cases::firing::b ----
panicked: failures:

failures:
    cases::firing::b
    cases::firing::a

test result: FAILED. 62 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 9.00s
"""
PAGE = f"# Head\n\n{versions.BEGIN}\n{versions.HEAD}| 1.37.2 | all | 2026-11-23 | 66 of 66 |  |\n| 1.9.0 | all | a | b | c |\n\n{versions.END}\ntail\n"


class Cells(unittest.TestCase):
    def test_passed_and_failed_cases_are_read(self):
        self.assertEqual(versions.cells(PASSED), ["66 of 66", ""])
        self.assertEqual(versions.cells(FAILED), ["62 of 64", "`a`, `b`"])

    def test_output_without_a_result_gives_no_row(self):
        self.assertIsNone(versions.cells("error: could not compile"))


class Programs(unittest.TestCase):
    def test_programs_that_do_not_build_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "kube-apiserver").touch()
            self.assertEqual(versions.programs(folder), "kube-apiserver")
            for program in versions.PROGRAMS:
                (folder / program).touch()
            self.assertEqual(versions.programs(folder), "all")


class Page(unittest.TestCase):
    def test_row_of_a_release_is_added_in_order_or_replaced(self):
        page = versions.with_row(PAGE, ["1.30.14", "all", "2026-11-27", "1 of 2", "`a`"])
        rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| 1")]
        self.assertEqual(rows, ["1.37.2", "1.30.14", "1.9.0"])
        again = versions.with_row(page, ["1.30.14", "kube-apiserver", "2026-11-28", "2 of 2", ""])
        self.assertIn("| 1.30.14 | kube-apiserver | 2026-11-28 | 2 of 2 |  |", again)
        self.assertEqual(len(again.splitlines()), len(page.splitlines()))
        self.assertTrue(again.startswith("# Head\n\n") and again.endswith("\ntail\n"))

    def test_page_of_versions_has_the_table(self):
        page = versions.PAGE.read_text()
        before, rest = page.split(versions.BEGIN)
        table, after = rest.split(versions.END)
        row = [cell.strip() for cell in table.strip().splitlines()[2].split("|")[1:-1]]
        self.assertEqual(versions.with_row(page, row), page)

    def test_every_supported_minor_version_is_tested(self):
        self.assertEqual([release.split(".")[1] for release in versions.RELEASES], [str(minor) for minor in range(30, 38)])


if __name__ == "__main__":
    unittest.main()
