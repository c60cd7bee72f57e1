"""What to adjust for: sets of columns that turn P(outcome | cause, set) into the effect of setting the cause.

In a DAG a set is valid if and only if it holds nothing that lies on or below a directed path from the cause to the
outcome, and separates the two once the arrows out of the cause that begin such paths are gone (Shpitser et al. 2010,
UAI). The parents of the cause are valid, and so is the set of Henckel, Perkovic and Maathuis (2022, JRSS B): the
parents of the columns on those paths, whose estimate has the least variance of all in linear models. In a CPDAG the
effect depends on which neighbours cause the cause: one possibility for each choice of them that some DAG of the class
has (IDA; Maathuis, Kalisch and Buehlmann 2009, Annals of Statistics 37). PAGs have a section of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, combinations

from dpcurate.errors import GraphError
from dpcurate.graphs.base_graph import Arrow, Mark, UnorderedPair, children_of, find_cycle, reachable, require_known
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.orient import extension, unshielded_colliders
from dpcurate.graphs.pag import Pag

MOST_LINES = 10
"""Lines at the cause beyond which not every choice of its parents is looked at."""


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One possibility: whether the cause acts on the outcome at all, and valid sets, that of least variance first."""

    acts: bool
    sets: tuple[tuple[str, ...], ...] = ()
    dag: Dag | None = field(default=None, compare=False)
    """A DAG in which it is so; none where the graph has no DAG, or causes may be hidden."""


def adjustments(graph: Cpdag | Dag, cause: str, outcome: str) -> tuple[Adjustment, ...]:
    """Every possibility that the graph leaves open, without those that say the same; of a DAG the one there is.

    None at all where a cause has more lines than can be looked at.
    """
    for name in (cause, outcome):
        require_known(name, graph.nodes)
    if cause == outcome:
        raise GraphError(f"an effect is of one column on another, not of {cause!r} on itself")
    if isinstance(graph, Dag):
        return (_in_dag(graph, cause, outcome),)
    return tuple(dict.fromkeys(_possible(graph, cause, outcome)))


def _in_dag(dag: Dag, cause: str, outcome: str) -> Adjustment:
    if not _on_paths(dag, cause, outcome):
        return Adjustment(False)
    above = _above(dag, outcome)  # the cause lies above the outcome, and nothing else matters
    best, parents = optimal_set(above, cause, outcome), above.parents(cause)
    valid = partial(is_valid, above, cause, outcome)
    sets = best, _least(best, valid), parents, _least(parents, valid)
    return Adjustment(True, tuple(dict.fromkeys(sets)), dag)


def _above(dag: Dag, outcome: str) -> Dag:
    """The part of a DAG from which the outcome can be reached."""
    kept = dag.upstream([outcome])
    nodes = tuple(name for name in dag.nodes if name in kept)
    return Dag(nodes, frozenset((a, b) for a, b in dag.arrows if b in kept))


def optimal_set(dag: Dag, cause: str, outcome: str) -> tuple[str, ...]:
    """The parents of the columns on directed paths, without what lies on or below them."""
    out = forbidden(dag, cause, outcome) | {cause}
    parents = set(chain.from_iterable(dag.parents(name) for name in _on_paths(dag, cause, outcome)))
    return tuple(name for name in dag.nodes if name in parents - out)


def forbidden(dag: Dag, cause: str, outcome: str) -> set[str]:
    """What lies on or below a directed path, the cause left out: adjusting for it takes a part of the effect away."""
    children = children_of(dag.arrows)
    return set().union(*({name} | reachable(name, children) for name in _on_paths(dag, cause, outcome)))


def is_valid(dag: Dag, cause: str, outcome: str, given: Iterable[str]) -> bool:
    """Whether a set is valid for the effect of the cause on the outcome."""
    names = set(given)
    if names & (forbidden(dag, cause, outcome) | {cause, outcome}):
        return False
    paths = _on_paths(dag, cause, outcome)
    without = frozenset((a, b) for a, b in dag.arrows if a != cause or b not in paths)
    return Dag(dag.nodes, without).d_separated(cause, outcome, names)


