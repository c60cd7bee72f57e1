"""Step 3, What comes first?: a board of tiers, and sentences about pairs of columns. Costs nothing, at any time."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from starlette.responses import Response

from dpcurate.errors import DpcurateError
from dpcurate.schema.column_order import likely_first
from dpcurate.studio.order_picture import picture_of
from dpcurate.studio.project import Project, ProjectState
from dpcurate.studio.tiers import ANYWHERE, KINDS, REST, TIERS, Board
from dpcurate.studio.visit import Visit

EARLIER, LATER = "earlier", "later"


def show(visit: Visit) -> Response:
    """The board."""
    project = visit.project
    schema, board = project.schema, project.state.board
    if schema is None:
        return visit.page("not_described.html", "order")
    names = schema.names
    tiers = [(number, title, board.at(number, names)) for number, title in enumerate(TIERS)]
    tiers.append((ANYWHERE, "No claim", board.at(ANYWHERE, names)))
    suggested = tuple(name for name in likely_first(schema.columns) if board.place(name) == REST)
    return visit.page(
        "order.html", "order", names=names, tiers=tiers, kinds=KINDS, board=board, suggested=suggested,
        problem=_problem(board, names), places={name: i for i, name in enumerate(names)}, rest=REST, anywhere=ANYWHERE,
        picture=picture_of(project, board, names, tiers), pair=_pair(visit, names),
    )  # fmt: skip


def _problem(board: Board, names: tuple[str, ...]) -> str:
    try:
        board.knowledge(names).check(names)
    except DpcurateError as error:
        return str(error)
    return ""


def _pair(visit: Visit, names: tuple[str, ...]) -> tuple[str, str]:
    """The two columns that the form speaks of."""
    a, b = visit.query.get("a", ""), visit.query.get("b", "")
    return (a, b) if {a, b} <= set(names) else (names[0], names[1])


def save(visit: Visit) -> Response:
    """Keep a change of the board."""
    project = visit.project
    with project.changing() as holder:
        holder[0] = _with_board(visit, project, holder[0])
    if visit.text("do") == "next":
        return visit.go("plan")
    pair = {key: visit.form[key] for key in ("a", "b") if key in visit.form}
    return visit.go("order", f"?{urlencode(pair)}" if visit.text("do").startswith("say:") else "")


def _with_board(visit: Visit, project: Project, state: ProjectState) -> ProjectState:
    schema = project.schema
    return state if schema is None else replace(state, board=changed(visit, state.board, schema.names))


def changed(visit: Visit, board: Board, names: tuple[str, ...]) -> Board:
    """The board after what a person did: selects, one of the buttons, or a sentence."""
    for i, name in enumerate(names):
        place = visit.form.get(f"t{i}", "")
        if place.lstrip("-").isdecimal() and int(place) != board.place(name):
            board = board.put(name, int(place))
    action, _, which = visit.text("do").partition(":")
    if action in (EARLIER, LATER) and which.isdecimal() and int(which) < len(names):
        board = board.moved(names[int(which)], -1 if action == EARLIER else 1)
    elif action == "suggest":
        for name in visit.form.get("suggested", "").split("\n"):
            board = board.put(name, 0) if name in names else board
    elif action == "unsay" and which.isdecimal():
        board = board.unsaid(int(which))
    elif action == "say" and which in KINDS:
        a, b = visit.form.get("a", ""), visit.form.get("b", "")
        if {a, b} <= set(names) and a != b:
            board = board.said(a, which, b)
    return board
