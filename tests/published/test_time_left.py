"""The estimate of the time left follows what cells took, also where a method is slower than stated."""

from __future__ import annotations

import pytest

from dpcurate.published.reproduction.grid import GridCell
from dpcurate.published.reproduction.store import TimeLeft


def cells(method, runs, network="cancer"):
    return [GridCell("private", network, method, "printed", float(t), runs) for t in range(1, 5)]


FAST, SLOW = cells("curate-pc", 10), cells("svt-pc", 10)
COST = FAST[0].cost


def test_nothing_is_said_before_anything_is_known():
    assert TimeLeft([FAST], 1)({}, 100.0) is None


def test_cells_that_take_what_they_state_leave_what_they_state():
    left = TimeLeft([FAST, SLOW], 1)
    left({}, 0.0)
    assert left({FAST[0]: COST}, COST) == pytest.approx(7 * COST)
    assert left(dict(zip(FAST, (COST * i for i in range(1, 5)), strict=True)), 4 * COST) == pytest.approx(4 * COST)


def test_two_workers_share_the_work_but_not_a_group():
    left = TimeLeft([FAST, SLOW, cells("priv-pc", 10)], 2)
    left({}, 0.0)
    assert left({FAST[0]: COST, SLOW[0]: COST}, COST) == pytest.approx(5 * COST)
    only = TimeLeft([FAST], 2)
    only({}, 0.0)
    assert only({FAST[0]: COST}, COST) == pytest.approx(3 * COST)


def test_a_method_that_is_slower_than_stated_is_seen_while_its_first_cell_runs():
    """The estimate does not stand still: it grows with a cell that does not end, and then falls."""
    left = TimeLeft([FAST, SLOW], 1)
    left({}, 0.0)
    ended = dict(zip(FAST, (COST * i for i in range(1, 5)), strict=True))
    start = 4 * COST
    assert left(ended, start) == pytest.approx(4 * COST)
    waiting = [left(ended, start + seconds * COST) for seconds in (2, 5, 10)]
    assert waiting == pytest.approx([2 * 4 * COST - 2 * COST, 5 * 4 * COST - 5 * COST, 10 * 4 * COST - 10 * COST])
    ended[SLOW[0]] = start + 10 * COST
    assert left(ended, start + 10 * COST) == pytest.approx(30 * COST)
    ended[SLOW[1]] = start + 20 * COST
    assert left(ended, start + 25 * COST) == pytest.approx(15 * COST)


def test_what_an_earlier_session_did_says_nothing_about_speed():
    left = TimeLeft([FAST[2:]], 1)
    assert left(dict.fromkeys(FAST[:2], 0.0), 1000.0) is None