def _least(given: tuple[str, ...], valid: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """A part of a valid set that is valid, and would not be with one column less."""
    for name in given:
        fewer = tuple(x for x in given if x != name)
        if valid(fewer):
            return _least(fewer, valid)
    return given


def _on_paths(dag: Dag, cause: str, outcome: str) -> set[str]:
    """The columns on directed paths from the cause to the outcome, that included and the cause not."""
    below = reachable(cause, children_of(dag.arrows))
    return below & dag.upstream([outcome])


def _possible(graph: Cpdag, cause: str, outcome: str) -> Iterator[Adjustment]:
    """One for each choice of the cause's parents."""
    some = _some_member(graph)
    for more in parent_choices(graph, cause):
        if some is None:  # noisy answers may make a graph that no DAG has; its arrows still say something
            yield _locally(graph, cause, outcome, more)
        else:
            dag = _member(graph, some, cause, more)
            if dag is not None:
                yield _in_dag(dag, cause, outcome)


def covering(graph: Cpdag) -> tuple[Dag, ...]:
    """Few DAGs of the class in which, together, columns have all parents that are possible.

    Lines that are not connected turn independently, so that one DAG serves all of them.
    """
    some, found = _some_member(graph), []
    left = [(name, more) for name in graph.nodes for more in parent_choices(graph, name)]
    while left and some is not None:
        dag, tried = some, set()
        turned: set[str] = set()
        for name, more in left:
            if name not in turned:
                dag = _member(graph, dag, name, more) or dag
                tried.add((name, more))
                turned |= _joined(graph, name)
        found.append(dag)
        has = {name: {*dag.parents(name)} - {*graph.parents(name)} for name in graph.nodes}
        left = [(name, more) for name, more in left if (name, more) not in tried and has[name] != {*more}]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=2)
def _some_member(graph: Cpdag) -> Dag | None:
    """A DAG of the class; the last graphs are remembered, since effects are asked for one after another."""
    return extension(graph)


def parent_choices(graph: Cpdag, cause: str) -> Iterator[tuple[str, ...]]:
    """Which of its lines may be arrows into the cause: all that make no new collider there."""
    near = [name for name in graph.neighbours(cause) if frozenset((cause, name)) in graph.lines]
    if len(near) > MOST_LINES:
        return
    parents = graph.parents(cause)
    for size in range(len(near) + 1):
        for more in combinations(near, size):
            met = chain(combinations(more, 2), ((a, b) for a in more for b in parents))
            if all(frozenset(pair) in graph.edges for pair in met):
                yield more


def _member(graph: Cpdag, some: Dag, cause: str, more: tuple[str, ...]) -> Dag | None:
    """A DAG of the class in which these lines, and no others, are arrows into the cause.

    Only what lines connect with the cause has to be turned: the rest stays as in some DAG of the class.
    """
    near = _joined(graph, cause)
    if len(near) == 1:
        return some
    lines = {pair for pair in graph.lines if pair <= near}
    turned = {_toward(cause, pair, more) for pair in lines if cause in pair}
    within = frozenset(turned | {(a, b) for a, b in graph.arrows if a in near and b in near})
    if find_cycle(tuple(near), within):
        return None
    nodes = tuple(name for name in graph.nodes if name in near)  # in their order, or another process has another DAG
    part = extension(Cpdag(nodes, within, frozenset(pair for pair in lines if cause not in pair)))
    if part is None:
        return None
    arrows = frozenset(arrow for arrow in some.arrows if frozenset(arrow) not in lines) | part.arrows
    if find_cycle(graph.nodes, arrows):
        return None
    dag = Dag(graph.nodes, arrows)
    if unshielded_colliders(dag, near) == unshielded_colliders(graph, near):
        return dag
    return _turned(graph, frozenset(turned))


