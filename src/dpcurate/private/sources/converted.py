"""Dask makes texts of all objects before anybody sees them, so that 7, 7.0 and '7' become two names of one person.

Here its conversion looks first. It is the only module that imports Dask when it is imported.
"""

from __future__ import annotations

from typing import Any, ClassVar

from dask.dataframe import DataFrame
from dask.dataframe.dask_expr._collection import new_collection
from dask.dataframe.dask_expr._expr import ArrowStringConversion

from dpcurate.errors import OwnerError
from dpcurate.private.sources.persons import REMEDY, RULE, plain_ids


def watched(table: DataFrame, person: str) -> DataFrame:
    """The same frame, whose partitions refuse to become texts if the ids are anything else."""
    expr = table.expr
    sources = [node for node in expr.walk() if _converts(node)]
    # After a renaming nobody can tell which of the columns became the ids.
    names = (person,) if any(person in map(str, node.columns) for node in sources) else None
    for node in sources:
        if isinstance(node, ArrowStringConversion):
            expr = expr.substitute(node, WatchedConversion(node.frame, names))
        else:
            only_texts(node.frame._data, names)
    return new_collection(expr)


def _converts(node: Any) -> bool:
    if isinstance(node, ArrowStringConversion):
        return bool(node.ndim == 2)
    return type(node).__name__.startswith("FromPandas") and bool(node.pyarrow_strings_enabled) and node.ndim == 2


class WatchedConversion(ArrowStringConversion):  # type: ignore[misc]
    """Dask's conversion of objects to texts, after a look at them."""

    _parameters: ClassVar = ["frame", "names"]

    @staticmethod
    def operation(part: Any, names: tuple[str, ...] | None) -> Any:
        """One partition."""
        only_texts(part, names)
        return ArrowStringConversion.operation(part)


def only_texts(part: Any, names: tuple[str, ...] | None) -> None:
    """Refuse objects that are not texts in columns of these names, or in any."""
    for name in part.columns:
        if (names is None or str(name) in names) and part[name].dtype == object:
            kind = plain_ids(str(name), part[name])[1]
            if kind == "whole":
                raise OwnerError(
                    f"column {str(name)!r} holds whole numbers as objects, which Dask makes texts of; {RULE}: {REMEDY}"
                )
