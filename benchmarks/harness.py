"""What every benchmark does alike: the command's words and the page. Runs are kept by `dpcurate.benchmark.run_file`.

A benchmark has four parts: worlds (`worlds/`), what is compared, one run (a function of the world, the method and a
seed that returns a row), and the page that tells the rows (`pages/`). `dpcurate benchmark` compares methods.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def command(doc: str | None, results: str | None = None, page: str | None = None) -> argparse.ArgumentParser:
    """The words of a benchmark: its docstring as help, its file of results and its page if it has them."""
    words = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if results:
        words.add_argument("--results", type=Path, default=Path(results), help="the file of runs; what it has is kept")
    if page:
        words.add_argument("--write", type=Path, metavar="PAGE", help=f"write the page, such as {page}")
    return words


BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"


def tell(text: str, page: Path | None) -> None:
    """Print the page, and write it if that was asked for; in a page with marks, what is between them."""
    print(text)
    if page:
        before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN) if page.exists() else ("", "", "")
        _, end, after = rest.partition(END)
        whole = f"{before}{begin}\n{text}{end}{after}" if end else text
        page.write_text(whole, encoding="utf-8")
