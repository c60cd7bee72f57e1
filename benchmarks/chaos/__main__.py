"""Try to break the ledger and the curator from outside.

    python -m benchmarks.chaos --minutes 30 --page docs/reliability.md
    python -m benchmarks.chaos --minutes 1 --only kills,races --seed 7
    python -m benchmarks.chaos --self-test

Prints what was tried and every answer that was not paid or payment that was lost; ends with 1 if there is one, with 2
if an attack did not come to its end. The seed fixes what is tried, not the instants the machine makes of it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import zlib
from contextlib import closing
from pathlib import Path

from benchmarks.chaos.arena import Arena, Unavailable, Unfinished
from benchmarks.chaos.attacks import ATTACKS, WHOLE, Attack
from benchmarks.chaos.page import summary, write
from benchmarks.chaos.selftest import self_test
from benchmarks.chaos.worker import prepare_ledger


def run(name: str, attack: Attack, *, rounds: int, until: float, seed: int, broken: str | None = None) -> Arena:
    """So many rounds of an attack, or fewer when the time is over."""
    arena = Arena(name, random.Random(zlib.crc32(f"{name} {seed}".encode())), broken)
    try:
        with closing(attack.run(arena)) as going:
            for _ in range(rounds):
                if time.monotonic() > until and arena.tried["rounds"]:
                    break
                next(going)
                arena.tried["rounds"] += 1
    except Unavailable as reason:
        arena.skipped = str(reason)
    except Unfinished as reason:
        arena.unfinished.append(f"{name}: {reason}")
    return arena


def run_all(names: list[str], minutes: float, seed: int) -> list[Arena]:
    """All of them; one that is slow may take up to half of the time that was meant for the later ones."""
    end, arenas = time.monotonic() + 60 * minutes, []
    for place, name in enumerate(names):
        attack, now = ATTACKS[name], time.monotonic()
        later = sum(ATTACKS[n].minutes for n in names[place + 1 :]) / (2 * sum(ATTACKS[n].minutes for n in names))
        until = end - 60 * minutes * later
        rounds = max(1, round(attack.rounds * minutes / WHOLE))
        arenas.append(run(name, attack, rounds=rounds, until=until, seed=seed))
        print(summary(arenas[-1], seconds=time.monotonic() - now), flush=True)
    return arenas


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in ATTACKS]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known are {', '.join(ATTACKS)}")
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=WHOLE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=_names, default=list(ATTACKS), metavar=",".join(ATTACKS))
    parser.add_argument("--page", type=Path, help="write the figures here")
    parser.add_argument(
        "--self-test", action="store_true", help="break the ledger on purpose: every attack must see it"
    )
    args = parser.parse_args()
    prepare_ledger()
    if args.self_test:
        return self_test(args.only, args.seed)
    arenas = run_all(args.only, args.minutes, args.seed)
    faults = [fault for arena in arenas for fault in arena.faults]
    print(f"\n{len(faults)} faults" if faults else "\nno answer unpaid, no payment lost")
    if args.page:
        words = f"--minutes {args.minutes:g} --seed {args.seed}"
        if args.only != list(ATTACKS):
            words += f" --only {','.join(args.only)}"
        write(args.page, arenas, f"python -m benchmarks.chaos {words}")
    return 1 if faults else 2 if any(arena.unfinished for arena in arenas) else 0


if __name__ == "__main__":
    sys.exit(main())
