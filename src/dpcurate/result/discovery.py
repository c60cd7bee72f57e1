"""What was found: the graph with its evidence, its effects and its privacy statement."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from dpcurate._files import NO_INPUTS, Inputs, OutputFolder, save_text
from dpcurate._messages import how_many, printable
from dpcurate._tables import frame_of
from dpcurate.accounting import Budget, Privacy
from dpcurate.accounting.budget import SitePrivacy
from dpcurate.effects.effect import Effect
from dpcurate.effects.in_graph import Effects, FoundEffects, plain, unless_undecided, with_effects
from dpcurate.errors import QueryError
from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.graphs.formats import EdgeProbabilities, EdgeProbability, dumps, text_for
from dpcurate.graphs.formats.edgelist import edge_rows, unguard, write_table
from dpcurate.graphs.formats.jsontext import one_a_line
from dpcurate.graphs.graph import Cpdag, Dag, Pag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.models.model import Model
from dpcurate.models.regression_model import RegressionModel
from dpcurate.result.comparison import Difference, Finding, difference, load_result
from dpcurate.result.edges import ColumnPair, Edge, found_edges, found_marked, found_pairs
from dpcurate.result.export import GRAPHS, REPORTS, Exports, result_files
from dpcurate.result.fit import NOT_IDENTIFIED, DirectionVerdict, FitResult, GoodnessOfFit
from dpcurate.result.run_record import RunRecord
from dpcurate.result.site_differences import SiteDifferences, site_differences
from dpcurate.result.threshold import BEST_F1, CERTAIN, Threshold, graph_at, surely_linked, way_round
from dpcurate.result.verdict import Expected, Verdict, verdict_on
from dpcurate.schema import Schema
from dpcurate.schema.column_order import example_order

WORDS_OF_EDGES = ("from", "to", "edge", "meaning", "effect_in_words")
LIKELIEST = 3
"""Undecided pairs that are named in a summary."""


@dataclass(frozen=True)
class Discovery(Exports):
    """What was found: the graph, how sure it is, what it cost, and what was left undone.

    `cut` says which probabilities are drawn, see `at`; it is None for the method's own graph. `model` is there if a
    part of the budget was set aside for it (`quantify`).
    """

    FILES: ClassVar[tuple[str, ...]] = (*REPORTS, *GRAPHS)
    """What `save` writes, beside the files of a model."""
    learned: FitResult
    privacy: Privacy
    method: str
    schema: Schema
    knowledge: Knowledge | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    cut: Threshold | None = field(default_factory=Threshold)
    run: RunRecord | None = None
    model: Model | None = None
    inputs: Inputs = field(default=NO_INPUTS, repr=False, compare=False)

    @cached_property
    def graph(self) -> Cpdag | Dag | Pag:
        """Arrows and lines, with `to_networkx()` and `edges`.

        Pairs more likely linked than not, as arrows where one direction has at least 0.8; `at` draws
        another cut. Where the verdict is *mostly noise*, nothing but required edges. Of a method without
        probabilities, what it found. With `latent` a `Pag`, whose marks are drawn where they have at least 0.8.
        """
        noise = self.cut == Threshold() and self.verdict is not None and self.verdict.level == "hopeless"
        return graph_at(self.learned, replace(Threshold(), linked=CERTAIN) if noise else self.cut, self.knowledge)

    def at(self, linked: float | str, *, direction: float | None = None) -> Discovery:
        """The same finding at another cut: pairs of at least this P(edge), arrows of at least this P(direction).

        `direction` is 0.8 unless given. `at("best-f1")` has the edges that make the expected F1 highest: more
        of the true ones, and more that are not there. Costs nothing: the probabilities are released.
        """
        cut = Threshold.of(linked, direction)
        if cut is not None and not self.learned.linked:
            raise QueryError(
                f"{self.method} gives no probabilities, so there is nothing to cut at {linked}; found.graph is what it "
                "found. The default method, 'auto', gives them"
            )
        return replace(self, cut=cut)

    @property
    def confidence(self) -> Mapping[UnorderedPair, float]:
        """Probability that a pair is linked, where the method has one."""
        return self.learned.linked

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences the reader should know."""
        return self.learned.notes

    @cached_property
    def verdict(self) -> Verdict | None:
        """What such a run could see, from released numbers alone; None where the method does not know its noise."""
        learned = self.learned
        if learned.noise is None:
            return None
        return verdict_on(
            learned.noise,
            columns=len(self.schema.names),
            declared=self.schema.rows,
            expected=Expected.of(learned.linked.values(), Threshold().linked, learned.fit) if learned.linked else None,
            fit=learned.fit,
            repeated=learned.repeated,
            budget=self._spent,
        )

    @property
    def verdict_lines(self) -> tuple[str, ...]:
        """Both verdicts for a terminal; that on directions only where an edge is drawn."""
        drawn = self.directions if self.graph.edges else None
        return tuple(line for verdict in (self.verdict, drawn) if verdict is not None for line in verdict.lines)

    @property
    def _spent(self) -> Budget | None:
        """What this run spent; None where that is no epsilon."""
        epsilon = self.privacy.run_epsilon
        if not epsilon or math.isinf(epsilon):
            return None
        return Budget(epsilon=epsilon, delta=self.privacy.delta)

    @property
    def directions(self) -> DirectionVerdict | None:
        """Whether directions can be read, from released numbers alone; None where the method does not judge them."""
        return self.learned.directions

    @cached_property
    def site_differences(self) -> SiteDifferences | None:
        """Which mechanisms differ between the sites of a pool; None where rows have no site."""
        return site_differences(self)

    @property
    def fit(self) -> GoodnessOfFit | None:
        """How well the graph explains the released answers; None where the method does not measure it."""
        return self.learned.fit

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Edges in the columns' order."""
        if self.graph.latent:
            return found_marked(self.graph, self._linked, self.learned.marks)
        return found_edges(self.graph, self._linked, self._way, self._cause)

    @cached_property
    def probabilities(self) -> EdgeProbabilities:
        """How sure every edge is, as files carry it beside the graph."""
        known = {(e.a, e.b): EdgeProbability(e.linked, e.direction, *e.at_ends, meaning=_said(e)) for e in self.edges}
        return {ends: probability for ends, probability in known.items() if probability != EdgeProbability()}

    @cached_property
    def pairs(self) -> tuple[ColumnPair, ...]:
        """Every pair of columns, in their order: *linked*, *undecided* or *apart* at this cut."""
        return found_pairs(self.graph, self.learned.graph, self.cut, self._linked, self._way)

    @cached_property
    def undecided(self) -> tuple[ColumnPair, ...]:
        """Pairs that are not drawn but may well be linked, the likeliest first."""
        return tuple(sorted((p for p in self.pairs if p.state == "undecided"), key=lambda p: -(p.linked or 0.0)))

    def diff(self, other: Discovery | str | Path) -> Difference:
        """What changed from this finding to the other, or to the one in a file (report.json or a graph)."""
        return diff(self, other)

    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        to: str | None = None,
        instead_of: str | None = None,
        level: str | None = None,
    ) -> Effect:
        """What setting `cause` does to `outcome`, by adjustment in this graph, from released answers: costs nothing.

        Of a cause with levels: `to` one `instead_of` another; of an outcome with levels: on the probability of `level`.
        Where only undecided pairs could carry an effect, its state is *undecided*.
        """
        found = self._effects.effect(cause, outcome, to=to, instead_of=instead_of, level=level)
        return unless_undecided(found, self.graph, self.undecided, (self.cut or Threshold()).direction)

    def effects(self) -> FoundEffects:
        """The effect along every edge, of a line both ways: costs nothing."""
        return self._effects.edges

    @property
    def reported_effects(self) -> FoundEffects:
        """Those that reports tell: none of very large graphs, whose effects are computed when asked for."""
        return self._effects.reported

    @cached_property
    def reported_probabilities(self) -> EdgeProbabilities:
        """The same as `probabilities` with the effects along edges: what files carry."""
        return with_effects(self.probabilities, ((e.a, e.b) for e in self.edges), self.reported_effects)

    @cached_property
    def _effects(self) -> Effects:
        released = self.model.released if isinstance(self.model, RegressionModel) else self.learned.released
        return Effects.of(self.graph, released, self.schema, self.not_identified)

    @property
    def not_identified(self) -> str:
        """Why no effect can be read off the graph; nothing if directions can be read, or an order directs all edges."""
        if self.directions is None or self.directions.readable:
            return ""
        known = self.knowledge or Knowledge()
        given = (known.may_point(a, b) != known.may_point(b, a) for a, b in map(tuple, self.graph.edges))
        return "" if all(given) else NOT_IDENTIFIED[self.directions.level]

    def _linked(self, a: str, b: str) -> float | None:
        return surely_linked(self.learned, self.knowledge, a, b)

    def _way(self, a: str, b: str) -> float | None:
        return way_round(self.learned, self.knowledge, a, b)

    def _cause(self, a: str, b: str) -> float | None:
        """P(a causes b | linked); sure where knowledge requires the arrow."""
        if self.knowledge is not None and (a, b) in self.knowledge.required_arrows:
            return 1.0
        way, cause = self._way(a, b), self.learned.causes.get((a, b))
        return None if way is None or cause is None else way * cause

    @property
    def drawn(self) -> str:
        """What is drawn, in words; nothing for a method without probabilities."""
        if not self.learned.linked:
            return ""
        if self.cut is None:
            return "the edges of the highest expected F1"
        arrows = f", arrows with P(direction) at least {self.cut.direction:g}" if self.learned.direction else ""
        return f"edges with P(edge) at least {self.cut.linked:g}{arrows}"

    @property
    def open_pairs(self) -> str:
        """The undecided pairs in a few words, nothing if there are none, or if all that was seen is noise."""
        if not self.undecided or (self.verdict is not None and self.verdict.level == "hopeless"):
            return ""
        first = "; ".join(map(str, self.undecided[:LIKELIEST]))
        more = "" if len(self.undecided) <= LIKELIEST else "; ..."
        return f"{how_many(len(self.undecided), 'undecided pair')}, neither drawn nor ruled out: {first}{more}"

    @property
    def example_order(self) -> str:
        """An order to start from, as `order=` takes it; nothing if knowledge was given or no edge was found."""
        known = self.knowledge is not None or not self.edges
        return "" if known else example_order(self.schema.columns)

    @property
    def summary(self) -> tuple[str, ...]:
        """The result in a few lines, without its edges: verdicts, cost, what is drawn and what to know."""
        return *self._head, *self._tail

    @property
    def _head(self) -> tuple[str, ...]:
        found = f"{how_many(len(self.edges), 'edge')} among {how_many(len(self.graph.nodes), 'column')}"
        drawn = (f"drawn: {self.drawn}",) if self.drawn else ()
        sites = () if self.site_differences is None else self.site_differences.lines
        return *self.verdict_lines, f"{found}, by {self.method}", *self.privacy.lines, *drawn, *sites

    @property
    def _tail(self) -> tuple[str, ...]:
        pairs = (self.open_pairs,) if self.open_pairs else ()
        return *pairs, *(f"note: {note}" for note in self.notes)

    def __str__(self) -> str:
        return printable("\n".join([*self._head, *(f"  {edge}" for edge in self.edges), *self._tail]))

    def to_dict(self) -> dict[str, Any]:
        """Everything public, as plain values."""
        return {
            "graph": json.loads(dumps(self.graph, "json")),
            "cut": self._cut_named(),
            "edges": [asdict(e) | {"confidence": e.confidence, "meaning": e.meaning} for e in self.edges],
            "effects": [plain(effect) for effect in self.reported_effects],
            "undecided": [asdict(pair) for pair in self.undecided],
            "pairs": [asdict(pair) for pair in self.pairs],
            "verdict": None if self.verdict is None else asdict(self.verdict),
            "directions": None if self.directions is None else self.directions.to_dict(),
            "fit": None if self.fit is None else self.fit.to_dict(),
            "method": self.method,
            "privacy": _promise(self.privacy)
            | {"events": len(self.privacy.events)}
            | ({"sites": [_site(one) for one in self.privacy.sites]} if self.privacy.sites else {}),
            "site_differences": None if self.site_differences is None else self.site_differences.to_dict(),
            "tests": list(self.learned.tests),
            "unfinished": {str(o): [sorted(x) for x in left] for o, left in self.learned.unfinished.items()},
            "notes": list(self.notes),
            "order": [] if self.knowledge is None else [sorted(tier) for tier in self.knowledge.tiers],
            "schema": self.schema.hash,
            "versions": dict(self.versions),
            "run": None if self.run is None else self.run.to_dict(),
        }

    def _cut_named(self) -> dict[str, float] | str | None:
        if not self.learned.linked:
            return None
        return BEST_F1 if self.cut is None else asdict(self.cut)

    def files(self, *, synthetic: int | None = None) -> dict[str, Callable[[], str]]:
        """What makes the text of every file that `save` writes, by its name."""
        return result_files(self, synthetic)

    def save(self, folder: str | Path, *, synthetic: int | None = None, force: bool = False) -> tuple[Path, ...]:
        """Write every report, the graph in several formats, and the model if there is one, into a folder.

        Args:
            folder: made if it is not there.
            synthetic: also draw so many rows from the model and write them to synthetic.csv.
            force: replace files that are there.

        Returns:
            The paths of the files.

        Raises:
            OutputError: a file is there already, or cannot be written. All others are written nevertheless.
        """
        texts = self.files(synthetic=synthetic)
        written, problem = OutputFolder.made(folder, texts, self.inputs, force=force).write_all(texts)
        if problem is not None:
            raise problem
        return tuple(written)

    def registry_record(self, **publisher: Any) -> dict[str, Any]:
        """The result as a record for the registry of differential privacy deployments (registry.opendp.org), free.

        Args:
            publisher: what only you know: `name`, `curator`, `curator_type`, `description`, `intended_use`, `region`,
                `sector`, `justification` (texts) and `authors` (names). What is left out stays empty.

        Returns:
            The record as plain values, for JSON or YAML; `report("NAME.registry.json")` writes it.

        Raises:
            NotPrivate: the result has no guarantee.
            FormatError: the registry does not know this `curator_type` or `sector`.
        """
        from dpcurate.report.registry_record import Publisher, registry_record

        return registry_record(self, Publisher(**publisher))

    def report(self, path: str | Path) -> Path:
        """Write a report; the suffix says which: .html, .json, .txt, or a graph format such as .dot or .csv.

        A name that ends in .registry.json gets a record for the registry of deployments (`registry_record`).

        A file that is there is replaced, unless the run has read it or it is a ledger: those are refused.
        """
        save_text(path, self.report_text(path), self.inputs)
        return Path(path)

    def report_text(self, path: str | Path) -> str:
        """What `report` writes to a file of this name."""
        suffix = Path(path).suffix
        if Path(path).name.endswith(".registry.json"):
            return json.dumps(self.registry_record(), indent=2, ensure_ascii=False) + "\n"
        if suffix == ".json":
            return one_a_line(self.to_dict())
        if suffix == ".txt":
            made = "" if self.run is None else f"{self.run}\n"
            return f"{self}\n{made}"
        if suffix in (".html", ".htm"):
            from dpcurate.report.html_report import page

            return page(self)
        if suffix.lower() == ".csv":
            return write_table(self.graph, self.reported_probabilities)
        return text_for(self.graph, path, self.reported_probabilities)

    def to_frame(self) -> Any:
        """The edges as a pandas frame: from, to, edge (arrow, line, or the sign in a PAG), and how sure and strong."""
        heads, *rows = edge_rows(self.graph, self.reported_probabilities)
        return frame_of(heads, [[unguard(x) for x in row[:2]] + row[2:] for row in rows], words=WORDS_OF_EDGES)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dpcurate.report.html_report import discovery_html

        return discovery_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the graph with matplotlib, into `ax` if given; returns the axes."""
        from dpcurate.draw.plot import plot
        from dpcurate.report.edge_words import shown_edges

        return plot(self.graph, shown_edges(self), ax, private=self.privacy.private)


def diff(first: Discovery | str | Path, second: Discovery | str | Path) -> Difference:
    """What changed between two results: findings, report.json files, the folders they are in, or graph files."""
    return difference(_result(first), _result(second))


def _said(edge: Edge) -> str:
    """What an arrow says; a line, and an edge of a PAG, is written as what it says."""
    return edge.meaning if edge.directed and not edge.at_ends else ""


def _result(found: Discovery | str | Path) -> Finding:
    if not isinstance(found, Discovery):
        return load_result(found)
    known = {(p.a, p.b): EdgeProbability(p.linked, p.direction) for p in found.pairs}
    return Finding(
        found.graph, {ends: probability for ends, probability in known.items() if probability != EdgeProbability()}
    )


def _site(one: SitePrivacy) -> dict[str, Any]:
    """One of several sites, as a result's JSON holds it."""
    return {"name": one.name, "ledger": one.ledger, **_promise(one.privacy)}


def _promise(p: Privacy) -> dict[str, Any]:
    """What is promised and what was spent, as a result's JSON holds it."""
    return {
        "private": p.private,
        "statement": str(p),
        "neighbours": p.neighbours,
        "unit": p.unit,
        "budget": {"epsilon": _number(p.budget.epsilon), "delta": p.delta, "rho": _number(p.budget.rho)},
        "spent": {"epsilon": _number(p.epsilon), "rho": _number(p.rho)},
        "spent_by_this_run": {"epsilon": _number(p.run_epsilon)},
    }


def _number(value: float | None) -> float | None:
    """JSON has no infinity."""
    return None if value is None or math.isinf(value) else float(value)
