"""Which encoded columns some row sums read, where rows are handed to NumPy in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from dpcurate.private.row_sums import CountRows, FeatureNormRows, FeatureRows, Rows, RowSum
from dpcurate.private.sources.encode import code_name, value_name
from dpcurate.schema import Numeric, Schema


@dataclass(frozen=True, slots=True)
class Needed:
    """The encoded columns that some row_sums read, by the name of the schema's column."""

    codes: dict[str, str]
    values: dict[str, str]

    @classmethod
    def of(cls, row_sums: Sequence[RowSum], schema: Schema) -> Needed:
        """Codes for tables and features of levels, grid values for sums over numeric columns."""
        lookups = [one for k in row_sums if isinstance(k, FeatureRows | FeatureNormRows) for one in k.lookups]
        counted = {c for k in row_sums if isinstance(k, CountRows) for c in k.columns}
        counted |= {one.column for one in lookups if not one.intervals}
        added = {c for k in row_sums if not isinstance(k, CountRows | FeatureRows | FeatureNormRows) for c in k.columns}
        added |= {one.column for one in lookups if one.intervals}
        numeric = {c.name for c in schema.columns if isinstance(c, Numeric)}
        codes = sorted(counted | added - numeric) or ([] if added else [schema.names[0]])
        values = sorted(added & numeric)
        return cls({n: code_name(schema, n) for n in codes}, {n: value_name(schema, n) for n in values})

    @property
    def fields(self) -> list[str]:
        """The names in the encoded table."""
        return [*self.codes.values(), *self.values.values()]

    def rows(self, encoded: Mapping[str, NDArray[Any]], size: int) -> Rows:
        """Columns of the encoded table as rows."""
        codes = {name: encoded[field] for name, field in self.codes.items()}
        return Rows(codes, {name: encoded[field] for name, field in self.values.items()}, None, size)