def _turned(graph: Cpdag, turned: frozenset[Arrow]) -> Dag | None:
    """The same in a graph whose arrows decide some of its lines, as arrows drawn by their probability may."""
    if find_cycle(graph.nodes, graph.arrows | turned):
        return None
    dag = extension(Cpdag(graph.nodes, graph.arrows | turned, graph.lines - frozenset(map(frozenset, turned))))
    return dag if dag is not None and unshielded_colliders(dag) == unshielded_colliders(graph) else None


def _joined(graph: Cpdag, cause: str) -> frozenset[str]:
    """What lines connect with the cause, itself included."""
    ways = children_of((a, b) for pair in graph.lines for a, b in (tuple(pair), tuple(pair)[::-1]))
    return frozenset(reachable(cause, ways) | {cause})


def _toward(cause: str, pair: UnorderedPair, parents: tuple[str, ...]) -> Arrow:
    (other,) = pair - {cause}
    return (other, cause) if other in parents else (cause, other)


def _locally(graph: Cpdag, cause: str, outcome: str, more: tuple[str, ...]) -> Adjustment:
    """From the parents alone; what is neither a parent nor below the cause in any way is not moved by it."""
    parents = {*graph.parents(cause), *more}
    ways = [*graph.arrows, *(tuple(pair) for pair in graph.lines), *(tuple(pair)[::-1] for pair in graph.lines)]
    open_ways = children_of((a, b) for a, b in ways if b != cause and not (a == cause and b in parents))
    if outcome in parents or outcome not in reachable(cause, open_ways):
        return Adjustment(False)
    return Adjustment(True, (tuple(name for name in graph.nodes if name in parents),))


# --- where common causes may be hidden ------------------------------------------------------------------------------
# The generalised adjustment criterion for PAGs (Perkovic, Textor, Kalisch and Maathuis 2018, JMLR 18). A set is valid
# if every possibly directed path from the cause to the outcome begins with a visible arrow (one that no hidden cause
# can explain), if it holds nothing that may lie on or below such a path, and if it blocks all other paths. Where any
# set is valid, the possible ancestors of the two, without what is forbidden, are.

EndMarks = Mapping[Arrow, Mark]
Near = Mapping[str, list[str]]


def pag_adjustment(pag: Pag, cause: str, outcome: str) -> Adjustment | None:
    """The valid sets, or that the cause does not act on the outcome; None where the effect is not identified."""
    for name in (cause, outcome):
        require_known(name, pag.nodes)
    if cause == outcome:
        raise GraphError(f"an effect is of one column on another, not of {cause!r} on itself")
    near = _near(pag.marks)
    reached = _onward(cause, pag.marks, near, without=outcome)
    if outcome not in _onward(cause, pag.marks, near):
        return Adjustment(False)
    first = [v for v in near[cause] if _may_lead(pag, near, cause, v, outcome)]
    if not all(visible(pag, cause, v) for v in first):
        return None
    forbidden = _forbidden_in_pag(pag, near, cause, outcome, reached)
    mixed = _mixed_member(pag)
    if mixed is None:
        return None
    without = {ends: mark for ends, mark in mixed.items() if not (cause in ends and set(ends) & set(first))}
    above = _backward(cause, pag.marks, near) | _backward(outcome, pag.marks, near)
    given = tuple(name for name in pag.nodes if name in above - forbidden - {cause, outcome})

    def separates(names: Iterable[str]) -> bool:
        return m_separated(without, cause, outcome, names)

    if not separates(given):
        return None
    return Adjustment(True, tuple(dict.fromkeys((_least(given, separates), given))))


def _near(ends: EndMarks) -> dict[str, list[str]]:
    near: dict[str, list[str]] = {}
    for a, b in sorted(ends):
        near.setdefault(a, []).append(b)
        near.setdefault(b, [])
    return near


def _onward(start: str, ends: EndMarks, near: Near, without: str = "") -> set[str]:
    """What a possibly directed path leads to: on no edge is there an arrowhead at the end it leaves."""
    return _walk(start, near, lambda a, b: ends[b, a] != "arrow", without)


