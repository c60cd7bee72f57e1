"""The tables of docs/audit.md, and where they stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpcurate.audit.long import REPEATS, Study
from dpcurate.audit.run import Audit
from dpcurate.errors import QueryError
from dpcurate.outputs import save_text


def controls_table(audits: Sequence[Audit]) -> str:
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


def proved_table(studies: Sequence[Study]) -> str:
    """A row for each case, with a column for each epsilon."""
    names = list(dict.fromkeys(one.name for one in studies))
    epsilons = list(dict.fromkeys(one.epsilon for one in studies))
    head = " | ".join(f"epsilon = {e:g}" for e in epsilons)
    lines = [
        f"| proved (first bound) | runs | {head} | audits that accused | 0.7 of the noise caught |",
        "|---|---|" + "---|" * (len(epsilons) + 2),
    ]
    return "\n".join(lines + [_row(name, [one for one in studies if one.name == name]) for name in names])


def _row(name: str, each: Sequence[Study]) -> str:
    bounds = " | ".join(f"{one.whole[0].found.lower:.4g} of {one.whole[0].limit.value:.4g}" for one in each)
    accused = sum(one.accused + any(b.exceeded for b in one.whole) for one in each)
    caught = ", ".join("yes" if one.caught else "no" for one in each)
    runs = ", ".join(_short(one.runs) for one in each)
    currency = each[0].whole[0].limit.currency
    audits = len(each) * (REPEATS + 1)
    return f"| {name} ({currency}) | {runs} | {bounds} | {accused} of {audits} | {caught} |"


def _short(runs: int) -> str:
    return f"{runs / 1000:.3g}k"


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
