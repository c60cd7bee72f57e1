"""Which reading of the paper makes a statement true."""

from __future__ import annotations

from collections.abc import Iterator

from dpcurate.published.reproduction.statement import Statement, View
from dpcurate.published.reproduction.summary import Runs


def looked_at(statement: Statement) -> dict[str, str]:
    """Columns that a statement is judged by, in words: F1 scores, or units of tests."""
    if statement.rows == "tests":
        return {"counted": "the authors' unit", "answered": "answered tests"}
    if statement.rows == "plain":
        return {"": ""}
    return {"pc_f1": "arcs, PC run", "authors_f1": "arcs, authors' list", "skeleton_f1": "skeleton, network"}


def axes_of(statement: Statement) -> tuple[str, ...]:
    return ("nominal",) if statement.rows in ("tests", "plain") else statement.axes


def literal(statement: Statement, runs: Runs) -> str:
    """Verdicts of the most literal reading, part by part."""
    found = []
    for name, views in _views(statement, runs):
        found.append(f"{name}: {statement.verdict(runs, _part(statement, name), views[0])}".removeprefix(": "))
    return "; ".join(found)


def conclusion(statement: Statement, runs: Runs) -> str:
    """One sentence: what makes the statement true, part by part."""
    found = [_makes_true(statement, runs, name, views) for name, views in _views(statement, runs)]
    return "; ".join(found) + "."


def _views(statement: Statement, runs: Runs) -> Iterator[tuple[str, list[View]]]:
    """The views of each part, in the order in which they count; units of tests are parts of their own."""
    looks, readings, axes = looked_at(statement), statement.readings(runs), axes_of(statement)
    if statement.rows == "tests":
        for metric, words in looks.items():
            yield words, [View(metric, a, r) for r in readings for a in axes]
        return
    for part in statement.parts:
        name = part if len(statement.parts) > 1 else ""
        yield name, [View(m, a, r) for m in looks for r in readings for a in axes]


def _part(statement: Statement, name: str) -> str:
    return name if name in statement.parts else next(iter(statement.parts))


def _makes_true(statement: Statement, runs: Runs, name: str, views: list[View]) -> str:
    found = [(view, statement.verdict(runs, _part(statement, name), view)) for view in views]
    true = next((view for view, verdict in found if verdict.word == "holds"), None)
    if true is not None:
        return f"{name}: **true**{_words(statement, true)}".removeprefix(": ")
    told = [(view, v) for view, v in found if any(v.counts)]
    if not told:
        return f"{name}: not run".removeprefix(": ")
    view, near = max(told, key=lambda p: (p[1].counts[0] - p[1].counts[1]) / sum(p[1].counts))
    if len(views) == 1:
        why = f"against: {', '.join(near.against[:4])}" if near.against else "the rest is open"
        return f"{name}: {near.word} ({why})".removeprefix(": ")
    return f"{name}: true under no reading; nearest{_words(statement, view)} ({near})".removeprefix(": ")


def _words(statement: Statement, view: View) -> str:
    """A view in words, after a word such as 'true'."""
    parts = [f"as *{view.reading}*"] if view.reading else []
    if len(axes_of(statement)) > 1:
        parts.append(f"at {view.axis} leakage")
    if statement.rows != "tests" and (words := looked_at(statement)[view.metric]):
        parts.append(f"by {words}")
    return f" {', '.join(parts)}" if parts else ""
