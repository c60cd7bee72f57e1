"""How well the graph that was found explains the released answers."""

from __future__ import annotations

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.arrows import adjacency
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.evidence import DependenceEvidence
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.hidden import left_over
from dpcurate.result.fit import GoodnessOfFit

WEAK = 0.02
"""A size of effects that no search looks for: hidden causes of many columns leave it behind."""
SHARES = np.linspace(0.0, 0.99, 100)
MOST_LOG_ODDS = 30.0
"""No pair counts for more."""


def fit_of(decision: Decision, families: FamilySearch) -> GoodnessOfFit:
    """Count the pairs left apart that are likelier dependent than independent given the parents of the later column.

    The search forgives small dependences, because a regression may miss something. Here they count: many of them mean
    that the table has causes that the graph lacks.
    """
    joined = adjacency(decision, families.constraints)
    apart = np.triu(~joined, 1)
    clear = _left(decision, families, families.evidence.without_misfit())[apart]
    weak = _left(decision, families, families.evidence.of_size(WEAK))[apart]
    share, log_ratio = likeliest_share(weak[np.isfinite(weak)])
    return GoodnessOfFit(
        columns=families.columns,
        edges=int(np.triu(joined).sum()),
        apart=int(np.isfinite(clear).sum()),
        dependent=int((clear > 0).sum()),
        share=share,
        log_ratio=log_ratio,
    )


def _left(decision: Decision, families: FamilySearch, evidence: DependenceEvidence) -> FloatArray:
    """The evidence that each two columns depend on each other given the parents of the later one."""
    strict = families.judging(evidence)

    def dependence(a: int, b: int, given: Columns) -> float:
        return strict.dependence(b, a, given)

    return left_over(decision, strict, dependence)


def likeliest_share(evidence: FloatArray) -> tuple[float, float]:
    """The share of dependent pairs with the highest likelihood, and the log of its ratio to that of no such pair.

    Evidence is a log Bayes factor, so a pair is 1 - share + share * exp(evidence) times as likely as if none depended.
    """
    factors = np.expm1(np.clip(evidence, -MOST_LOG_ODDS, MOST_LOG_ODDS))
    likelihoods = np.log1p(np.outer(SHARES, factors)).sum(axis=1)
    best = int(np.argmax(likelihoods))
    return float(SHARES[best]), float(likelihoods[best])
