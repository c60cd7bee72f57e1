"""No test says how long something may take: it would fail on a busy machine and mean nothing on a fast one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from counting import steps

CLOCKS = {"perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "monotonic", "monotonic_ns", "time_ns"}
FILES = sorted(Path(__file__).parent.rglob("*.py"))


def clocked(tree: ast.AST) -> Iterator[int]:
    """Lines of assertions about a clock, or about a name that was given a value from one."""
    timed: set[str] = set()

    def tells_time(node: ast.AST) -> bool:
        parts = list(ast.walk(node))
        called = {part.func for part in parts if isinstance(part, ast.Call)}
        names = {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in called}
        return bool(CLOCKS & names or {p.id for p in parts if isinstance(p, ast.Name)} & timed) or any(
            ast.unparse(f) == "time.time" for f in called
        )

    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            timed.clear()
            for node in ast.walk(function):
                if isinstance(node, ast.Assign | ast.AugAssign) and tells_time(node.value):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    timed |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            yield from (n.lineno for n in ast.walk(function) if isinstance(n, ast.Assert) and tells_time(n))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_assertion_reads_a_clock(path: Path) -> None:
    assert list(clocked(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "text",
    [
        "def test():\n    start = time.perf_counter()\n    took = time.time() - start\n    assert took < 1",
        "def test():\n    began = monotonic()\n    assert monotonic() - began < 1",
        "def test():\n    assert time.time() < then",
    ],
)
def test_such_assertions_are_found(text: str) -> None:
    assert list(clocked(ast.parse(text))) == [text.count("\n") + 1]


def test_steps_count_work() -> None:
    once, twice = (steps(lambda n=n: [abs(i) for i in range(n)]) for n in (1000, 2000))
    assert once + 1000 == twice
