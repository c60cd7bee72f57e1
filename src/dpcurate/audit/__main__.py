"""`python -m dpcurate.audit --long`: what `make audit` runs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from dpcurate.audit.long import all_studies, control_audits, workers


def main(arguments: list[str] | None = None) -> int:
    """Print tables for docs/audit.md; the status is 1 if something proved was accused or a control was not."""
    parser = argparse.ArgumentParser(prog="python -m dpcurate.audit", description=main.__doc__)
    parser.add_argument("--long", action="store_true", help="about 20 minutes on two cores instead of about 3")
    parser.add_argument("--seconds", type=float, default=None, help="for each method and epsilon")
    parser.add_argument("--workers", type=int, default=workers())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    given = parser.parse_args(arguments)
    seconds = given.seconds or (18.0 if given.long else 1.0)
    begun = time.monotonic()
    wrong = 0 if given.only else _controls(given.seed)
    print("| proved | epsilon | accused | runs each | one audit of all runs | 0.7 of the noise caught (runs) |")
    print("|---|---|---|---|---|---|", flush=True)
    for one in all_studies(
        seconds=seconds, seed=given.seed, workers=given.workers, progress=_progress(begun), only=given.only
    ):
        print(one)
        wrong += one.blamed
    print(f"\n{time.monotonic() - begun:.0f} seconds with {given.workers} process(es); {wrong} not as it should be")
    return 1 if wrong else 0


def _controls(seed: int) -> int:
    print("| negative control | claimed | found | event | frequencies | runs |\n|---|---|---|---|---|---|")
    found = control_audits(seed)
    for one in found:
        (b,) = one.bounds
        f, missed = b.found, "" if one.accused else " NOT CAUGHT"
        rates = f"{f.favoured:.3g}, {f.other:.3g}"
        print(f"| {one.subject} | {b.limit.value:g} | {f.lower:.3g}{missed} | {f.event} | {rates} | {one.runs} |")
    print(flush=True)
    return sum(not one.accused for one in found)


def _progress(begun: float) -> Callable[[int, int], None]:
    def show(done: int, total: int) -> None:
        spent = time.monotonic() - begun
        left = spent / done * (total - done)
        line = f"\r{done} of {total} audited, {spent:.0f} s, about {left:.0f} s left "
        print(line, end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show


if __name__ == "__main__":
    raise SystemExit(main())
