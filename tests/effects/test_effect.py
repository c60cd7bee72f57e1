"""An effect reads as a sentence, and its interval, sign and strength follow from its numbers."""

from dataclasses import replace

import numpy as np
import pytest

from dpcurate.effects import Effect, EffectTable
from dpcurate.effects.effect import covariance_of, mean_table
from dpcurate.effects.in_graph import FoundEffects
from dpcurate.errors import QueryError

YES_NO = ("yes", "no")


def table(yes: float, no: float, error: float = 0.01) -> EffectTable:
    values = np.array([[yes, 1 - yes], [no, 1 - no]])
    return EffectTable(YES_NO, YES_NO, values, np.array([np.eye(2) * error**2 / 2] * 2))


def test_an_effect_of_levels_is_the_difference_of_two_rows() -> None:
    effect = Effect.of_levels("smoke", "lung", table(0.22, 0.1), adjusted_for=["age"])
    assert effect.estimate == pytest.approx(0.12)
    assert (effect.to, effect.instead_of, effect.level) == ("yes", "no", "yes")
    assert (effect.low, effect.high) == pytest.approx((0.12 - 0.0196, 0.12 + 0.0196), abs=1e-5)
    assert str(effect) == (
        "smoke -> lung: yes instead of no raises P(lung = yes) by 0.12 (0.1 to 0.14), adjusted for age"
    )
    assert effect.sign == 1
    assert effect.strength == pytest.approx(0.12)


def test_other_levels_can_be_asked_for_and_turn_the_sign() -> None:
    effect = Effect.of_levels("smoke", "lung", table(0.22, 0.1), to="no", level="yes")
    assert effect.instead_of == "yes"
    assert effect.estimate == pytest.approx(-0.12)
    assert "no instead of yes lowers P(lung = yes) by 0.12" in str(effect)
    with pytest.raises(QueryError, match="the cause has no level 'maybe'"):
        Effect.of_levels("smoke", "lung", table(0.22, 0.1), to="maybe")


def test_errors_of_two_rows_that_move_together_cancel() -> None:
    together = EffectTable(("a", "b"), ("x", "y"), np.full((2, 2), 0.5), np.ones((2, 2, 2)) * 0.01)
    assert together.difference("a", "b", "x") == (0.0, 0.0)


def test_an_interval_with_zero_in_it_leaves_the_sign_open() -> None:
    effect = Effect.of_levels("smoke", "lung", table(0.105, 0.1))
    assert effect.sign is None
    assert str(effect).endswith("sign uncertain")


def test_numbers_change_by_a_unit_and_means_by_a_level() -> None:
    slope = Effect.per_unit("age", "pressure", 0.42, 0.01, spread=0.6)
    assert str(slope) == "age -> pressure: one more unit raises the mean of pressure by 0.42 (0.4 to 0.44)"
    assert slope.strength == pytest.approx(0.7)
    means = mean_table(["f", "m"], np.array([120.0, 123.0]), np.eye(2) * 0.02)
    effect = Effect.of_levels("sex", "pressure", means, spread=6.0)
    assert str(effect) == "sex -> pressure: m instead of f raises the mean of pressure by 3 (2.61 to 3.39)"
    assert effect.strength == pytest.approx(0.5)
    assert effect.level is None


def test_several_effects_span_an_interval_and_one_is_itself() -> None:
    one, two = (Effect.of_levels("a", "b", table(yes, 0.1), adjusted_for=[z]) for yes, z in ((0.2, "c"), (0.3, "d")))
    assert Effect.several([one]) is one
    both = Effect.several([one, two])
    assert (both.low, both.high) == (one.low, two.high)
    assert both.estimate is None
    assert both.state == "several"
    assert "changes P(b = yes) by 0.08 to 0.22, one of 2 effects, because the graph leaves open what causes a" in str(
        both
    )
    assert Effect.several([one, one]) is one
    maybe = Effect.several([one, Effect.none("a", "b")])
    assert (maybe.low, maybe.high) == (0.0, one.high)
    assert maybe.supposed is one
    assert str(maybe) == f"{one}; or no effect, if a does not cause b"
    unknown = Effect.unknown("a", "b", "not determined", "ask for more")
    open_one = Effect.several([one, unknown])
    assert open_one.low is None
    assert "of which 1 could be estimated" in str(open_one)


def test_an_effect_without_an_estimate_says_why() -> None:
    effect = Effect.unknown("a", "b", "not identified", "a common cause may be hidden")
    assert str(effect) == "a -> b: not identified: a common cause may be hidden"
    none = Effect.none("a", "b")
    assert (none.estimate, none.sign) == (0.0, 0)
    assert str(none) == "a -> b: no effect: no directed path leads from a to b"


def test_why_effects_are_not_known_is_said_once() -> None:
    one, two = (Effect.unknown("a", x, "not determined", "ask for more", adjusted_for=[x]) for x in "bc")
    assert Effect.several([one, replace(one, adjusted_for=("d",))]) is one
    maybe = Effect.several([two, Effect.none("a", "c")])
    assert maybe.brief == "not determined; or no effect, if a does not cause c"
    sure = Effect.of_levels("a", "d", table(0.22, 0.1))
    lines = str(FoundEffects([one, maybe, sure])).splitlines()
    assert str(FoundEffects([one, two])) == "none of 2 effects along edges is known; not determined: ask for more"
    assert lines == ["a -> b: not determined", f"a -> c: {maybe.brief}", str(sure), "not determined: ask for more"]


def test_no_probability_is_below_0_or_above_1() -> None:
    effect = Effect.of_levels("a", "b", table(1.05, -0.1, 0.5))
    assert (effect.estimate, effect.high) == (1.0, 1.0)
    assert effect.low == pytest.approx(1.15 - 0.98, abs=0.001)
    assert effect.table is not None
    assert effect.table.values.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    beyond = Effect.of_levels("a", "b", table(1.05, -0.1, 0.001))
    assert (beyond.low, beyond.estimate, beyond.high) == (1.0, 1.0, 1.0)


def test_a_table_prints_its_errors_and_refuses_other_shapes() -> None:
    assert "0.22 ± 0.007" in str(table(0.22, 0.1))
    with pytest.raises(QueryError, match="need values of shape"):
        EffectTable(("a", "b"), ("x",), np.zeros((1, 1)), np.zeros((1, 1, 1)))


def test_covariances_come_from_draws() -> None:
    draws = np.random.default_rng(0).normal(size=(4000, 2, 3)) * np.array([1.0, 2.0])[:, None]
    assert covariance_of(draws)[1] == pytest.approx(np.diag([1.0, 4.0]), abs=0.3)
