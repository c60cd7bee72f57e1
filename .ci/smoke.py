"""A checked wheel: installed into an empty environment without the source, the demo and the tutorial run.

    python .ci/smoke.py WHEEL [PYTHON ...]

For each interpreter (by default those of 3.11 to 3.14 that are found on the path or under ~/.pyenv) an environment is
made in a temporary folder and removed again. An interpreter for which the dependencies cannot be installed is told and
left out, but for the one that runs this.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
WHERE = "import dpcurate, sys; print(dpcurate.__file__, '%d.%d' % sys.version_info[:2])"


def main() -> None:
    wheel, *given = sys.argv[1:]
    done = [check(Path(wheel).resolve(), python) for python in given or interpreters()]
    print("checked:", ", ".join(version for version in done if version) or "nothing")
    missing = sorted(set(VERSIONS) - set(done))
    if missing and not given:
        print("not found here, or without wheels to install:", ", ".join(missing))
    if not any(done):
        raise SystemExit(1)


def interpreters() -> Iterator[str]:
    """The one that runs here, then one of each other version that works."""
    yield sys.executable
    seen = {f"{sys.version_info.major}.{sys.version_info.minor}"}
    kept = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    for python in [*(f"python{version}" for version in VERSIONS), *map(str, kept)]:
        version = _output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
        if version in VERSIONS and version not in seen:
            seen.add(version)
            yield python


def _output(words: list[str]) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def check(wheel: Path, python: str) -> str:
    """The version that was checked; nothing if there was nothing to install."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subprocess.run([python, "-m", "venv", place / "env"], check=True)
        programs = place / "env" / ("Scripts" if os.name == "nt" else "bin")
        install = [programs / "python", "-m", "pip", "install", "--quiet", "--only-binary=:all:", wheel]
        if subprocess.run(install, check=False).returncode:
            if python == sys.executable:
                raise SystemExit(f"{wheel.name} cannot be installed with {python}")
            print(f"left out: the dependencies cannot be installed with {python}")
            return ""
        return _run(place, programs)


def _run(place: Path, programs: Path) -> str:
    # Without PYTHONPATH, and in a folder of its own: nothing of the source is found.
    settings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # A block that begins with an installation needs more than the wheel.
    blocks = re.findall(
        r"```python\n(?!# pip)(.*?)```", (ROOT / "docs/tutorial.md").read_text("utf-8"), flags=re.DOTALL
    )
    if not blocks:
        raise SystemExit("the tutorial has no blocks to run")
    (place / "tutorial.py").write_text("\n".join(blocks), "utf-8")
    found = ""
    for words in (["python", "-c", WHERE], ["dpcurate", "--version"], ["dpcurate", "demo"], ["python", "tutorial.py"]):
        command = [programs / words[0], *words[1:]]
        done = subprocess.run(command, cwd=place, env=settings, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        found = found or done.stdout
    file, version = found.split()
    if place.resolve() not in Path(file).resolve().parents:
        raise SystemExit(f"the source was used instead of the wheel: {file}")
    if not (place / "demo" / "report.html").exists():
        raise SystemExit("the demo has left no report")
    print(f"Python {version}: the demo and the tutorial ran from {Path(file).parent.relative_to(place)}", flush=True)
    return version


if __name__ == "__main__":
    main()
