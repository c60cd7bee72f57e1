"""What was found, handed over to other tools: one method for each."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dpcurate.effects.effect import Effect
from dpcurate.errors import FormatError, QueryError
from dpcurate.graphs import interop
from dpcurate.graphs.base_graph import Arrow
from dpcurate.graphs.formats import EdgeProbabilities, EdgeProbability, dumps, text_for
from dpcurate.graphs.graph import Cpdag, Dag, Pag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.models.fitting import file_name
from dpcurate.result.edges import Edge
from dpcurate.schema import Column, Numeric

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery


class Exports:
    """Every call is free: it reads what was released.

    How sure an edge is and what effect it has go along where the tool has a place for them. Tools that know only DAGs
    get the one of `to_dag`.
    """

    if TYPE_CHECKING:
        knowledge: Knowledge | None

        @property
        def graph(self) -> Cpdag | Dag | Pag:
            """The graph that is drawn."""

        @property
        def edges(self) -> tuple[Edge, ...]:
            """Its edges with their probabilities."""

        @property
        def probabilities(self) -> EdgeProbabilities:
            """P(edge) and P(direction) of every pair."""

        def effects(self) -> tuple[Effect, ...]:
            """Effects along the edges."""

        def _way(self, a: str, b: str) -> float | None: ...

    def to_dag(self) -> Dag:
        """One DAG of the class that was found, always the same: lines point the likelier way round that fits.

        It has the graph's arrows and, if there is such a DAG, no collider beside the graph's own; its `note` says how
        many lines were turned. Background knowledge holds.
        """
        return self._dag_for("a DAG")

    def to_networkx(self) -> Any:
        """A networkx DiGraph with one arc for every edge, and what is known of it as attributes.

        `directed` is False for a line, whose arc goes from the earlier column to the later one. `linked` and
        `direction` are the probabilities of `edges`; `effect`, `effect_low` and `effect_high` are what setting the
        arc's start does to its end, where it is known, and `effect_in_words` says so. In a PAG `sign` is the edge as it
        is written, "o->" and the like, with the probabilities of a tail and of an arrowhead at its ends.
        """
        return interop.networkx_graph(self.graph, self._beside())

    def to_pgmpy(self) -> Any:
        """The DAG of `to_dag` as a pgmpy DAG, with attributes of edges as in `to_networkx`."""
        return interop.pgmpy_dag(self._dag_for("pgmpy"), self._beside())

    def to_dowhy(self, treatment: str, outcome: str, data: Any = None) -> Any:
        """The DAG of `to_dag` as a DoWhy CausalModel of a treatment and an outcome.

        `data` is a pandas frame or what makes one, such as columns by name. Without it the model can identify an
        effect and not estimate it. What is estimated from rows is not covered by the promise of this run: give it rows
        that may be shown, such as a synthetic table.
        """
        return interop.dowhy_model(self._dag_for("DoWhy"), self._beside(), treatment, outcome, data)

    def to_causallearn(self) -> Any:
        """A causal-learn GeneralGraph of any kind of graph; its attribute "edges" has what is known of each."""
        return interop.causallearn_graph(self.graph, self._beside())

    def to_dagitty(self) -> str:
        """The text that DAGitty reads, on its page and in R: `dag`, `pdag` or `pag`."""
        return dumps(self.graph, "dagitty")

    def to_tetrad(self) -> str:
        """The text that Tetrad reads, of any kind of graph, with how likely each kind of edge is."""
        return dumps(self.graph, "tetrad", self.probabilities)

    def to_bnlearn(self) -> str:
        """The DAG of `to_dag` as the model string of R's bnlearn, for `model2network`."""
        return interop.bnlearn_text(self._dag_for("bnlearn"))

    def _dag_for(self, tool: str) -> Dag:
        if self.graph.latent:
            raise FormatError(
                f"{tool} has no place for hidden causes, which a PAG allows for; to_networkx, to_causallearn, "
                "to_dagitty and to_tetrad hand it over as it is"
            )
        return self.graph.some_dag(self._way, self.knowledge)

    def _beside(self) -> dict[Arrow, dict[str, float | str]]:
        """What is known of every edge, of a line both ways round."""
        known: dict[Arrow, dict[str, float | str]] = {}
        for edge in self.edges:
            probability = self.probabilities.get((edge.a, edge.b), EdgeProbability())
            known[edge.a, edge.b] = {**probability.numbers()}
            if not edge.directed:
                known[edge.b, edge.a] = {**probability.turned().numbers()}
        for effect in self.effects():
            known[effect.cause, effect.outcome] |= _numbers(effect)
        return known


def _numbers(effect: Effect) -> dict[str, float | str]:
    """The interval, the estimate if there is one, and both in words; nothing of an effect that is not known."""
    if effect.low is None or effect.high is None:
        return {}
    estimate = {} if effect.estimate is None else {"effect": effect.estimate}
    return {**estimate, "effect_low": effect.low, "effect_high": effect.high, "effect_in_words": effect.sentence}


# ---------------------------------------------------------------------------------------------------------------------
# The files of a result in one folder: reports, the graph in several formats, and those of a model.


REPORTS = ("report.html", "report.json", "edges.csv")
GRAPHS = ("graph.json", "graph.dot", "graph.graphml")
SYNTHETIC = "synthetic.csv"
_LARGEST_SEED = 2**32


def result_files(found: Discovery, synthetic: int | None = None) -> dict[str, Callable[[], str]]:
    """What makes the text of every file, by its name; `synthetic` is a number of rows to draw from the model."""
    texts: dict[str, Callable[[], str]] = {name: partial(found.report_text, name) for name in REPORTS}
    for name in GRAPHS:
        texts[name] = partial(text_for, found.graph, name, found.reported_probabilities)
    if found.model is not None:
        texts[file_name(found.schema)] = found.model.file_text
    if synthetic is not None:
        _check_synthetic(found, synthetic)
        texts[SYNTHETIC] = partial(_rows_as_csv, found.model, synthetic)
    return texts


def _check_synthetic(found: Discovery, rows: int) -> None:
    if rows < 1:
        raise QueryError(f"the number of synthetic rows is at least 1, not {rows}")
    if found.model is None:
        raise QueryError(
            "this result has no model of its graph to draw rows from. A run with quantify=0.5 (--quantify 0.5) buys "
            "one; from stored answers it comes with the knowledge and the method of that run"
        )


def _rows_as_csv(model: Any, rows: int) -> str:
    table = model.sample(rows, seed=secrets.randbelow(_LARGEST_SEED))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table)
    columns = [_cells_as_text(model.schema[name], cells) for name, cells in table.items()]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _cells_as_text(column: Column, cells: Any) -> list[str]:
    """Numbers have six digits and lie within their bounds; a missing one is empty."""
    if not isinstance(column, Numeric):
        return list(cells)
    written = []
    for cell in cells.tolist():
        if cell != cell:  # NaN: missing
            written.append("")
        else:
            short = float(f"{cell:.6g}")
            written.append(f"{min(max(short, column.low), column.high):.15g}")
    return written
