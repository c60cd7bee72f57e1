"""Step 3, What comes first?: a board of tiers, and sentences about pairs of columns. Costs nothing, at any time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from starlette.responses import Response

from dpcurate.draw.text import short, width
from dpcurate.errors import DpcurateError
from dpcurate.schema.column_order import likely_first
from dpcurate.studio.project import Project, ProjectState
from dpcurate.studio.tiers import ANYWHERE, KINDS, REST, TIERS, Board
from dpcurate.studio.visit import Visit
from dpcurate.studio.watched_runs import finished

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


# --- its picture: columns from early to late, what is said of pairs, and what a run has found -----------------------

MOST_COLUMNS = 40
"""Columns up to which a picture is clearer than a list."""
HIGH, GAP, SIDE, ABOVE, BULGE = 28.0, 16.0, 90.0, 34.0, 46.0
"""Sizes of boxes, the room between them, above them, and of the way around them."""


@dataclass(frozen=True, slots=True)
class PictureBox:
    """A column of the table: its centre, how wide it is, its number and its label."""

    x: float
    y: float
    wide: float
    number: int
    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """A pair: a path, its kind (one of `KINDS`, or "found"), the middle, the numbers of its ends, and words."""

    path: str
    kind: str
    middle: tuple[float, float]
    ends: tuple[int, int]
    words: str
    arrow: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """All of it, with its size and the titles of the tiers."""

    wide: float
    high: float
    titles: tuple[tuple[float, str], ...]
    boxes: tuple[PictureBox, ...]
    lines: tuple[Line, ...]
    run: int | None
    """The run whose links are shown."""


def picture_of(
    project: Project, board: Board, names: Sequence[str], tiers: Sequence[tuple[int, str, tuple[str, ...]]]
) -> Picture | None:
    """The picture; None if there are too many columns for one."""
    if len(names) > MOST_COLUMNS:
        return None
    shown = [(title, here) for _, title, here in tiers if here]
    boxes, titles, left = [], [], SIDE / 4
    for title, here in shown:
        wide = max(60.0, *(width(short(name)) + 18 for name in here))
        titles.append((round(left + wide / 2, 1), title))
        for place, name in enumerate(here):
            y = ABOVE + HIGH / 2 + place * (HIGH + GAP)
            boxes.append(
                PictureBox(round(left + wide / 2, 1), round(y, 1), round(wide, 1), names.index(name), name, short(name))
            )
        left += wide + SIDE
    by_name = {box.name: box for box in boxes}
    run, found = _found(project)
    pairs = [(a, "found", b, directed) for a, b, directed in found]
    pairs += [(a, kind, b, kind in ("causes", "not")) for a, kind, b in board.facts]
    lines = [
        _line(by_name[a], kind, by_name[b], directed) for a, kind, b, directed in pairs if {a, b} <= by_name.keys()
    ]
    high = max(box.y for box in boxes) + HIGH / 2 + 10
    return Picture(round(left - SIDE + BULGE, 1), high, tuple(titles), tuple(boxes), tuple(lines), run)


def _line(a: PictureBox, kind: str, b: PictureBox, directed: bool) -> Line:
    words = f"{a.name} {KINDS.get(kind, 'was found to cause' if directed else 'was found linked to')} {b.name}"
    if a.x == b.x:  # one above the other: around the boxes between them
        edge, out = a.x + a.wide / 2, a.x + a.wide / 2 + BULGE
        path = f"M{edge:.1f} {a.y:.1f}C{out:.1f} {a.y:.1f} {out:.1f} {b.y:.1f} {edge:.1f} {b.y:.1f}"
        return Line(path, kind, (round(edge + 0.75 * BULGE, 1), (a.y + b.y) / 2), (a.number, b.number), words, directed)
    way = 1 if b.x > a.x else -1
    start, end = a.x + way * a.wide / 2, b.x - way * b.wide / 2
    path = f"M{start:.1f} {a.y:.1f}L{end:.1f} {b.y:.1f}"
    return Line(path, kind, (round((start + end) / 2, 1), (a.y + b.y) / 2), (a.number, b.number), words, directed)


def _found(project: Project) -> tuple[int | None, list[tuple[str, str, bool]]]:
    """The links of the newest run, as its report has them."""
    try:
        runs = finished(project.ledger)
        if not runs:
            return None, []
        data = json.loads((project.result_folder(runs[0].number) / "report.json").read_text(encoding="utf-8"))
        return runs[0].number, [(str(e["a"]), str(e["b"]), bool(e["directed"])) for e in data["edges"]]
    except (DpcurateError, OSError, ValueError, KeyError, TypeError):  # moved away, or written by another version
        return None, []
