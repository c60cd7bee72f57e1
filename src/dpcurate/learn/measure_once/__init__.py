"""The default method: release a few rich statistics, look at them, spend the rest where they leave doubt, and search.

docs/methods.md has the formulas. Read the modules in this order:

    method              the recipe, from a queryable to a result        constants   every number that matters
    release_plan        tables of levels: releases as a plan of steps   release     weights and sets of each step
    pair_release        all pairs around released margins               released    what a run holds in the end
    column_features     features of numbers, ordinals, long lists       feature_release   their one covariance
    central_moments     answers as moments, denoised                    blocks      coordinates and linear algebra
    evidence            what the search asks: one protocol
    contrast_evidence   its answer from contrasts, with bayes_factor, log_linear and interactions
    feature_evidence    its answer from features
    regression, designs how many regressions are computed at once
    family_search       parents of a column                             order_search   orders of the columns
    decide, prune       edges                                           arrows         colliders and directions
    confidence          P(edge) and P(direction)                        constraints    background knowledge
    fit_check           whether the graph explains the answers          hidden_causes  the PAG, and what an arrow says

`tests/learn/measure_once/test_reference_evidence.py` has the evidence of one pair in plain NumPy.
"""

from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.evidence import DependenceEvidence
from dpcurate.learn.measure_once.method import MeasureOnce

__all__ = ["Constants", "DependenceEvidence", "MeasureOnce"]
