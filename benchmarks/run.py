"""The paper's grid, and its page, figures and data in docs/: what `make paper` runs.

    python -m benchmarks.run [--quick] [-o DIR]

Runs and the cells to resume from stay in DIR (default: paper/). The full grid replaces docs/paper.md, its figures and
docs/paper/, which holds the runs and the tables behind the verdicts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.pages.paper import publish
from dpcurate.published.reproduction import main as reproduce

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """The commit of this checkout, with a mark if the package in it was changed since."""
    git = ["git", "-C", str(ROOT)]
    try:
        found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip() + ("-changed" if changed.stdout.strip() else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=Path("paper"))
    asked = parser.parse_args()
    quick = ["--quick"] if asked.quick else []
    failed = reproduce([*quick, "-o", str(asked.output), "--commit", commit()])
    if not failed and not asked.quick:  # a quick run is a sketch, not the page of the repository
        publish(asked.output / "runs.parquet")
    return failed


if __name__ == "__main__":
    sys.exit(main())
