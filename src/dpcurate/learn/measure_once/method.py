"""The recipe: buy once, look, buy where it pays, and search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Cpdag, Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import orient
from dpcurate.graphs.pag_orientation import known_marks
from dpcurate.learn.measure_once.arrows import Interaction, directed, no_interaction
from dpcurate.learn.measure_once.blocks import Columns, one_thread
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released
from dpcurate.learn.measure_once.confidence import Confidence, confidence
from dpcurate.learn.measure_once.constants import (
    ARROW,
    MOST_LEVELS,
    SETS,
    WEAKEST,
    Constants,
    FeatureConstants,
)
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.decide import Decision, decide, evidence_of, skeleton_of
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.feature_evidence import FeatureEvidence
from dpcurate.learn.measure_once.feature_release import Clip, buy_features, norms_cost
from dpcurate.learn.measure_once.fit_check import fit_of, verdict_on_directions
from dpcurate.learn.measure_once.hidden_causes import (
    CAUSES,
    Dependences,
    Found,
    causes,
    dependence_of,
    with_hidden_causes,
)
from dpcurate.learn.measure_once.pair_release import PairDesign, ReleasedPairs, buy_pairs
from dpcurate.learn.measure_once.prune import pruned
from dpcurate.learn.measure_once.release import (
    Purchase,
    Weights,
    buy,
    first_weights,
    noise_to_come,
)
from dpcurate.learn.measure_once.release_plan import CONTRASTS, PLANNED, Known, ReleaseStep, is_loud, run, searched
from dpcurate.learn.measure_once.released import (
    Redundant,
    Releases,
    check_memory,
    copied,
    memory_in_all,
    of_contrasts,
    of_features,
    redundant,
)
from dpcurate.queries import Queryable
from dpcurate.result.fit import DirectionVerdict, FitResult, NoiseLevel
from dpcurate.result.threshold import as_drawn, directed_at
from dpcurate.schema import Ordinal, Schema

MOST_RHO = 1e4
"""More zCDP than this buys nothing: the noise is far below one row."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A decision from released answers."""

    decision: Decision
    families: FamilySearch
    interaction: Interaction


Read = Callable[[Constraints, Constants], _Reading]
"""What released answers say under some constraints, for who believes these constants."""


