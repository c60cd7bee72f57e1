"""Whether the answers to all pairs fit into memory: told from the schema alone, before anything is charged."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dpcurate.errors import DomainTooLarge
from dpcurate.learn.measure_once.blocks import Columns

BYTES_A_PAIR = 4096
"""An answer, its moments and their places in the search, beside the numbers in them; measured on 441 columns."""
BYTES_A_CELL = 64
"""Eight numbers for every cell of a pair's table: sums, noised sums, moments with and without noise."""
MEMORY = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")
"""Where a container says what it may use, and does."""


def check_memory(levels: Sequence[int], pairs: Sequence[Columns], free: int | None) -> None:
    """Refuse pairs that need more memory than is free; None says that nobody knows."""
    needed = bytes_of_pairs(levels, pairs)
    if free is not None and needed > free:
        raise DomainTooLarge(
            f"{len(levels):,} columns make {len(pairs):,} pairs, whose answers take about {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB of memory are free: leave columns out of the schema, merge levels, forbid edges "
            "that cannot be (Knowledge(forbidden_edges=...)), or use a machine with more memory. Nothing was spent."
        )


def bytes_of_pairs(levels: Sequence[int], pairs: Sequence[Columns]) -> int:
    """About what the answers to these pairs take, with all that is made from them."""
    return sum(BYTES_A_PAIR + BYTES_A_CELL * levels[a] * levels[b] for a, b in pairs)


def free_memory() -> int | None:
    """Bytes that a process may still take, where the system tells: of the machine, or less in a container."""
    known = [free for free in (_of_machine(), _of_container()) if free is not None]
    return min(known, default=None)


def _of_machine() -> int | None:
    if MEMORY.exists():  # Linux
        facts = _facts(MEMORY)
        return facts["MemAvailable"] * 1024 if "MemAvailable" in facts else None
    if sys.platform == "win32":
        return None
    return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))  # macOS tells only what is built in


def _of_container() -> int | None:
    try:
        limit, used = (int((CONTAINER / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        given_back = _facts(CONTAINER / "memory.stat").get("inactive_file", 0)  # files read, kept while nobody asks
    except (OSError, ValueError):  # no container, or one without a limit
        return None
    return limit - used + given_back


def _facts(path: Path) -> dict[str, int]:
    """A name and a number in each line."""
    lines = (line.replace(":", " ").split() for line in path.read_text(encoding="ascii").splitlines())
    return {line[0]: int(line[1]) for line in lines}
