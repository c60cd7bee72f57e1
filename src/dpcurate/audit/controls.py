"""Negative controls: published mechanisms that cost more than is claimed, each with the event that shows it.

An audit that accuses none of these would be worth nothing. Every event was fixed beforehand, from
the papers or from a calculation, and speaks for the second table. References are in docs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.accounting import Budget, gaussian_multiplier
from dpcurate.audit import pairs
from dpcurate.audit.pairs import Pair
from dpcurate.audit.targets import Control, Hits, pieces
from dpcurate.audit.transcript import Observer, Tally, Truth, laplace_below
from dpcurate.errors import QueryError
from dpcurate.learn.methods import Method
from dpcurate.learn.score.objectives import ReleasedMoments
from dpcurate.private.replay import randomness, uniforms
from dpcurate.published import METHODS, CurateReading, PublishedCuratePC, PublishedFlips, PublishedKendallP
from dpcurate.published.draws import pick
from dpcurate.published.gradients import LENGTH, PublishedGradients, stated_sensitivity
from dpcurate.published.schedules import Spending
from dpcurate.queries import Laplace, Moments, Release, Statistic

BATCH = 1 << 19


def laplace(u: FloatArray, scale: float) -> FloatArray:
    """Laplace noise by inversion in floating point, as published programs draw it."""
    v = u - 0.5
    return np.asarray(-scale * np.copysign(np.log(np.maximum(1 - 2 * np.abs(v), 1e-300)), v))


def _batched(draws: int, occurs: Callable[[FloatArray, int], BoolArray]) -> Callable[[int, int], Hits]:
    """Count an event of `draws` uniform numbers a run on both tables."""

    def count(runs: int, seed: int, which: int) -> int:
        sizes = [min(BATCH, runs - start) for start in range(0, runs, BATCH)]
        each = (uniforms(hash_of(seed, which, k), (draws, size)) for k, size in enumerate(sizes))
        return sum(int(occurs(u, which).sum()) for u in each)

    return _on_both(count)


def _on_both(count: Callable[[int, int, int], int]) -> Callable[[int, int], Hits]:
    """From a count of runs, seed and table to the counts on both tables."""
    return lambda runs, seed: (count(runs, seed, 0), count(runs, seed, 1))


def hash_of(seed: int, which: int, batch: int) -> int:
    """A seed for each table and batch."""
    return (seed * 2 + which) * 1_000_003 + batch


# --- published p-values --------------------------------------------------------------------------------


def p_value(name: str, method: str, statistic: PublishedKendallP, pair: Pair, epsilon: float = 1.0) -> Control:
    """A published p-value with Laplace noise for its stated sensitivity, through a real session."""
    tables = pair.opened()
    release = Release(statistic, Laplace(epsilon=epsilon))
    first, second = (float(a) for a in Truth(tables).both(statistic))

    def count(runs: int, seed: int, which: int) -> int:
        noise = randomness(hash_of(seed, which, 0))
        batches = (tables.unlimited(which, noise).ask_all([release] * some) for some in pieces(runs))
        return sum(bool((float(a) - second) * np.sign(second - first) >= 0) for batch in batches for a in batch)

    event = f"p beyond its value on the second table ({statistic.bound}'s sensitivity)"
    return Control(name, method, pair.name, event, epsilon, 20_000, _on_both(count))


def free_answers(total: float = 10.0) -> Control:
    """CURATE's code: answers below T(1 - beta1) are released and cost nothing. The p-value moves within its bound."""
    pair = pairs.dependent()
    tables = pair.opened()
    truth = Truth(tables)
    method = PublishedCuratePC(total=total, reading=CurateReading.script())
    budget = Budget.unlimited()

    def count(runs: int, seed: int, which: int) -> int:
        noise, hits = randomness(hash_of(seed, which, 0)), 0
        for _ in range(runs):
            tally = Tally(truth)
            learned = method.fit(Observer(tables.session(which, budget, noise), tally))
            hits += learned.claimed == 0 and tally.total > 0
        return hits

    event = "every answer below T(1 - beta1), so nothing is charged, and nearer to the second table's"
    return Control("CURATE's free answers", "curate-pc", pair.name, event, 0.0, 800, _on_both(count))


