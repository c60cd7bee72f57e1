"""All statistics that a release may name."""

from __future__ import annotations

from dpcurate.queries.features import FeatureMoments, FeatureNorms, Histograms
from dpcurate.queries.numbers import Gradient, GradientNorms, Means, Moments
from dpcurate.queries.pairs import PairStatistic
from dpcurate.queries.tables import Contrasts, Counts, Tables

Statistic = (
    Counts
    | Tables
    | Contrasts
    | Means
    | Moments
    | Gradient
    | GradientNorms
    | Histograms
    | FeatureMoments
    | FeatureNorms
    | PairStatistic
)
