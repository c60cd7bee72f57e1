"""Whether the answers to all pairs fit into memory: told from public facts, before anything is charged.

These are the schema and how much memory there is in all. How much of it is free would tell how many rows are held.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dpcurate.errors import DomainTooLarge
from dpcurate.learn.measure_once.blocks import Columns

BYTES_A_PAIR = 4096
"""An answer, its moments and their places in the search, beside the numbers in them; measured on 441 columns."""
BYTES_A_CELL = 64
"""Eight numbers for every cell of a pair's table: sums, noised sums, moments with and without noise."""
CONTAINER = Path("/sys/fs/cgroup/memory.max")
"""Where a container says what it may use."""


def check_memory(levels: Sequence[int], pairs: Sequence[Columns], memory: int | None) -> None:
    """Refuse pairs that need more memory than there is; None says that nobody knows."""
    needed = bytes_of_pairs(levels, pairs)
    if memory is not None and needed > memory:
        raise DomainTooLarge(
            f"{len(levels):,} columns make {len(pairs):,} pairs, whose answers take about {needed / 1e9:.1f} GB, and "
            f"the machine has {memory / 1e9:.1f} GB of memory: leave columns out of the schema, merge levels, forbid "
            "edges that cannot be (Knowledge(forbidden_edges=...)), or use a larger machine. Nothing was spent."
        )


def bytes_of_pairs(levels: Sequence[int], pairs: Sequence[Columns]) -> int:
    """About what the answers to these pairs take, with all that is made from them."""
    return sum(BYTES_A_PAIR + BYTES_A_CELL * levels[a] * levels[b] for a, b in pairs)


def memory_in_all() -> int | None:
    """Bytes that the machine has, or fewer in a container, where the system tells."""
    known = [size for size in (_of_machine(), _of_container()) if size is not None]
    return min(known, default=None)


def _of_machine() -> int | None:
    if not hasattr(os, "sysconf"):  # Windows
        return None
    return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))


def _of_container() -> int | None:
    try:
        return int(CONTAINER.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or one without a limit
        return None
