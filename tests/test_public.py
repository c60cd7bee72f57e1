"""Every public name is found in `dpcurate`, and is enough for the README and the documents."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest

import dpcurate

ROOT = next(p for p in Path(__file__).parents if (p / "pyproject.toml").exists())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OLD = ["Budget", "Categorical", "Curator", "Discovery", "DpcurateError", "Knowledge", "Neighbours", "Numeric",
       "Ordinal", "Person", "Schema", "discover", "fit", "networks"]  # fmt: skip


def test_all_names_are_there_and_no_others():
    homes = [name for names in dpcurate._HOMES.values() for name in names]
    assert sorted([*homes, *dpcurate._MODULES]) == sorted(dpcurate.__all__)
    for name in dpcurate.__all__:
        assert getattr(dpcurate, name) is not None
    assert set(OLD) <= set(dpcurate.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dpcurate.nothing  # noqa: B018


def test_the_type_checker_sees_the_same_names():
    source = (ROOT / "src" / "dpcurate" / "__init__.py").read_text(encoding="utf-8")
    block = source.split("if TYPE_CHECKING:")[1].split("__all__")[0]
    imported = {
        name.split(" as ")[-1].strip() for line in re.findall(r"import (.+)", block) for name in line.split(",")
    }
    assert imported == set(dpcurate.__all__)
    assert typing.TYPE_CHECKING is False


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_documents_need_nothing_but_the_top(page):
    deep = re.findall(
        r"^\s*(from dpcurate\.\S+ import .*|import dpcurate\..*)$", page.read_text(encoding="utf-8"), re.M
    )
    assert deep == []
