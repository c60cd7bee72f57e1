"""The command line stands on the public package alone, so that whatever it can do a Python user can do."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import dpcurate
import dpcurate.cli

HERE = Path(dpcurate.cli.__file__).parent
MODULES = {"accounting", "accounting.composition", "errors", "queries", "published.reproduction", "audit.__main__"}
"""Documented modules whose names are imported from them; the last two are programs of their own."""


def test_the_command_line_imports_nothing_but_the_public_package():
    seen = 0
    for file in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                packages = {name.name.partition(".")[0] for name in node.names}
                assert packages <= {*sys.stdlib_module_names, "duckdb"}, (file.name, packages)
            elif isinstance(node, ast.ImportFrom):
                seen += 1
                _check(file.name, node)
    assert seen > 50


def _check(file: str, node: ast.ImportFrom) -> None:
    assert node.level == 0
    package, _, module = (node.module or "").partition(".")
    if package != "dpcurate":
        assert package in sys.stdlib_module_names, (file, node.module)
    elif not module:
        names = {name.name for name in node.names}

        assert names <= {*dpcurate.__all__, "__version__"}, (file, names)
    else:
        assert module == "cli" or module.startswith("cli.") or module in MODULES, (file, node.module)


def test_what_is_imported_from_a_public_module_is_public_there():
    for file in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in {"dpcurate.accounting", "dpcurate.queries"}:
                public = sys.modules.get(node.module) or __import__(node.module, fromlist=["__all__"])
                assert {name.name for name in node.names} <= set(public.__all__), file.name
