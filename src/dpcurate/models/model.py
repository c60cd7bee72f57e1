"""A fitted model of a table: one face for models of tables and models of regressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcurate._files import save_text
from dpcurate._typing import FloatArray
from dpcurate.effects.effect import Effect
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.schema import Schema

if TYPE_CHECKING:
    from dpcurate.models.regression_model import ColumnRegression
    from dpcurate.models.table_model import ConditionalTable


class Model(ABC):
    """A model of a found graph, fitted to released answers alone: every question to it is free.

    A table of levels has conditional tables; one with numbers, ordinals or long lists of levels has regressions on
    normal scores. `dag` is its graph, `rows` the released row count, `cost` what its own release cost, in words.
    """

    schema: Schema
    dag: Dag
    cost: str
    not_identified: str
    """Why it states no effects, where the directions of its graph cannot be read."""

    @property
    @abstractmethod
    def note(self) -> str:
        """What a synthetic table is good for, and what not."""

    @abstractmethod
    def table(self, column: str) -> ConditionalTable | ColumnRegression:
        """How a column follows from its parents: a table of probabilities with errors, or a regression."""

    @abstractmethod
    def marginal(self, columns: Sequence[str]) -> FloatArray:
        """The joint distribution of some columns, an axis for each in the order asked."""

    @abstractmethod
    def predict(self, given: Mapping[str, Any], outcome: str) -> dict[str, float]:
        """What is likely of a column in rows where others have these values."""

    @abstractmethod
    def log_likelihood(self) -> float:
        """The mean log-likelihood of a row, from released answers; no row is read."""

    @abstractmethod
    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        to: str | None = None,
        instead_of: str | None = None,
        level: str | None = None,
    ) -> Effect:
        """What setting a column does to another, given that the graph is right."""

    @abstractmethod
    def sample(self, rows: int, *, seed: int) -> dict[str, Any]:
        """A synthetic table of the schema, a column of cells by name (`pandas.DataFrame(...)` takes it); see `note`."""

    @abstractmethod
    def to_pgmpy(self) -> Any:
        """The model for pgmpy, with its tables if it has any."""

    @property
    @abstractmethod
    def file_suffix(self) -> str:
        """How the name of its file ends: .bif for tables, .json for regressions."""

    @abstractmethod
    def file_text(self) -> str:
        """What `save` writes."""

    def save(self, path: str | Path) -> Path:
        """Write the model: tables as .bif, which bnlearn, pgmpy and `networks.load` read, regressions as .json."""
        target = Path(path)
        if target.suffix != self.file_suffix:
            given = repr(target.suffix) if target.suffix else "without a suffix"
            raise QueryError(f"this model is saved as {self.file_suffix}, not {given}: name it model{self.file_suffix}")
        save_text(target, self.file_text())
        return target
