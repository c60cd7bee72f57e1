"""Step 1, Choose: a table, how it is read, and the budget that it will spend from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import RedirectResponse, Response

from dpcurate import Ledger, Schema
from dpcurate.errors import DpcurateError, FormatError
from dpcurate.studio.cards import known
from dpcurate.studio.example_tables import EXAMPLES, make_example
from dpcurate.studio.looks import LAYOUT
from dpcurate.studio.project import STATE, Workplace, near_ledgers
from dpcurate.studio.visit import Visit
from dpcurate.studio.words import BudgetBar, bar_of, promise, total_promise, typed_number

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".xlsx", ".dta", ".sav", ".sas7bdat", ".xpt")
MOST_LISTED = 500
"""Files and folders of one folder that are listed."""
LARGEST_CEILING = 100.0
TAB = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True, slots=True)
class Listing:
    """A folder as the first page shows it: paths are relative to the workplace."""

    here: str
    above: str | None
    folders: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str, str], ...]
    more: bool
    parquet: str | None
    """The folder itself, if it holds Parquet files that may be one table."""


def start(visit: Visit) -> Response:
    """The first page: projects, files and examples."""
    workplace = visit.site.workplace
    projects = []
    for project in workplace.projects():
        try:
            projects.append((project.id, project.state))
        except FormatError:
            continue
    listing = _listing(workplace, visit.query.get("folder", ""))
    return visit.site.page(
        "start.html", projects=projects, listing=listing, workplace=workplace.folder, examples=EXAMPLES
    )


def _listing(workplace: Workplace, relative: str) -> Listing:
    folder = workplace.inside(relative)
    try:
        entries = sorted(folder.iterdir(), key=lambda path: path.name.lower())
    except OSError as error:
        raise FormatError(f"the folder cannot be read: {error.strerror}") from None
    shown = [path for path in entries if not path.name.startswith(".")]

    def relation(path: Path) -> str:
        return str(path.relative_to(workplace.folder))

    folders = [p for p in shown if p.is_dir() and not p.is_symlink() and not (p / STATE).exists()]
    files = [p for p in shown if p.is_file() and p.name.lower().endswith(TABLES)]
    parts = [p for p in files if p.suffix == ".parquet"]
    return Listing(
        relation(folder) if folder != workplace.folder else "",
        None if folder == workplace.folder else relation(folder.parent).removeprefix("."),
        tuple((p.name, relation(p)) for p in folders[:MOST_LISTED]),
        tuple((p.name, relation(p), _size(p)) for p in files[:MOST_LISTED]),
        len(files) > MOST_LISTED or len(folders) > MOST_LISTED,
        relation(folder) if len(parts) > 1 and folder != workplace.folder else None,
    )


def _size(path: Path) -> str:
    size = float(path.stat().st_size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def make(visit: Visit) -> Response:
    """A new project for what was chosen."""
    workplace = visit.site.workplace
    example = visit.text("example")
    if example:
        project = make_example(workplace, example)
    else:
        listed = visit.text("listed")
        table = str(workplace.folder / listed) if listed else visit.text("path")
        project = workplace.make(*_table(table, workplace.folder))
        visit.site.looks.draft(project)
    return RedirectResponse(f"/p/{project.id}/choose", status_code=303)


def _table(given: str, folder: Path) -> tuple[str, str]:
    """The table's place as the library takes it, and a name for it."""
    if not given:
        raise FormatError("choose a file, or type the path of one")
    if "://" in given:
        scheme, _, rest = given.partition("://")
        user, at, _ = rest.partition("@")
        if at and ":" in user:
            raise FormatError(
                "leave the password out of the address: it would be written into the project folder. Set PGPASSWORD "
                "before you start the studio, or put it into ~/.pgpass"
            )
        return given, rest.rpartition("#")[2].rpartition("/")[2] or scheme
    place, hash_, part = given.partition("#")
    path = folder / Path(place).expanduser()  # an absolute one stays as it is
    if not path.exists() and not any(c in place for c in "*?["):
        raise FormatError(f"there is no file or folder {str(path)!r}")
    name = path.name
    for suffix in sorted(TABLES, key=len, reverse=True):
        name = name[: -len(suffix)] if name.lower().endswith(suffix) else name
    return f"{path}{hash_}{part}", part or name or "table"


# --- how it is read, and the budget -----------------------------------------------------------------------------------


def show(visit: Visit) -> Response:
    """How the table is read, and the budget."""
    project, state = visit.project, visit.project.state
    drafting = None if state.cards else visit.site.looks.draft(project)
    ledgers = [(str(path), bar_of(ledger), ledger.facts) for path, ledger in near_ledgers(project)]
    bar: BudgetBar | None = None
    problem = ""
    try:
        ledger = project.ledger
        bar = None if ledger is None else bar_of(ledger)
    except DpcurateError as error:
        problem = str(error)
    values: dict[str, Any] = {"drafting": drafting, "ledgers": ledgers, "bar": bar, "problem": problem}
    return visit.page(
        "choose.html", "choose", **values, promise=promise(state.ceiling), total=total_promise(state.ceiling),
        layout={name: state.file.get(name, "") for name in LAYOUT}, text_file=_is_text(state.table),
    )  # fmt: skip


def _is_text(table: str) -> bool:
    return table.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz"))


def save(visit: Visit) -> Response:
    """Keep the budget; read the file anew, or take a schema file, if that was asked for."""
    project, action = visit.project, visit.text("do")
    if action == "again":
        visit.site.looks.again(project, _layout(visit))
        return visit.go("choose")
    if action == "schema":
        schema = Schema.load(visit.site.workplace.folder / Path(visit.text("schema")).expanduser())
        file = {name: getattr(schema.file, name) for name in (*LAYOUT, "missing")}
        file = {name: list(value) if isinstance(value, tuple) else value for name, value in file.items() if value}
        project.change(cards=known(schema), file=file, rows=str(schema.rows or ""), rows_guessed=False)
        return visit.go("describe")
    if project.ledger is None or visit.text("ledger") not in ("", project.state.ledger):
        _keep_budget(visit)
    return visit.go("choose" if action == "save" else "describe")


def _keep_budget(visit: Visit) -> None:
    chosen = visit.text("ledger_path") or visit.text("ledger")
    if chosen and chosen != "new":
        path = visit.site.workplace.folder / Path(chosen).expanduser()
        Ledger.open(path)  # refused here if it is none, or damaged
        visit.project.change(ledger=str(path))
        return
    visit.project.change(ledger="", ceiling=ceiling_of(visit.text("ceiling")))


def ceiling_of(text: str) -> float:
    """The total epsilon of a new budget, as typed."""
    ceiling = typed_number(text, "the budget is a number such as 2")
    if not 0 < ceiling <= LARGEST_CEILING:
        raise FormatError(f"the budget is a number above 0 and at most {LARGEST_CEILING:g}, not {text!r}")
    return ceiling


def _layout(visit: Visit) -> dict[str, Any]:
    layout: dict[str, Any] = {name: visit.form.get(name, "") for name in LAYOUT if visit.form.get(name, "").strip()}
    if "separator" in layout:
        layout["separator"] = TAB.get(layout["separator"], layout["separator"])
    if "skip" in layout:
        try:
            layout["skip"] = int(layout["skip"])
        except ValueError:
            raise FormatError("the number of lines before the header is a whole number") from None
    return layout
