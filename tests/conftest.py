"""What was left out is said; where it has to run (CI), leaving out an engine, the browser or a tool is a failure."""

from __future__ import annotations

import os

import pytest

from left_out import summary

NEEDED = {
    "DPCURATE_REQUIRE_ALL": (
        "test_spark.py",
        "test_database.py",
        "test_lazy.py",
        "test_partitions.py",
        "test_page.py",
        "test_newcomer.py",
    ),
    "DPCURATE_REQUIRE_TOOLS": ("tests/tools/",),
}
"""Files that must not be left out, by the variable that says so."""
_left_out: list[tuple[str, str]] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note(report)


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _left_out.append((report.nodeid.partition("::")[0], reason))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    needed = [part for setting, parts in NEEDED.items() if os.environ.get(setting) for part in parts]
    wrong = [name for name, _ in _left_out if any(part in name for part in needed)]
    if wrong and not hasattr(session.config, "workerinput"):
        print(f"\nleft out, though all of it is to run here: {', '.join(sorted(set(wrong)))}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = summary(_left_out)
    if lines:
        terminalreporter.section("left out")
        for line in lines:
            terminalreporter.write_line(line)