def flips(epsilon: float = 1.0) -> Control:
    """EM-PC's utility (35, then 23) in the exponential mechanism, beside a candidate of utility 29."""
    records = [(0, 0)] * 2 + [(0, 1)] * 50 + [(1, 1)] * 25
    pair = pairs.add(pairs.levels(2, 2), records, (0, 0), "[[2, 50], [0, 25]]; one row (0, 0) more")
    tables = pair.opened()
    utilities = [float(a) for a in Truth(tables).both(PublishedFlips("a", "b"))]

    def count(runs: int, seed: int, which: int) -> int:
        session = tables.unlimited(which, randomness(hash_of(seed, which, 0)))
        return sum(pick(session, [utilities[which], 29.0], epsilon) == 1 for _ in range(runs))

    event = "the other candidate is chosen"
    return Control("EM-PC's utility", "em-pc", pair.name, event, epsilon, 4_000, _on_both(count))


# --- sparse vector techniques ----------------------------------------------------------------------------


def gaussian_threshold(epsilon: float = 4.0, questions: int = 12) -> Control:
    """SVT-PC: a threshold re-drawn with a Gaussian of scale 2D/eps, answers with Laplace noise of scale 8D/eps.

    Twelve values half a threshold's deviation above it, then another one; D = 1. Given the threshold,
    twelve noes have the probability F^12, so one uniform number decides them.
    """
    from scipy.special import ndtri

    s, b = 2 / epsilon, 8 / epsilon

    def occurs(u: FloatArray, which: int) -> BoolArray:
        threshold = s * ndtri(u[0])
        low, last = 0.5 * s + (1 - which), 0.5 * s + which
        noes = u[1] < laplace_below((threshold - low) / b) ** questions
        return np.asarray(noes & (u[2] >= laplace_below((threshold - last) / b)))

    pair = "twelve p-values D lower and a thirteenth D higher on the second table (D: the stated sensitivity)"
    return Control("SVT-PC's re-drawn Gaussian threshold", "svt-pc", pair, "twelve noes, then yes", epsilon, 10_000_000,
                   _batched(3, occurs))  # fmt: skip


def _svt(name: str, threshold: float, answers: float, noes: int, yeses: int, runs: int) -> Control:
    """Noes for queries that are 1 on the first table and 0 on the second, then yeses for 0 and 1; epsilon = 1."""

    def occurs(u: FloatArray, which: int) -> BoolArray:
        t = laplace(u[0], threshold)
        values = np.concatenate([np.full(noes, 1.0 - which), np.full(yeses, float(which))])[:, None]
        above = values + (laplace(u[1:], answers) if answers else 0.0) >= t
        return np.asarray((~above[:noes]).all(axis=0) & above[noes:].all(axis=0))

    pair = f"{noes} queries of 1, {yeses} of 0; on the second table {noes} of 0, {yeses} of 1"
    return Control(name, "svt", pair, f"{noes} noes, then {yeses} yeses", 1.0, runs, _batched(1 + noes + yeses, occurs))


def roth(noes: int = 5) -> Control:
    """Algorithm 3 of Lyu, Su, Li: the noised value itself is given out instead of a yes."""

    def occurs(u: FloatArray, which: int) -> BoolArray:
        t = laplace(u[0], 2.0)
        below = (1.0 - which + laplace(u[1:-1], 2.0) < t).all(axis=0)
        last = laplace(u[-1], 2.0)
        return np.asarray(below & (last >= t) & (last <= 0))

    pair = f"{noes} queries of 1 and one of 0; on the second table {noes} of 0 and one of 0"
    event = f"{noes} noes, then a value of at most 0"
    return Control("SVT, Lyu-Su-Li Algorithm 3", "svt", pair, event, 1.0, 1_000_000, _batched(noes + 2, occurs))


def lee_clifton() -> Control:
    """Algorithm 4: noise 4/(3 eps) on answers, whatever the number of yeses (here 4)."""
    return _svt("SVT, Lyu-Su-Li Algorithm 4", 4.0, 4 / 3, 4, 4, 1_000_000)


def stoddard() -> Control:
    """Algorithm 5: no noise on answers."""
    return _svt("SVT, Lyu-Su-Li Algorithm 5", 2.0, 0.0, 1, 1, 20_000)


def chen() -> Control:
    """Algorithm 6: noise 2/eps on answers, and no limit on the yeses (here 6)."""
    return _svt("SVT, Lyu-Su-Li Algorithm 6", 2.0, 2.0, 6, 6, 4_000_000)


