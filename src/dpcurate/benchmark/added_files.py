"""What a user's own file gives: `FILE:NAME`, or the recipes that a file registers."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from dpcurate._messages import did_you_mean, shown
from dpcurate.errors import QueryError


def is_file(text: str) -> bool:
    """Whether the text names a Python file, with or without a name in it."""
    return ".py" in (Path(text).suffix, Path(text.rpartition(":")[0]).suffix)


def split(text: str) -> tuple[Path, str]:
    """The file and the name in it, which may be empty."""
    path, _, name = text.rpartition(":")
    return (Path(path), name) if Path(path).suffix == ".py" else (Path(text), "")


def load(path: Path) -> ModuleType:
    """The file as a module, imported once.

    By its own name from a folder that ends Python's path, so that worker processes find it as well; the current folder
    is there too, for what it imports.
    """
    if not path.is_file():
        raise QueryError(f"there is no file {shown(str(path))}")
    for folder in (str(path.resolve().parent), str(Path.cwd())):
        if folder not in sys.path:
            sys.path.append(folder)
    try:
        module = import_module(path.stem)
    except Exception as problem:
        said = f"{type(problem).__name__}: {problem}"
        raise QueryError(f"{shown(str(path))} cannot be imported: {said}") from problem
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != path.resolve():
        raise QueryError(f"a module {path.stem!r} is there already, in {found}: rename {shown(str(path))}")
    return module


def named(text: str) -> Any:
    """The object that `FILE:NAME` names."""
    path, name = split(text)
    module = load(path)
    if not hasattr(module, name):
        known = [n for n in vars(module) if not n.startswith("_")]
        raise QueryError(f"{path.name} has no {name!r}{did_you_mean(name, known)}")
    return getattr(module, name)
