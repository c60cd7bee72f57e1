"""Effects in tables that mix numbers and levels, in DAGs, from released products of features.

A table is simulated along the graph that would have released what was released; what setting a column does in it is
the effect. Where it cannot be made to release that, links are not what they are taken to be, and nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from dpcurate.effects.effect import Effect
from dpcurate.effects.if_set import effect_of, leads, needed
from dpcurate.effects.matching import Matched, matched, sizes
from dpcurate.effects.question import Question
from dpcurate.effects.simulated import Simulator
from dpcurate.graphs.adjustment import Adjustment, covering
from dpcurate.graphs.graph import Cpdag, Dag, Pag
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.schema import OWN, Numeric, Schema

WORST = 3.0
"""Beyond this misfit (1 is what errors explain) nothing is said; below, where it is clear, errors are widened."""
MOST_MATCHED = 1200
"""Products and parameters at most: more take too long, and too much memory."""
UNSETTLED = 1.0
"""A last step of more standard errors than this has not arrived anywhere."""
THEN = "with `bins` for its numbers in the schema a model has tables, and tells"
NARROWER = "give bounds as narrow as is publicly known, declare its logarithm instead, or give it `bins`"
FEWER = "group levels in the schema, or quantify a graph with fewer parents (dag=...)"
NO_DAG = "causes may be hidden, or no DAG has its arrows; numbers and levels are simulated along a DAG alone"
TABLES = "with `bins` for numbers in the schema tables are released, which tell"


@dataclass(frozen=True, eq=False)
class InDag:
    """From features of numbers and levels."""

    released: ReleasedFeatures
    dag: Dag
    schema: Schema

    @cached_property
    def simulator(self) -> Simulator:
        return Simulator.of(self.released, self.dag, self.schema.names)

    @cached_property
    def fitted(self) -> Matched:
        """All columns together."""
        return matched(self.released, self.simulator)

    @cached_property
    def why_not(self) -> tuple[str, str]:
        """Why nothing is said, and what to do; empty where something is."""
        gone = [c.name for c in self.schema.columns if isinstance(c, Numeric) and c.missing == OWN]
        if gone:
            return f"{', '.join(gone)} with missing cells of their own (missing = 'own')", THEN
        if (together := sum(sizes(self.released, self.simulator))) > MOST_MATCHED:
            return f"{together:,} products and parameters are more than the {MOST_MATCHED:,} that are matched", FEWER
        if self.fitted.misfit > WORST or not self.fitted.settled < UNSETTLED:
            return "no table with straight links that add up would have released what was released", THEN
        return "", ""

    def effect(self, asked: Question) -> Effect:
        """In the graph itself, whatever others say the same."""
        if not leads(self.dag, asked.cause, asked.outcome):
            return Effect.none(asked.cause, asked.outcome)
        why, then = self._constant(asked) or self._blurred(asked) or self.why_not
        if why:
            return asked.undetermined(why, self.dag.parents(asked.cause), then)
        return effect_of(self.fitted, self.schema, asked)

    def _constant(self, asked: Question) -> tuple[str, str] | None:
        shown = self.simulator.shown[asked.cause]
        if getattr(shown, "quarters", ()) is not None:
            return None
        return f"nine rows of ten hold nearly the same {asked.cause}", "give it `bins`, or declare it as ordinal"

    def _blurred(self, asked: Question) -> tuple[str, str] | None:
        shown = self.simulator.shown
        involved = (x for x in self.schema.names if x in needed(self.dag, asked.cause, asked.outcome))
        hidden = [x for x in involved if getattr(shown[x], "blurred", False)]
        if not hidden:
            return None
        return f"noise hides how rows of {' and '.join(hidden)} lie within bounds that are far wider", NARROWER


@dataclass(frozen=True, eq=False)
class InDags:
    """The same in the DAGs that a graph leaves possible: each is simulated once, when it is first needed."""

    released: ReleasedFeatures
    schema: Schema
    graph: Cpdag | Dag | Pag
    known: dict[Dag, InDag] = field(default_factory=dict, init=False)

    @cached_property
    def dags(self) -> tuple[Dag, ...]:
        """DAGs that tell all effects."""
        return covering(self.graph) if isinstance(self.graph, Cpdag) else ()

    @property
    def work(self) -> int:
        """Columns to be simulated for all effects."""
        return len(self.dags) * len(self.schema.names)

    def estimate(self, asked: Question, possible: Adjustment) -> Effect:
        """In a DAG of this possibility: any in which the cause has the same parents."""
        if possible.dag is None:
            return asked.undetermined(NO_DAG, possible.sets[0], TABLES)
        parents = possible.dag.parents(asked.cause)
        dag = next((one for one in self.dags if one.parents(asked.cause) == parents), possible.dag)
        if dag not in self.known:
            self.known[dag] = InDag(self.released, dag, self.schema)
        return self.known[dag].effect(asked)
