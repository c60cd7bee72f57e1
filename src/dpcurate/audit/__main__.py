"""`python -m dpcurate.audit`: what `make audit` runs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dpcurate._files import save_text
from dpcurate.audit.cases import CaseStudy, all_studies, cases, control_audits, workers
from dpcurate.audit.run import Audit
from dpcurate.errors import QueryError
from dpcurate.queries import Release


def controls_table(audits: Sequence[Audit]) -> str:
    """The table of negative controls."""
    lines = [
        "| negative control | claimed | found | event | frequencies | runs on each table |",
        "|---|---|---|---|---|---|",
    ]
    for one in audits:
        (bound,) = one.bounds
        found, claimed = bound.found, f"{bound.limit.value:g}"
        lower = f"{found.lower:.3g}{'' if one.accused else ' NOT CAUGHT'}"
        rates = f"{found.favoured:.3g}, {found.other:.3g}"
        lines.append(f"| {one.subject} | {claimed} | {lower} | {found.event} | {rates} | {one.runs} |")
    return "\n".join(lines)


def proved_table(rows: Sequence[str]) -> str:
    """A row for each case: what was charged, and what audits found with all and with 0.7 of the noise."""
    lines = [
        "| audited | statistic | charged | runs | found | found with 0.7 of the noise | 0.7 accused |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *rows])


def rows_of(page: Path, studies: Sequence[CaseStudy]) -> list[str]:
    """The rows that a page has, with those of these studies in their place, in the order of the cases."""
    _, table, _ = _parts(page.read_text(encoding="utf-8"), "proved", page)
    known = {_name(line): line for line in table.splitlines()[2:]}
    known |= {one.case.name: _row(one) for one in studies}
    return [known[case.name] for case in cases() if case.name in known]


def summary(rows: Sequence[str]) -> str:
    """What the rows of the table come to, in two sentences."""
    powerful = {case.name: case.powerful for case in cases()}
    caught: dict[bool, list[bool]] = {True: [], False: []}
    for row in rows:
        caught[powerful[_name(row)]].append(row.endswith("| yes |"))
    accused, able, others = sum(" ACCUSED" in row for row in rows), caught[True], caught[False]
    return (
        f"These are {len(rows)} of the {len(powerful)} cases; `make audit` runs them all. 0.7 of the noise was accused "
        f"in {sum(able)} of the {len(able)} that are meant to have power, and in {sum(others)} of the {len(others)} "
        f"others. With all of the noise, {accused} were accused."
    )


def _row(one: CaseStudy) -> str:
    first, weak = one.honest.bounds[0], one.weak.bounds[0]
    charged = f"{first.limit.currency} {first.limit.value:.3g}"
    asked = one.case.audited
    statistic = type(asked.statistic).__name__ if isinstance(asked, Release) else ""
    found = f"{first.found.lower:.3g}{' ACCUSED' if one.honest.accused else ''}"
    caught = "yes" if one.weak.accused else "no"
    cells = [one.case.name, statistic, charged, f"{one.case.runs:,}", found, f"{weak.found.lower:.3g}", caught]
    return f"| {' | '.join(cells)} |"


def _name(row: str) -> str:
    """The case of a row."""
    return row.split(" | ")[0].removeprefix("| ")


def write(path: Path, sections: dict[str, str]) -> None:
    """Put each text between the marks `<!-- name -->` and `<!-- end of name -->`."""
    page = path.read_text(encoding="utf-8")
    for name, text in sections.items():
        before, _, after = _parts(page, name, path)
        page = before + text + after
    save_text(path, page)


def _parts(page: str, name: str, path: Path) -> tuple[str, str, str]:
    """A page up to the end of a mark, what is between the marks, and the rest."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, found, rest = page.partition(start)
    inside, closed, after = rest.partition(end)
    if not found or not closed:
        raise QueryError(f"{path} has no place for {name}: it needs the lines {start.strip()} and {end.strip()}")
    return before + start, inside, end + after


def main(arguments: list[str] | None = None) -> int:
    """Audit everything and print the tables of docs/audit.md.

    The status is 1 if something proved was accused, or if a control or something with 0.7 of its noise was not.
    """
    parser = argparse.ArgumentParser(prog="python -m dpcurate.audit", description=main.__doc__)
    parser.add_argument("--workers", type=int, default=workers())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="audit the cases whose name contains this, and no controls")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="PAGE",
        help="also put the tables into this page; with --only, the rows of these cases among those that are there",
    )
    given = parser.parse_args(arguments)
    begun = time.monotonic()
    controls = [] if given.only else control_audits(given.seed)
    studies = all_studies(seed=given.seed, workers=given.workers, progress=_progress(begun), only=given.only)
    wrong = sum(not one.accused for one in controls) + sum(one.wrong for one in studies)
    spent = time.monotonic() - begun
    rows = [_row(one) for one in studies]
    sections = {"proved": proved_table(rows), "run": summary(rows)}
    if not given.only:
        sections["controls"] = controls_table(controls)
    print("\n\n".join(sections.values()), f"\n\n{spent:.0f} seconds")
    if given.write is not None and given.only:
        rows = rows_of(given.write, studies)
        sections = {"proved": proved_table(rows), "run": summary(rows)}
    if given.write is not None:
        write(given.write, sections)
    return 1 if wrong else 0


def _progress(begun: float) -> Callable[[int, int], None]:
    def show(done: int, total: int) -> None:
        spent = time.monotonic() - begun
        left = spent / done * (total - done)
        line = f"\r{done} of {total} audited, {spent:.0f} s, about {left:.0f} s left "
        print(line, end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show


if __name__ == "__main__":
    raise SystemExit(main())
