"""A running studio for tests: `dpcurate studio` in a process of its own, whose runs can be held in the middle.

Run as a program it is the studio itself. While the file `hold` is in its folder, a run waits before its second
question, when the first one is paid for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dpcurate

HOLD = "hold"


@dataclass(frozen=True)
class RunningStudio:
    """A studio that listens: its link, its folder and its process."""

    link: str
    folder: Path
    process: subprocess.Popen[str]

    @property
    def address(self) -> str:
        return self.link.partition("/open/")[0]

    def ledger(self, project: str) -> dpcurate.Ledger:
        return dpcurate.Ledger.open(self.folder / project / f"{project}.ledger")

    def hold(self) -> None:
        (self.folder / HOLD).touch()

    def go_on(self) -> None:
        (self.folder / HOLD).unlink()


@contextmanager
def running_studio(folder: Path) -> Iterator[RunningStudio]:
    """The studio on a folder, ended as by closing its terminal."""
    words = [sys.executable, __file__, str(folder)]
    with (folder / "errors.txt").open("a") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ)
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None, (folder / "errors.txt").read_text()
            yield RunningStudio(found[0], folder, process)
        finally:
            process.terminate()
            process.wait(60)
            assert process.stdout is not None
            process.stdout.close()


def main(folder: Path) -> None:
    """The studio, with runs that can be held."""
    from dpcurate.studio import start
    from dpcurate.studio.watched_runs import RunWatch

    notice, asked = RunWatch.notice, [0]

    def held(watch: RunWatch, stage: str, tests: int) -> None:
        asked[0] += 1
        while asked[0] > 1 and (folder / HOLD).exists() and not watch.cancelling:
            time.sleep(0.02)
        notice(watch, stage, tests)

    RunWatch.notice = held  # type: ignore[method-assign]
    start(folder, browser=False, ready=lambda link: print(link, flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
