"""The paper's grid, and its page and figures in docs/: what `make paper` runs.

    python -m benchmarks.run [--quick] [-o DIR]

Runs and the cells to resume from stay in DIR (default: paper/); docs/paper.md and docs/figures/ are replaced.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.pages.paper import publish
from dpcurate.published.reproduction import main as reproduce


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=Path("paper"))
    asked = parser.parse_args()
    failed = reproduce([*(["--quick"] if asked.quick else []), "-o", str(asked.output)])
    if not failed:
        publish(asked.output / "runs.parquet")
    return failed


if __name__ == "__main__":
    sys.exit(main())
