"""`python -m dpcurate.audit`: what `make audit` runs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dpcurate.audit import page
from dpcurate.audit.cases import all_studies, control_audits, workers


def main(arguments: list[str] | None = None) -> int:
    """Audit everything and print the tables of docs/audit.md.

    The status is 1 if something proved was accused, or if a control or something with 0.7 of its noise was not.
    """
    parser = argparse.ArgumentParser(prog="python -m dpcurate.audit", description=main.__doc__)
    parser.add_argument("--workers", type=int, default=workers())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="audit the cases whose name contains this, and no controls")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="also put the tables into this page")
    given = parser.parse_args(arguments)
    begun = time.monotonic()
    controls = [] if given.only else control_audits(given.seed)
    studies = all_studies(seed=given.seed, workers=given.workers, progress=_progress(begun), only=given.only)
    wrong = sum(not one.accused for one in controls) + sum(one.wrong for one in studies)
    spent = time.monotonic() - begun
    sections = {
        "controls": page.controls_table(controls),
        "proved": page.proved_table(studies),
        "run": f"`python -m dpcurate.audit --workers {given.workers} --seed {given.seed}`: {spent:.0f} seconds. "
        f"0.7 of the noise was accused in {sum(one.weak.accused for one in studies)} of {len(studies)} cases; "
        f"{sum(one.honest.accused for one in studies)} were accused with all of it.",
    }
    print("\n\n".join(sections.values()))
    if given.write is not None:
        page.write(given.write, sections)
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