def _backward(start: str, ends: EndMarks, near: Near) -> set[str]:
    """From where a possibly directed path leads here, itself included."""
    return _walk(start, near, lambda a, b: ends[a, b] != "arrow", "") | {start}


def _walk(start: str, near: Near, passes: Callable[[str, str], bool], without: str) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        here = todo.pop()
        for after in near.get(here, ()):
            if after not in found and after not in (start, without) and passes(here, after):
                found.add(after)
                todo.append(after)
    return found


def _may_lead(pag: Pag, near: Near, cause: str, first: str, outcome: str) -> bool:
    """Whether a possibly directed path to the outcome begins with this edge."""
    if pag.marks[first, cause] == "arrow":
        return False
    return first == outcome or outcome in _onward(first, pag.marks, near, without=cause)


def _forbidden_in_pag(pag: Pag, near: Near, cause: str, outcome: str, reached: set[str]) -> set[str]:
    """What may lie on a possibly directed path to the outcome, or below one."""
    on_path = {v for v in reached | {outcome} if v == outcome or outcome in _onward(v, pag.marks, near, without=cause)}
    return on_path.union(*(_onward(v, pag.marks, near) for v in on_path))


def visible(pag: Pag, a: str, b: str) -> bool:
    """Whether a -> b cannot come from a hidden cause (Zhang 2008).

    Some column that is not adjacent to b has an edge into a, or a path into a whose inner columns are all colliders on
    it and parents of b.
    """
    if not (pag.marks.get((a, b)) == "arrow" and pag.marks[b, a] == "tail"):
        return False
    near = _near(pag.marks)
    seen, todo = {a}, [a]
    while todo:
        here = todo.pop()
        for other in near[here]:
            if other in seen or other == b or pag.marks[other, here] != "arrow":
                continue
            if (other, b) not in pag.marks:
                return True
            parent = pag.marks[other, b] == "arrow" and pag.marks[b, other] == "tail"
            if parent and pag.marks[here, other] == "arrow":  # a collider, if the path goes on
                seen.add(other)
                todo.append(other)
    return False


def _mixed_member(pag: Pag) -> dict[Arrow, Mark] | None:
    """A mixed graph of the class: o-> becomes ->, and circles at both ends a DAG without a new collider (Zhang 2008).

    None where there is none, and where rows may have been selected.
    """
    signs = {ends: (pag.marks[ends[1], ends[0]], pag.marks[ends]) for ends in pag.marks}
    if any("tail" in sign and "arrow" not in sign for sign in signs.values()):
        return None
    circles = frozenset(frozenset(ends) for ends, sign in signs.items() if sign == ("circle", "circle"))
    dag = extension(Cpdag(pag.nodes, frozenset(), circles))
    if dag is None:
        return None
    turned: dict[Arrow, Mark] = {ends: "tail" if mark == "circle" else mark for ends, mark in pag.marks.items()}
    for arrow in dag.arrows:
        turned[arrow] = "arrow"
    return turned


def m_separated(ends: EndMarks, a: str, b: str, given: Iterable[str]) -> bool:
    """Whether no path is open: non-colliders are not given, and colliders lie above something that is."""
    near, names = _near(ends), set(given)
    above = names.union(*(_ancestors(name, ends, near) for name in names))
    todo: list[tuple[str, Mark]] = [(x, ends[a, x]) for x in near.get(a, ())]
    seen = set(todo)
    while todo:
        here, into = todo.pop()
        if here == b:
            return False
        for after in near[here]:
            collider = into == ends[after, here] == "arrow"
            state = after, ends[here, after]
            if after != a and state not in seen and (here in above if collider else here not in names):
                seen.add(state)
                todo.append(state)
    return True


def _ancestors(name: str, ends: EndMarks, near: Near) -> set[str]:
    """The ancestors of a column in a mixed graph."""
    return _walk(name, near, lambda a, b: ends[b, a] == "arrow" and ends[a, b] == "tail", "")
