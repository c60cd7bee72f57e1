"""What was left out is said; where everything has to run (CI), leaving out an engine or the browser is a failure."""

from __future__ import annotations

import os

import pytest

NEEDED = ("test_spark.py", "test_database.py", "test_lazy.py", "test_partitions.py", "test_page.py")
_left_out: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        _left_out.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _left_out.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    wrong = [name for name in _left_out if any(part in name for part in NEEDED)]
    if os.environ.get("DPCURATE_REQUIRE_ALL") and wrong and not hasattr(session.config, "workerinput"):
        print(f"\nleft out, though all of it is to run here: {', '.join(sorted(set(wrong)))}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
