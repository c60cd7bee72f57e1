"""Sites and the coordinator of a study by files are killed at random instants: nothing is lost or paid twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.study_kills import kills


@pytest.mark.slow
def test_kills_lose_nothing_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    told = kills(15, 7, tmp_path)
    assert told.wrong == []
    assert told.killed.total() == 15
    assert told.killed["answer"]
