"""Gives each test noise of its own, and says at the end which tests did not run, and why.

Where everything has to run (CI), a test that is left out for want of an engine, a browser or a tool is a failure.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any

import pytest

import own_noise
from left_out import MARKERS, deselected, summary

NEEDED = {
    "DPCURATE_REQUIRE_ALL": (
        "test_spark.py",
        "test_database.py",
        "test_lazy.py",
        "test_dask_frames.py",
        "test_page.py",
        "test_newcomer.py",
        "test_nginx.py",
        "test_owner_browser.py",
        "test_studio_in_browser.py",
    ),
    "DPCURATE_REQUIRE_TOOLS": ("tests/tools/",),
}
"""Files that must not be left out, by the variable that says so."""
_left_out: list[tuple[str, str]] = []
_deselected: Counter[str] = Counter()


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Whatever opens a page in a browser is marked so; of `slow(but=[...])` the cases with these ids are quick."""
    meant: set[tuple[str, str]] = set()
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        slow, case = item.get_closest_marker("slow"), getattr(item, "callspec", None)
        if slow and case:
            name, quick = item.nodeid.partition("[")[0], slow.kwargs.get("but", ())
            meant |= {(name, one) for one in quick}
            if case.id in quick:
                item.own_markers.remove(slow)
    cases = {(item.nodeid.partition("[")[0], item.callspec.id) for item in items if hasattr(item, "callspec")}
    if meant - cases and not any("::" in word for word in config.args):
        raise pytest.UsageError(f"slow(but=...) names cases that are not there: {sorted(meant - cases)}")


def pytest_configure() -> None:
    """A slow machine is no reason to fail; where all is to run, examples are the same every time, as the order is."""
    own_noise.install()
    with suppress(ImportError):  # tests/tools has an environment without it
        from hypothesis import HealthCheck, settings

        slow = [HealthCheck.too_slow]
        same = bool(os.environ.get("DPCURATE_REQUIRE_ALL"))
        settings.register_profile("dpcurate", deadline=None, suppress_health_check=slow, derandomize=same)
        settings.load_profile("dpcurate")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: to look through them for garbage took a tenth of the time of a run."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries look at the end whether all of theirs is gone


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with own_noise.noise_of(None if item.get_closest_marker("secure_noise") else item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, object, object]:
    """What several tests share must not depend on which of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    with own_noise.noise_of(f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"):
        return (yield)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    _deselected.update(marker for item in items for marker in MARKERS if item.get_closest_marker(marker))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker of pytest-xdist collects all tests and leaves out the same ones: one of them is asked."""
    if not _deselected:
        _deselected.update(getattr(node, "workeroutput", {}).get("deselected", {}))


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
    if hasattr(session.config, "workerinput"):
        session.config.workeroutput["deselected"] = dict(_deselected)
        return
    needed = [part for setting, parts in NEEDED.items() if os.environ.get(setting) for part in parts]
    wrong = [name for name, _ in _left_out if any(part in name for part in needed)]
    if wrong:
        print(f"\nleft out, though all of it is to run here: {', '.join(sorted(set(wrong)))}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = [*summary(_left_out), *deselected(_deselected)]
    if lines:
        terminalreporter.section("left out")
        for line in lines:
            terminalreporter.write_line(line)
    if config.pluginmanager.hasplugin("randomly"):
        seed = config.getoption("randomly_seed")
        terminalreporter.write_line(f"The order was random; this one again: --randomly-seed={seed}")
