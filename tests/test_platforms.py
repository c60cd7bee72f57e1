"""What only some systems have is missed by nobody: taken away in a process of its own, everything still runs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from dpcurate import Knowledge, Schema, networks
from dpcurate.graphs.formats import FORMATS, dumps, loads
from dpcurate.graphs.graph import Dag
from dpcurate.private.ledger.journal import from_uri
from dpcurate.private.sources import open_source
from dpcurate.private.sources.in_memory import InMemory

SOURCE = Path(__file__).parent.parent / "src" / "dpcurate"
BARE = """
import os, signal, sys
for module in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[module] = None  # importing it fails, as it does on Windows
import multiprocessing, subprocess, tempfile, numpy, scipy.special, duckdb, opendp.measurements  # as they are there
for owner, names in {
    os: "fork forkpty register_at_fork sched_getaffinity getuid geteuid getgid getegid chown mkfifo uname "
    "O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK pread pwrite getloadavg sysconf killpg getpgid setsid",
    signal: "pthread_sigmask SIGKILL SIGHUP SIGALRM alarm setitimer",
}.items():
    for name in names.split():
        if hasattr(owner, name):
            delattr(owner, name)
from dpcurate.cli import main
for line in sys.stdin.read().split("\\n"):
    if line and main(line.split()) != 0:
        sys.exit(f"failed: {line}")
"""
COMMANDS = """
network sample cancer --rows 3000 --seed 1 -o t.csv
schema draft t.csv -o t.toml
plan --schema t.toml --rows 3000 --worlds 2 --epsilons 1 -o plan.html
discover t.csv --schema t.toml --epsilon 1 --ledger t.ledger --purpose trial -o one
discover --from-answers t.ledger --at 0.7 -o two
diff one two
ledger show t.ledger
ledger log t.ledger
"""


def test_everything_runs_without_what_only_posix_has(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BARE], input=COMMANDS, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "trial" in done.stdout
    assert (tmp_path / "one" / "report.html").exists()


FALLBACKS = {
    "private/sources/tempdir.py": {"fcntl", "O_DIRECTORY", "O_NOFOLLOW", "geteuid"},  # nothing is spilt without locks
    "private/sources/in_memory.py": {"sched_getaffinity"},
    "private/process.py": {"register_at_fork"},
    "private/ledger/file.py": {"register_at_fork", "fork"},
    "_files.py": {"O_DIRECTORY", "O_NOFOLLOW"},  # files are then written by their paths
    "learn/measure_once/released.py": {"sysconf"},
    "private/masking.py": {"getuid"},  # elsewhere modes of files say little
    "benchmark/measure.py": {"setitimer"},  # a method then has no limit of time
    "planning/simulation.py": {"pthread_sigmask", "SIG_SETMASK", "SIG_BLOCK"},
}
"""Where such names occur, each behind a question whether it is there."""
POSIX = {
    "fcntl", "pwd", "grp", "resource", "termios", "fork", "forkpty", "register_at_fork", "sched_getaffinity", "getuid",
    "geteuid", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "pthread_sigmask", "SIG_SETMASK", "SIG_BLOCK", "SIGKILL",
    "SIGHUP", "SIGALRM", "alarm", "setitimer", "mkfifo", "killpg", "getpgid", "setsid", "uname", "sysconf", "chown",
}  # fmt: skip


def named(tree):
    """Modules that are imported, attributes of os and signal that are used, and names that are asked for as text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(alias.name for alias in node.names))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("os", "signal"):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_nothing_else_uses_what_only_posix_has():
    used = {}
    for path in SOURCE.rglob("*.py"):
        names = POSIX.intersection(named(ast.parse(path.read_text(encoding="utf-8"))))
        if names:
            used[path.relative_to(SOURCE).as_posix()] = names
    assert used == FALLBACKS


def test_texts_are_written_with_the_same_line_ends_everywhere():
    """Python's text files write what a system calls a line end; bytes are bytes."""
    for path in SOURCE.rglob("*.py"):
        assert ".write_text(" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize(
    "path",
    [
        PureWindowsPath(r"C:\Users\a b\ü #1?.ledger"),
        PureWindowsPath(r"\\server\share\t.ledger"),
        PurePosixPath("/home/a b/ü #1?.ledger"),
    ],
    ids=str,
)
def test_the_path_in_a_ledger_is_read_back_on_every_system(path):
    assert from_uri(path.as_uri(), type(path)) == path


def crlf(text):
    return text.replace("\n", "\r\n")


def test_schemas_and_knowledge_may_have_the_line_ends_of_windows(tmp_path):
    schema = networks.load("asia").schema
    (tmp_path / "s.toml").write_bytes(crlf(schema.dumps()).encode())
    assert Schema.load(tmp_path / "s.toml").hash == schema.hash
    known = Knowledge.of(tiers=[["asia", "smoke"], ["tub", "lung"]], forbidden_edges=[("asia", "smoke")])
    (tmp_path / "k.toml").write_bytes(crlf(known.dumps()).encode())
    assert Knowledge.load(tmp_path / "k.toml") == known


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("gml", "bif")])
def test_graphs_may_have_the_line_ends_of_windows(name):
    graph = Dag.of("abc", ["ab", "cb"])
    assert loads(crlf(dumps(graph, name)), name, "dag") == graph


def test_a_table_may_have_the_line_ends_of_windows(tmp_path):
    text = "a,b\n" + "no,yes\nyes,yes\n" * 40
    schema = Schema.loads(
        "".join(f'[columns.{name}]\nkind = "categorical"\nlevels = ["no", "yes"]\n' for name in ("a", "b"))
    )
    totals = []
    for i, written in enumerate((text, crlf(text))):
        path = tmp_path / f"{i}.csv"
        path.write_bytes(written.encode())
        source = open_source(path, schema)
        assert isinstance(source, InMemory)
        totals.append({name: column.tolist() for name, column in source._rows.codes.items()})
    assert totals[0] == totals[1]
