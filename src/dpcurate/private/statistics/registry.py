"""The registry of statistics: from a query to its transformation, and how far one unit of privacy can move it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpcurate import queries
from dpcurate.errors import DomainTooLarge, QueryError
from dpcurate.private.mechanisms import Sensitivity
from dpcurate.private.row_sums import CountRows, RowSum
from dpcurate.private.statistics.feature_sums import (
    FeatureMomentsTransformation,
    FeatureNormsTransformation,
    HistogramsTransformation,
)
from dpcurate.private.statistics.kendall import KendallPTransformation, PairTransformation, TauTransformation
from dpcurate.private.statistics.levels import ContrastsTransformation, CountsTransformation, TablesTransformation
from dpcurate.private.statistics.numbers import (
    GradientNormsTransformation,
    GradientTransformation,
    MeansTransformation,
    MomentsTransformation,
)
from dpcurate.private.statistics.transformation import Transformation
from dpcurate.queries import MOST_CELLS, PairStatistic, Statistic, Tables
from dpcurate.schema import Neighbours, Schema

MOST_TOGETHER = 50_000_000
"""Cells of all tables of one query: 400 MB of integers."""

Maker = Callable[[Any, Schema], Transformation]

PROVED: Mapping[type, Maker] = {
    queries.Counts: CountsTransformation,
    queries.Tables: TablesTransformation,
    queries.Contrasts: ContrastsTransformation,
    queries.Means: MeansTransformation,
    queries.Moments: MomentsTransformation,
    queries.Gradient: GradientTransformation,
    queries.GradientNorms: GradientNormsTransformation,
    queries.Histograms: HistogramsTransformation,
    queries.FeatureMoments: FeatureMomentsTransformation,
    queries.FeatureNorms: FeatureNormsTransformation,
    queries.Tau: TauTransformation,
    queries.KendallP: KendallPTransformation,
}
"""The registry of statistics: every kind of query that has a proved sensitivity."""
_UNPROVED: dict[type, Maker] = {}


def register_unproved(query: type[PairStatistic], maker: type[PairTransformation]) -> None:
    """Let sessions opened with allow_unproved=True answer a query; any other session refuses it.

    Only a pair statistic whose transformation says `proved = False` can be entered: nothing becomes proved this way.
    """
    if query in PROVED or maker.proved is not False:
        raise QueryError(f"{query.__name__} cannot be registered: its transformation must say proved = False")
    _UNPROVED[query] = maker


def transformation(statistic: Statistic, schema: Schema) -> Transformation:
    """The transformation that computes a statistic; every complaint comes from public facts."""
    check_kind(statistic)
    kind = type(statistic)
    computed: Transformation = (PROVED.get(kind) or _UNPROVED[kind])(statistic, schema)
    for row_sum in computed.row_sums:
        _check_size(row_sum)
    if isinstance(statistic, Tables):
        _check_together(computed.row_sums)
    return computed


def check_kind(statistic: object) -> None:
    """Refuse what is not exactly one of the statistics, before anything of it is called, its hash included."""
    if not any(type(statistic) is kind for kind in (*PROVED, *_UNPROVED)):
        raise QueryError(
            f"{type(statistic).__name__} is not a statistic of a session: ask for one of dpcurate.queries, "
            "such as Counts or Tau, itself and not a subclass of it"
        )


def sensitivity(computed: Transformation, schema: Schema, neighbours: Neighbours) -> Sensitivity:
    """How far one unit can move a statistic: rows per unit, and rows that may vanish, included."""
    bound = computed.one_row(neighbours)
    if neighbours is Neighbours.REPLACE:
        # A replaced row may vanish, which is a removal: by a rule of the schema, or because a reader or a program that
        # writes files takes a row of empty cells for none.
        bound = bound.larger(computed.one_row(Neighbours.ADD_REMOVE))
    return bound.times(schema.rows_per_unit)


def _check_size(row_sum: RowSum) -> None:
    if isinstance(row_sum, CountRows) and row_sum.cells > MOST_CELLS:
        raise DomainTooLarge(
            f"a table over {', '.join(row_sum.columns)} has {row_sum.cells:,} cells, above the limit of "
            f"{MOST_CELLS:,}: ask for fewer columns, or declare fewer levels or bins"
        )


def _check_together(row_sums: tuple[RowSum, ...]) -> None:
    cells = sum(row_sum.cells for row_sum in row_sums if isinstance(row_sum, CountRows))
    if cells > MOST_TOGETHER:
        raise DomainTooLarge(
            f"these {len(row_sums):,} tables have {cells:,} cells together, above the limit of {MOST_TOGETHER:,}: "
            "ask for them in several queries, or declare fewer levels or bins"
        )
