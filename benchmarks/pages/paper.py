"""docs/paper.md, its figures and docs/paper/ again, from a file of runs and nothing else.

python -m benchmarks.pages.paper paper/runs.parquet [docs]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from dpcurate.published.reproduction.paper_page import write_page

DOCS = Path(__file__).resolve().parents[2] / "docs"


def publish(runs: Path, docs: Path = DOCS) -> None:
    """Keep the runs beside the page that is made of them."""
    data = docs / "paper"
    data.mkdir(exist_ok=True)
    kept = data / "runs.parquet"
    if runs.resolve() != kept.resolve():
        shutil.copyfile(runs, kept)
    for path in write_page(kept, docs, data):
        print(path)
    named = "".join(page.read_text(encoding="utf-8") for page in docs.glob("*.md"))
    for path in (docs / "figures").glob("*.png"):
        if path.name not in named:  # of an earlier form of the page
            path.unlink()


if __name__ == "__main__":
    publish(*map(Path, sys.argv[1:]))
