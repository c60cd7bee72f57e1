"""What a run has released, kept with its result: effects and models are computed from it, at no cost."""

from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.learn.measure_once.moments import Released
from dpcurate.learn.measure_once.pair_release import ReleasedPairs

Releases = Released | ReleasedPairs | ReleasedFeatures
"""By contrasts of levels, by pairs around margins, or by features of any column."""
