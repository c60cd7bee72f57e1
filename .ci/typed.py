"""How much of the public interface has types, as pyright sees it in a wheel that is installed in an empty environment.

    python .ci/typed.py WHEEL

What is lacking is printed, and less than `ENOUGH` is a failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ENOUGH = 0.999
"""Of all public symbols, the part whose type is known; what lacks one is NOT PRIVATE."""


def main() -> None:
    wheel = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        found = verified(wheel, Path(folder))["typeCompleteness"]
    score = found["completenessScore"]
    lacking = [symbol for symbol in found["symbols"] if symbol["isExported"] and not symbol["isTypeKnown"]]
    for symbol in lacking:
        print(f"{symbol['name']}: {said(symbol)}")
    print(f"{score:.2%} of the public symbols have a known type, {len(lacking)} have none")
    if score < ENOUGH:
        raise SystemExit(f"less than {ENOUGH:.2%}")


def verified(wheel: Path, place: Path) -> dict:
    """What pyright says, asked outside the source, so that nothing but the wheel is found."""
    subprocess.run([sys.executable, "-m", "venv", place / "env"], check=True)
    programs = place / "env" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", wheel, "pyright"], check=True)
    words = [programs / "pyright", "--verifytypes", "dpcurate", "--ignoreexternal", "--outputjson"]
    settings = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return json.loads(subprocess.run(words, cwd=place, env=settings, capture_output=True, check=False).stdout)


def said(symbol: dict) -> str:
    """The first thing that pyright has against a symbol, on one line."""
    errors = [told["message"] for told in symbol["diagnostics"] if told["severity"] == "error"]
    return errors[0].splitlines()[0] if errors else "not known"


if __name__ == "__main__":
    main()