# --- gradients, samplers -----------------------------------------------------------------------------------


def aggregate_clip(epsilon: float = 1.0, delta: float = 1e-4, rows: int = 1_000) -> Control:
    """NOLEAKS: the first gradient, averaged, clipped, with noise for a sensitivity of 4 sqrt(d (d - 1)) / n."""
    pair = pairs.many(pairs.ADD, rows)
    names, columns = pair.schema.names, pair.schema.columns
    spreads = [ReleasedMoments.of(a, columns) for a in Truth(pair.opened()).both(Moments(names))]
    sigma = stated_sensitivity(len(names), rows) * gaussian_multiplier(epsilon=epsilon, delta=delta)
    scale = (LENGTH / 2) ** 2  # moments come on [-1, 1]
    middle = -(spreads[0].covariance + spreads[1].covariance)[0, 1] * scale  # sum of both entries

    def count(runs: int, seed: int, which: int) -> int:
        draw = randomness(hash_of(seed, which, 0)).uniform
        source = PublishedGradients(spreads[which].valid() * scale, Spending((epsilon,)), lambda _: sigma, draw)
        gradients = (source(np.zeros((2, 2)))[1] for _ in range(runs))
        return sum(bool(g[0, 1] + g[1, 0] < middle) for g in gradients)

    return Control("NOLEAKS' aggregate clip", "noleaks", pair.name, "the gradient's sum is below the middle of both",
                   epsilon, 4_000, _on_both(count), delta)  # fmt: skip


def float_laplace(scale: float = 1.0) -> Control:
    """A count of 0 or 1 with Laplace noise by inversion in floating point (Mironov 2012)."""

    def occurs(u: FloatArray, which: int) -> BoolArray:
        released = which + laplace(u[0], scale)
        return np.asarray(~reachable(released, 0.0, scale))

    return Control("Laplace noise in floating point", "samplers", "a count of 0; a count of 1",
                   "a value that no draw takes 0 to", 1 / scale, 100_000, _batched(1, occurs))  # fmt: skip


def reachable(released: FloatArray, value: float, scale: float, around: int = 12) -> BoolArray:
    """Whether some uniform number in steps of 2^-53 turns `value` into exactly the released one."""
    noise = released - value
    share = -0.5 * np.expm1(-np.abs(noise) / scale)
    nearest = np.rint((0.5 + np.copysign(share, -noise)) * 2.0**53)
    found = np.zeros(released.shape, dtype=bool)
    for step in range(-around, around + 1):
        found |= value + laplace((nearest + step) / 2.0**53, scale) == released
    return found


def all_controls() -> tuple[Control, ...]:
    """Everything that an audit must accuse."""
    one = PublishedKendallP
    return (
        p_value("CURATE's sensitivity, as coded", "curate-pc", one("a", "b", bound="curate-code"),
                pairs.unconditioned()),
        p_value("CURATE's sensitivity, as printed", "curate-pc", one("a", "b", bound="curate-printed"),
                pairs.unconditioned()),
        p_value("CURATE's dropped strata", "curate-pc", one("a", "b", ("c",), bound="curate-code"),
                pairs.dropped_stratum()),
        free_answers(),
        p_value("Priv-PC's dropped strata", "priv-pc", one("a", "b", ("c",), bound="priv-pc"), pairs.dropped_stratum()),
        gaussian_threshold(),
        flips(),
        aggregate_clip(),
        roth(),
        lee_clifton(),
        stoddard(),
        chen(),
        float_laplace(),
    )  # fmt: skip


def is_published(method: Method) -> bool:
    """Whether a recipe is a paper's and states no cost that is proved."""
    return isinstance(method, tuple(type(entry.recipe) for entry in METHODS.values()))


def published_pair(statistic: Statistic) -> Pair | None:
    """The built-in pair of tables for a published statistic."""
    if not isinstance(statistic, PublishedKendallP):
        return None
    return pairs.dropped_stratum() if statistic.given else pairs.unconditioned()


def published(method: str) -> tuple[Control, ...]:
    """The controls of one published method."""
    found = tuple(c for c in all_controls() if c.method == method)
    if not found:
        known = sorted({c.method for c in all_controls()})
        raise QueryError(f"no published parts of {method!r} are audited; known are {', '.join(known)}")
    return found
