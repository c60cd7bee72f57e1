"""A plan as one self-contained page: a chart drawn here, the figures, what they mean. No script, no network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpcurate.planning.plan import Expectation, Plan

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>dpcurate plan</title><style>
:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--faint:#767676;--line:#ddd}
@media (prefers-color-scheme:dark){:root{--ink:#eee;--paper:#151515;--faint:#9a9a9a;--line:#3a3a3a}}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:var(--ink);
background:var(--paper)}
svg{width:100%;height:auto}svg text{font-size:12px;fill:var(--ink)}.axis{stroke:var(--line)}
.curve{fill:none;stroke:var(--ink);stroke-width:2}.range{fill:var(--ink);opacity:.08}
.limit{stroke:var(--ink);stroke-dasharray:1 2}
table{border-collapse:collapse;width:100%}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th:first-child,td:first-child{text-align:left}.advice{border-left:4px solid;padding-left:1rem;font-weight:600}
</style></head><body><h1>What to expect before spending</h1>
$advice$remarks
<figure>$chart
<figcaption>Mean skeleton F1 against epsilon. Shaded: where 8 of 10 tables lie by $first.$dotted</figcaption></figure>
<table><thead><tr><th scope="col">method</th><th scope="col">epsilon</th><th scope="col">F1</th>
<th scope="col">8 of 10 tables</th><th scope="col">missed edges</th><th scope="col">false edges</th></tr></thead>
<tbody>$rows</tbody></table></body></html>
""")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "1 5")
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 560.0, 15.0, 290.0


def page(plan: Plan, advice: str | None) -> str:
    """The page of a plan."""
    return _PAGE.substitute(
        advice="" if advice is None else f'<p class="advice">{escape(advice)}</p>',
        remarks="".join(f"<p>{escape(text)}</p>" for text in plan.remarks),
        first=escape(plan.methods[0]),
        chart=f'<svg viewBox="0 0 720 330" role="img" aria-label="skeleton F1 against epsilon">{_chart(plan)}</svg>',
        dotted=" Dotted: exact methods, without privacy." if plan.ceiling else "",
        rows="".join(_rows(plan)),
    )


def _rows(plan: Plan) -> Iterator[str]:
    for cell in plan.cells.values():
        yield _row(cell, "no noise" if math.isinf(cell.epsilon) else f"{cell.epsilon:g}")
    for cell in plan.ceiling.values():
        yield _row(cell, "without privacy")


def _row(cell: Expectation, epsilon: str) -> str:
    spread = f"{cell.low:.2f} to {cell.high:.2f}"
    cells = (epsilon, f"{cell.f1:.2f}", spread, f"{cell.missed:.1f}", f"{cell.false:.1f}")
    return f"<tr><td>{escape(cell.method)}</td>{''.join(f'<td>{text}</td>' for text in cells)}</tr>"


def _chart(plan: Plan) -> str:
    parts = [*_axes(plan)]
    ends = []
    for method, dash in zip(plan.methods, _DASHES * len(plan.methods), strict=False):
        cells = [plan.cells[method, e] for e in plan.epsilons]
        if method == plan.methods[0]:  # more than one would hide each other
            upper = [_point(plan, c.epsilon, c.high) for c in cells]
            lower = [_point(plan, c.epsilon, c.low) for c in reversed(cells)]
            parts.append(f'<polygon class="range" points="{" ".join(upper + lower)}"/>')
        line = " ".join(_point(plan, c.epsilon, c.f1) for c in cells)
        parts.append(f'<polyline class="curve" stroke-dasharray="{dash}" points="{line}"/>')
        ends.append((_y(cells[-1].f1), method, dash))
    for method, cell in plan.ceiling.items():
        y = f"{_y(cell.f1):.1f}"
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{_RIGHT}" y1="{y}" y2="{y}"/>')
        ends.append((_y(cell.f1), f"{method}, exact", "1 2"))
    return "".join(parts + _labels(ends))


def _axes(plan: Plan) -> Iterator[str]:
    for level in (0, 0.2, 0.4, 0.6, 0.8, 1):
        y = _y(level)
        yield f'<line class="axis" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{level:g}</text>'
    for epsilon in plan.epsilons:
        yield f'<text x="{_x(plan, epsilon):.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{epsilon:g}</text>'
    yield f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 36}" text-anchor="middle">epsilon</text>'


def _labels(ends: list[tuple[float, str, str]]) -> list[str]:
    """Names beside the ends of the curves, with a piece of the line, pushed apart."""
    parts, last = [], -math.inf
    for wanted, method, dash in sorted(ends):
        last = max(wanted, last + 16)
        parts.append(
            f'<line class="curve" stroke-dasharray="{dash}" x1="568" x2="598" y1="{last:.1f}" y2="{last:.1f}"/>'
            f'<text x="604" y="{last + 4:.1f}">{escape(method)}</text>'
        )
    return parts


def _x(plan: Plan, epsilon: float) -> float:
    low, high = math.log(plan.epsilons[0]), math.log(plan.epsilons[-1])
    return (_LEFT + _RIGHT) / 2 if low == high else _LEFT + (math.log(epsilon) - low) / (high - low) * (_RIGHT - _LEFT)


def _y(f1: float) -> float:
    return _BOTTOM - f1 * (_BOTTOM - _TOP)


def _point(plan: Plan, epsilon: float, f1: float) -> str:
    return f"{_x(plan, epsilon):.1f},{_y(f1):.1f}"
