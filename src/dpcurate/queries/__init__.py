"""Every query: what may be asked of a curator, and what comes back.

A query names a statistic and a release. It is a frozen value of text, numbers, tuples and other
queries, each of exactly the type that stands here (_validation.py), so nothing of the analyst's is called
inside the session. That holds for queries that were made by these classes in the session's own process.
Send them from one process to another as data (`encoding.encode_queries`, `decode_queries`), never as
pickles: a pickle runs its sender's code and passes by every check made here.
"""

from dpcurate.queries.answer import Answer, Estimate, Estimates
from dpcurate.queries.query import (
    AboveThreshold,
    Choose,
    Exact,
    Gate,
    Gaussian,
    GaussianShare,
    Laplace,
    Noise,
    Quantile,
    Query,
    Release,
    Sample,
    SampleGate,
    Score,
    T,
    T_co,
    ThresholdGate,
)
from dpcurate.queries.queryable import Offering, Queryable
from dpcurate.queries.statistics import (
    BRANCHES,
    CELLS,
    DEEPEST,
    FEATURE_STEPS,
    LARGEST_FEATURE,
    MOST_CELLS,
    MOST_FEATURES,
    NO_ROWS,
    Contrasts,
    Counts,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gradient,
    GradientNorms,
    Histograms,
    KendallP,
    Means,
    Moments,
    PairStatistic,
    Statistic,
    Tables,
    Tau,
    places,
)

__all__ = [
    "BRANCHES", "CELLS", "DEEPEST", "FEATURE_STEPS", "LARGEST_FEATURE", "MOST_CELLS", "MOST_FEATURES", "NO_ROWS",
    "AboveThreshold", "Answer", "Choose", "Contrasts", "Counts", "Estimate", "Estimates", "Exact", "FeatureMap",
    "FeatureMoments", "FeatureNorms", "Gate", "Gaussian", "GaussianShare", "Gradient", "GradientNorms", "Histograms",
    "KendallP", "Laplace", "Means", "Moments", "Noise", "Offering", "PairStatistic", "Quantile", "Query", "Queryable",
    "Release", "Sample", "SampleGate", "Score", "Statistic", "T", "T_co", "Tables", "Tau", "ThresholdGate", "places",
]  # fmt: skip
