"""The tables of docs/audit.md, and where they stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpcurate._files import save_text
from dpcurate.audit.cases import CaseStudy
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


def proved_table(studies: Sequence[CaseStudy]) -> str:
    """A row for each case: what was charged, and what audits found with all and with 0.7 of the noise."""
    lines = [
        "| audited | statistic | charged | runs | found | found with 0.7 of the noise | 0.7 accused |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [_row(one) for one in studies])


def _row(one: CaseStudy) -> str:
    first, weak = one.honest.bounds[0], one.weak.bounds[0]
    charged = f"{first.limit.currency} {first.limit.value:.3g}"
    asked = one.case.audited
    statistic = type(asked.statistic).__name__ if isinstance(asked, Release) else ""
    found = f"{first.found.lower:.3g}{' ACCUSED' if one.honest.accused else ''}"
    caught = "yes" if one.weak.accused else "no"
    cells = [one.case.name, statistic, charged, f"{one.case.runs:,}", found, f"{weak.found.lower:.3g}", caught]
    return f"| {' | '.join(cells)} |"


def write(path: Path, sections: dict[str, str]) -> None:
    """Put each text between the marks `<!-- name -->` and `<!-- end of name -->`."""
    page = path.read_text(encoding="utf-8")
    for name, text in sections.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, found, rest = page.partition(start)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise QueryError(f"{path} has no place for {name}: it needs the lines {start.strip()} and {end.strip()}")
        page = before + start + text + end + after
    save_text(path, page)
