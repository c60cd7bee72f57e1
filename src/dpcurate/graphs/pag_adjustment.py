"""What to adjust for where common causes may be hidden: the generalised adjustment criterion for PAGs.

Perkovic, Textor, Kalisch and Maathuis (2018), JMLR 18. A set is valid if every possibly directed path from the cause to
the outcome begins with a visible arrow (one that no hidden cause can explain), if it holds nothing that may lie on or
below such a path, and if it blocks all other paths. Where any set is valid, the possible ancestors of the two,
without what is forbidden, are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dpcurate.errors import GraphError
from dpcurate.graphs.adjustment import Adjustment
from dpcurate.graphs.base_graph import Arrow, Mark, require_known
from dpcurate.graphs.graph import Cpdag
from dpcurate.graphs.orient import extension
from dpcurate.graphs.pag import Pag

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
    forbidden = _forbidden(pag, near, cause, outcome, reached)
    mixed = _member(pag)
    if mixed is None:
        return None
    without = {ends: mark for ends, mark in mixed.items() if not (cause in ends and set(ends) & set(first))}
    above = _backward(cause, pag.marks, near) | _backward(outcome, pag.marks, near)
    given = tuple(name for name in pag.nodes if name in above - forbidden - {cause, outcome})
    if not m_separated(without, cause, outcome, given):
        return None
    return Adjustment(True, tuple(dict.fromkeys((_least(without, cause, outcome, given), given))))


def _least(ends: EndMarks, cause: str, outcome: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """A part of a valid set that still blocks all paths, and would not with one column less."""
    for name in given:
        fewer = tuple(x for x in given if x != name)
        if m_separated(ends, cause, outcome, fewer):
            return _least(ends, cause, outcome, fewer)
    return given


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


def _forbidden(pag: Pag, near: Near, cause: str, outcome: str, reached: set[str]) -> set[str]:
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


def _member(pag: Pag) -> dict[Arrow, Mark] | None:
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
    above = names.union(*(_above(name, ends, near) for name in names))
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


def _above(name: str, ends: EndMarks, near: Near) -> set[str]:
    """The ancestors of a column in a mixed graph."""
    return _walk(name, near, lambda a, b: ends[b, a] == "arrow" and ends[a, b] == "tail", "")
