"""The errors of a fitted family: what the noise of the count and the shares of parents add to them."""

from __future__ import annotations

import numpy as np
import pytest

from dpcurate.learn.measure_once.blocks import helmert
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.models.family import Shares, fit_family

ROWS, DRAWS = 1e8, 400
NORMALS = np.random.default_rng(5).normal(size=(DRAWS, 8))


def released(joint: np.ndarray, *, noise: float = 1 / ROWS, count_noise: float = 0.0) -> Released:
    """Contrasts of one or two binary columns of this distribution, with the variances of noise of these parts of rows.

    The values themselves have none.
    """
    basis = helmert(2)[:, 0]
    sums = {(): np.array(ROWS)}
    for axis in range(joint.ndim):
        margin = joint.sum(axis=tuple(a for a in range(joint.ndim) if a != axis))
        sums[axis,] = ROWS * np.array([basis @ margin])
    if joint.ndim == 2:
        sums[0, 1] = ROWS * np.array([[basis @ joint @ basis]])
    variances = dict.fromkeys(sums, (noise * ROWS) ** 2) | {(): (count_noise * ROWS) ** 2}
    return Released((2,) * joint.ndim, sums, variances)


def test_the_noise_of_the_count_moves_every_share_away_from_even():
    """A count too large by a part e makes 0.9 look like 0.5 + 0.4 / (1 + e)."""
    whole = Shares(np.ones(1), np.zeros((DRAWS, 1)))
    sure = fit_family(released(np.array([0.9, 0.1])), (), 0, whole, NORMALS)
    open_ = fit_family(released(np.array([0.9, 0.1]), count_noise=0.02), (), 0, whole, NORMALS)
    assert sure.table[0] == pytest.approx([0.9, 0.1], abs=1e-3)
    assert sure.errors.max() < 1e-3
    assert open_.errors[0, 0] == pytest.approx(0.4 * 0.02, rel=0.15)


def test_a_draw_at_other_shares_is_the_table_that_would_be_fitted_there():
    answers = released(np.array([[0.2, 0.3], [0.4, 0.1]]), noise=1e-3)  # noise rules: it does not know of shares
    shares, moved = np.array([0.5, 0.5]), np.array([0.51, 0.49])
    apart = np.tile(moved - shares, (DRAWS, 1))
    drawn = fit_family(answers, (0,), 1, Shares(shares, apart), np.zeros_like(NORMALS)).draws[0]
    there = fit_family(answers, (0,), 1, Shares(moved, np.zeros((DRAWS, 2))), np.zeros_like(NORMALS)).table
    still = fit_family(answers, (0,), 1, Shares(shares, np.zeros((DRAWS, 2))), np.zeros_like(NORMALS)).table
    assert np.abs(there - still).max() > 1e-3
    assert np.abs(drawn - there).max() < 0.1 * np.abs(there - still).max()
