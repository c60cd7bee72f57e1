"""Every attack against code that was broken on purpose: an attack that sees nothing is worthless."""

from __future__ import annotations

import math

from benchmarks.chaos.attacks import ATTACKS

ROUNDS = 8
"""At most, until the fault is seen."""


def self_test(names: list[str], seed: int) -> int:
    """0 if every breakage was reported by the attack that is there for it."""
    from benchmarks.chaos.__main__ import run

    blind = 0
    for name in names:
        for broken in ATTACKS[name].breaks:
            seen, skipped = False, ""
            for turn in range(ROUNDS):
                arena = run(name, ATTACKS[name], rounds=1, until=math.inf, seed=seed + turn, broken=broken)
                seen, skipped = bool(arena.faults), arena.skipped
                if seen or skipped:
                    break
            blind += not (seen or skipped)
            print(f"{name}, {broken}: {skipped or ('seen: ' + arena.faults[0] if seen else 'NOT SEEN')}", flush=True)
    return 1 if blind else 0
