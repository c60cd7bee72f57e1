"""Measure once: release a few rich statistics, and let all the rest be free post-processing.

First the row count, every margin and the interaction contrast of every allowed pair, in one
release. Then, by the released noise level, more of the same or the three-way contrasts that decide
between the graphs still possible. Everything after that is search.

    release             what is bought          moments              what was released, frozen
    evidence            what the search sees    contrast_evidence    how contrasts answer it
    family_search       parents of a column     order_search         orders of the columns
    decide              edges and P(edge)       interactions         how triples show colliders
    arrows              directions of edges     method               the recipe
"""

from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.evidence import DependenceEvidence
from dpcurate.learn.measure_once.method import MeasureOnce

__all__ = ["Constants", "DependenceEvidence", "MeasureOnce"]
