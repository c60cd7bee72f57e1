"""The paper's Section IV and Figure 3 run again: `dpcurate reproduce [--quick] [-o DIR]`.

Cells of runs go to a directory one by one, so an interrupted grid goes on where it stopped. Figures
and page are made from the Parquet file of runs alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the grid, write runs.parquet, figures and paper.md; 0 if all of it was done."""
    from dpcurate.published.reproduction.grid import GRIDS
    from dpcurate.published.reproduction.paper_page import write_page
    from dpcurate.published.reproduction.store import Provenance, run_grid

    parser = argparse.ArgumentParser(prog="dpcurate reproduce", description="Reproduce the paper's tables and figures.")
    parser.add_argument("--quick", action="store_true", help="few runs, no verdicts, under 180 seconds")
    parser.add_argument("--grid", choices=sorted(GRIDS), help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, default=Path("paper"), help="directory (default: paper)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--commit", default="unknown", help=argparse.SUPPRESS)
    parser.add_argument("--fresh", action="store_true", help="do not go on from an earlier, interrupted run")
    asked = parser.parse_args(arguments)
    name = asked.grid or ("quick" if asked.quick else "full")
    try:
        made = Provenance(command="dpcurate reproduce" + (" --quick" if asked.quick else ""), commit=asked.commit)
        runs = run_grid(GRIDS[name](), asked.output, workers=asked.workers, fresh=asked.fresh, made=made)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130
    for path in (runs, *write_page(runs, asked.output)):
        print(path)
    return 0