@dataclass(frozen=True, slots=True)
class _Learnt:
    """A decision, how sure it is, and the releases it rests on: how many answers, what each cost, and why these."""

    reading: _Reading
    confidence: Confidence
    read: Read
    answers: tuple[int, ...]
    costs: tuple[float, ...]
    choice: str
    redundant: Redundant
    noise: NoiseLevel | None
    released: Releases

    @property
    def decision(self) -> Decision:
        return self.confidence.decision

    @property
    def families(self) -> FamilySearch:
        return self.reading.families

    @property
    def notes(self) -> tuple[str, ...]:
        return self.choice, *self.redundant.sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOnce:
    """The default: released once, a second look where it pays, and a search that knows the noise.

    Columns of few levels are measured by contrasts; a table with numbers, ordinals or long lists of levels
    by features of its columns. With `latent` common causes may be hidden, and the result is a PAG. Releases are
    "adaptive", each chosen from the answers to those before, or one that is "planned" from public facts alone.
    """

    constants: Constants = field(default_factory=Constants)
    features: FeatureConstants = field(default_factory=FeatureConstants)
    latent: bool = False
    releases: Literal["adaptive", "planned"] = "adaptive"

    def __post_init__(self) -> None:
        if self.releases not in ("adaptive", "planned"):
            raise QueryError(f"releases are 'adaptive' or 'planned', got {self.releases!r}")

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Learn with all that is left of the budget."""
        names = _names(queryable)
        if knowledge is not None:
            knowledge.check(names)
        constraints = Constraints.of(names, knowledge)
        learn = self._by_levels if _few_levels(queryable.schema) else self._by_features
        learnt = learn(queryable, constraints)
        with one_thread():
            return self._result(names, learnt, constraints, knowledge)

    def _result(
        self, names: tuple[str, ...], learnt: _Learnt, constraints: Constraints, knowledge: Knowledge | None
    ) -> FitResult:
        """What is said of the graph that was learnt."""
        if self.latent:
            return _hidden(names, learnt, self._hidden_reading(names, learnt, knowledge), knowledge)
        decision = learnt.decision
        skeleton = skeleton_of(names, constraints, decision)
        evidence = evidence_of(names, constraints, decision, skeleton, learnt.confidence.linked)
        fit = fit_of(decision, learnt.families)
        verdict = verdict_on_directions(fit, learnt.noise)
        searched = _directions(names, constraints, learnt.confidence.ways, verdict)
        return FitResult(
            drawn(skeleton, searched, knowledge, SETS if verdict.readable else 0.0),
            skeleton,
            linked={frozenset(e.pair): e.value for e in evidence if e.value is not None},
            direction=_directions(names, constraints, _ways_of_copies_open(constraints, learnt), verdict),
            evidence=evidence,
            tests=learnt.answers,
            leaked=learnt.costs,
            notes=learnt.notes,
            noise=learnt.noise,
            repeated=learnt.redundant.repeated,
            released=learnt.released,
            fit=fit,
            directions=verdict,
            causes=_causes(names, decision, learnt.reading, knowledge) if verdict.readable else {},
        )

    def _hidden_reading(self, names: Sequence[str], learnt: _Learnt, knowledge: Knowledge | None) -> _Reading:
        """The answers read again: where a cause is hidden, its effects act together in columns that look as if each
        depended on one alone, and knowledge of arrows says nothing of what is adjacent.
        """
        misfit = self.constants.misfit, self.constants.misfit
        believed = replace(self.constants, misfit_bounds=misfit, max_parents_if_small=self.constants.max_parents)
        return learnt.read(Constraints.of(names, (knowledge or Knowledge()).undirected()), believed)

    def _by_features(self, queryable: Queryable, constraints: Constraints) -> _Learnt:
        """One covariance of features of all columns, and a search."""
        if self.releases == "planned":
            raise QueryError(
                "a single planned release is for tables whose columns all have a few levels without order; numbers, "
                "ordinals and long lists of levels are measured in rounds, each by what the last one has found"
            )
        bought = buy_features(queryable, min(queryable.remaining, MOST_RHO), self.features)
        evidence = FeatureEvidence(bought.released, self.constants.effect_sizes, self.features)

        def read(constraints: Constraints, believed: Constants) -> _Reading:
            constants = replace(believed, most_degree=believed.degree, max_parents_if_small=believed.max_parents)
            families = FamilySearch.of(evidence, constraints, constants)
            return _Reading(decide(families, Random(0)), families, no_interaction)

        with one_thread():
            reading = read(constraints, self.constants)
            sure = confidence(reading.decision, reading.families, no_interaction, Random(0))
        same = redundant(bought.released, queryable.schema.names)
        costs, noise, kept = bought.costs, of_features(bought), bought.answers
        return _Learnt(reading, sure, read, (len(costs),), costs, bought.choice, same, noise, kept)

    def _by_levels(self, queryable: Queryable, constraints: Constraints) -> _Learnt:
        """By contrasts, or around margins."""
        with one_thread():
            return self._by_contrasts_or_margins(queryable, constraints)

    def _by_contrasts_or_margins(self, queryable: Queryable, constraints: Constraints) -> _Learnt:
        """In a wide table margins come first, and say whether pairs are better measured around them."""
        levels = [column.size for column in queryable.schema.columns]
        check_memory(levels, constraints.pairs, memory_in_all())
        weights = first_weights(levels, constraints.pairs, self.constants.skew)
        nothing = Released.nothing(levels)
        if self.releases == "planned":
            return self._by_contrasts(queryable, constraints, weights, nothing, (), PLANNED)
        if len(levels) < self.constants.wide:
            return self._by_contrasts(queryable, constraints, weights, nothing, ())
        budget = min(queryable.remaining, MOST_RHO)
        singles = {columns: weight for columns, weight in weights.items() if len(columns) < 2}
        margins = buy(queryable, singles, self.constants.share_margins * budget)
        released = nothing.merged(margins.answers)
        noise = noise_to_come(released, singles, weights, (budget - margins.cost) / margins.cost)
        design = PairDesign.of(queryable, released)
        if is_loud(released, noise, self.constants) and design.possible(queryable):
            return self._around_margins(queryable, constraints, design, margins)
        return self._by_contrasts(queryable, constraints, weights, released, (margins,))

    def _around_margins(
        self, queryable: Queryable, constraints: Constraints, design: PairDesign, margins: Purchase
    ) -> _Learnt:
        """Pairs around released margins, and a search."""
        budget = min(queryable.remaining, MOST_RHO)
        norms = norms_cost(queryable, design.released.rows, self.constants.share_norms * budget)
        costs = norms, budget - norms
        pairs, clip = buy_pairs(queryable, design, costs, self.constants.clip_quantiles)
        moments = CentralMoments.around(design.released, pairs)

        def read(constraints: Constraints, believed: Constants) -> _Reading:
            # Noise hides the effects that a larger misfit would be judged by.
            least, most = believed.misfit_bounds
            constants = replace(believed, misfit_bounds=(least, min(most, believed.misfit)), log_linear=True)
            evidence, families = searched(moments, constraints, constants)
            return _Reading(decide(families, Random(0)), families, evidence.interactions)

        reading = read(constraints, self.constants)
        sure = confidence(reading.decision, reading.families, reading.interaction, Random(0))
        answers = len(margins.answers), int(norms > 0), len(pairs.observed)
        noise = of_contrasts(design.released, moments)
        spent = margins.cost, *costs
        same = copied(reading.families.constraints.copies, queryable.schema.names)
        kept = ReleasedPairs(design.released, pairs, clip)
        return _Learnt(reading, sure, read, answers, spent, _around_chosen(clip), same, noise, kept)

    def _by_contrasts(
        self,
        queryable: Queryable,
        constraints: Constraints,
        weights: Weights,
        released: Released,
        purchases: tuple[Purchase, ...],
        plan: Sequence[ReleaseStep] = CONTRASTS,
    ) -> _Learnt:
        """Releases by the plan, and a search; the answers to each release choose the next."""
        random = Random(0)  # a fixed stream: a run can be repeated
        start = Known(
            constants=self.constants, constraints=constraints, random=random, pure=queryable.budget.pure,
            weights=weights, released=released, purchases=purchases,
        )  # fmt: skip
        known = run(plan, queryable, start, min(queryable.remaining, MOST_RHO))
        released, purchases = known.released, known.purchases

        def read(constraints: Constraints, believed: Constants) -> _Reading:
            evidence, families = searched(CentralMoments.of(released), constraints, believed)
            decision = decide(families, random, [known.order] if known.order else [])
            if known.order:  # triples were bought; from pairs alone the search has drawn what there is to draw
                fewer = pruned(decision, evidence, constraints)
                decision = directed(fewer, families, evidence.interactions, random)
            return _Reading(decision, families, evidence.interactions)

        reading = read(constraints, self.constants)
        sure = confidence(reading.decision, reading.families, reading.interaction, random)
        answers, costs = (tuple(part) for part in zip(*((len(p.answers), p.cost) for p in purchases), strict=True))
        noise = of_contrasts(released, CentralMoments.of(released))
        same, choice = copied(reading.families.constraints.copies, queryable.schema.names), _contrasts_chosen(purchases)
        return _Learnt(reading, sure, read, answers, costs, choice, same, noise, released)


def _names(queryable: Queryable) -> tuple[str, ...]:
    names = queryable.schema.names
    if len(names) < 2:
        raise QueryError(f"a graph needs at least two columns, the schema has {len(names)}")
    return names


def _hidden(names: Sequence[str], learnt: _Learnt, reading: _Reading, knowledge: Knowledge | None) -> FitResult:
    """The same releases and the same P(edge), read where common causes may be hidden."""
    decision, families = reading.decision, reading.families
    found = with_hidden_causes(names, decision, families, reading.interaction, _dependences(reading), knowledge)
    evidence = evidence_of(names, families.constraints, decision, found.skeleton, learnt.confidence.linked)
    fit = fit_of(decision, families)
    verdict = verdict_on_directions(fit, learnt.noise)
    return FitResult(
        found.pag,
        found.skeleton,
        linked={frozenset(e.pair): e.value for e in evidence if e.value is not None},
        marks=_marks(found, knowledge, verdict),
        evidence=evidence,
        tests=learnt.answers,
        leaked=learnt.costs,
        notes=learnt.notes,
        noise=learnt.noise,
        repeated=learnt.redundant.repeated,
        released=learnt.released,
        fit=fit,
        directions=verdict,
    )


def _causes(
    names: Sequence[str], decision: Decision, reading: _Reading, knowledge: Knowledge | None
) -> dict[tuple[str, str], float]:
    """P(a causes b) of every edge of the decision, if b does not cause a."""
    families, interaction = reading.families, reading.interaction
    found = with_hidden_causes(names, decision, families, interaction, _dependences(reading), knowledge, draws=0)
    known = causes(found)
    edges = [(names[x], names[y]) for y, parents in enumerate(decision.parents) for x in parents]
    return {way: known.get(way, CAUSES["arrow"]) for a, b in edges for way in ((a, b), (b, a))}


def _dependences(reading: _Reading) -> Dependences:
    """What tells whether a set separates two columns: what a misfit may explain is no independence."""
    families, evidence = reading.families, reading.families.evidence
    if not isinstance(evidence, ContrastEvidence):
        clear = dependence_of(families, reading.interaction)
        return Dependences(clear, clear, lambda *_: True)

    clear, weakest = (
        dependence_of(judge, judge.evidence.interactions) for judge in (families.judging(), families.judging(WEAKEST))
    )

    def weak(asked: Sequence[tuple[int, int, Columns]]) -> list[float]:
        """What a regression without all its terms misses would look like a weak effect."""
        whole = [evidence.saturated(*key) for key in asked]
        of_whole = iter(weakest([key for key, all_terms in zip(asked, whole, strict=True) if all_terms]))
        of_others = iter(clear([key for key, all_terms in zip(asked, whole, strict=True) if not all_terms]))
        return [next(of_whole if all_terms else of_others) for all_terms in whole]

    return Dependences(clear, weak, evidence.saturated)


def _directions(
    names: tuple[str, ...], constraints: Constraints, ways: FloatArray, verdict: DirectionVerdict
) -> dict[tuple[str, str], float]:
    """P(a -> b | linked) of every allowed pair; what knowledge decides is sure whatever the verdict."""
    known = constraints.allowed != constraints.allowed.T
    believed = np.where(known, ways, 0.5 + verdict.trust * (ways - 0.5))
    return {(names[a], names[b]): float(believed[a, b]) for a, b in constraints.pairs}


def _marks(
    found: Found, knowledge: Knowledge | None, verdict: DirectionVerdict
) -> dict[tuple[str, str], tuple[float, float]]:
    """P(tail) and P(arrowhead) of every end, nearer to each other where directions cannot be read."""
    known = set() if knowledge is None else {(a, b) for a, b, _ in known_marks(found.skeleton, knowledge)}
    believed = dict(found.marks)
    for end, (tail, head) in found.marks.items():
        if end not in known:
            middle, apart = (tail + head) / 2, verdict.trust * (tail - head) / 2
            believed[end] = middle + apart, middle - apart
    return believed


def _ways_of_copies_open(constraints: Constraints, learnt: _Learnt) -> FloatArray:
    """The same, and a half for two columns that say the same: which of them came first nothing tells."""
    ways = learnt.confidence.ways.copy()
    for copy, first in learnt.families.constraints.copies.items():
        if constraints.allowed[copy, first]:
            ways[copy, first] = ways[first, copy] = 0.5
    return ways


def drawn(
    skeleton: Skeleton, direction: Mapping[tuple[str, str], float], knowledge: Knowledge | None, sets: float
) -> Cpdag:
    """Arrows for which separating sets and P(this way round) speak together: where one errs the other may know."""
    by_sets = as_drawn(orient(skeleton, knowledge))

    def way(a: str, b: str) -> float:
        return sets * by_sets(a, b) + (1 - sets) * direction.get((a, b), 0.5)

    return directed_at(ARROW, skeleton.nodes, skeleton.edges, way, knowledge)


def _few_levels(schema: Schema) -> bool:
    """Whether every column is a short list of levels without order."""
    return all(c.has_levels and not isinstance(c, Ordinal) and c.size <= MOST_LEVELS for c in schema.columns)


def _around_chosen(clip: Clip) -> str:
    return (
        f"released: margins, then all pairs around them; long rows were clipped (to the {clip.quantile:.0%} quantile)"
    )


def _twice(purchases: Sequence[Purchase]) -> bool:
    """Whether pairs were bought twice."""
    return sum(any(len(u) == 2 for u in p.answers) for p in purchases) > 1


def _contrasts_chosen(purchases: Sequence[Purchase]) -> str:
    sets = {u for p in purchases for u in p.answers}
    triples, larger = sum(len(u) == 3 for u in sets), sum(len(u) > 3 for u in sets)
    more = f", then {triples} triples" if triples else ", then pairs again" if _twice(purchases) else ""
    more += f" and {larger} larger sets of families" if larger else ""
    return f"released: contrasts of {sum(len(u) == 2 for u in sets)} pairs{more}"
