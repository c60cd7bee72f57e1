"""Nothing under learn/ is dead: every function, method and constant is used, every constant of the default matters."""

from __future__ import annotations

import ast
import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dpcurate
from dpcurate import Budget, Curator
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.measure_once.constants import Constants, FeatureConstants
from dpcurate.schema import Categorical, Numeric, Ordinal, Schema

SOURCE = Path(dpcurate.__file__).parent
ROWS = 4000


def defined(tree: ast.Module) -> set[str]:
    """What a module defines: functions, methods but those of Python, classes and constants."""
    names = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    targets = [t for n in tree.body if isinstance(n, ast.Assign) for t in n.targets]
    targets += [n.target for n in tree.body if isinstance(n, ast.AnnAssign)]
    names += [t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)]
    return {name for name in names if not name.startswith("__")}


def used(tree: ast.Module) -> set[str]:
    """What a module reads or calls. Imports and words in comments and docstrings are no use."""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    names |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return names | {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def unused(modules: list[str], others: list[str]) -> list[str]:
    """Names that are defined and never used; one that begins with _ counts in its own module alone."""
    here = [(defined(tree), used(tree)) for tree in map(ast.parse, modules)]
    everywhere = set().union(*(names for _, names in here), *(used(ast.parse(text)) for text in others))
    return sorted(n for names, own in here for n in names if n not in (own if n[0] == "_" else everywhere))


def test_every_function_method_and_constant_of_learn_is_used():
    learn = (SOURCE / "learn").rglob("*.py")
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    modules = [texts.pop(path) for path in learn]
    others = list(texts.values())
    assert unused(modules, others) == []
    dead = (
        "# wholly_unused is spoken of\nSPOKEN_OF = 1\n\n\nclass Toy:\n    def _missed(self):\n        pass\n\n"
        "    def wholly_unused(self):\n        pass\n"
    )
    assert unused([*modules, dead], others) == ["SPOKEN_OF", "Toy", "_missed", "wholly_unused"]


def test_a_rule_whose_call_is_removed_is_dead():
    """The rule of features for what regression may miss was not called for two days, and no test noticed."""
    text = (SOURCE / "learn/measure_once/feature_evidence.py").read_text(encoding="utf-8")
    assert "_missed" not in unused([text], [])
    without = re.sub(r"self\._missed\(.*\)", "0.0", text)
    assert without != text
    assert "_missed" in unused([without], [])


@pytest.mark.parametrize("constants", [Constants, FeatureConstants])
def test_every_field_of_the_constants_is_read(constants):
    texts = [path.read_text(encoding="utf-8") for path in (SOURCE / "learn" / "measure_once").glob("*.py")]
    read = set(re.findall(r"(?:constants|_believed|features)\.(\w+)", "\n".join(texts)))
    of_itself = set(
        re.findall(r"self\.(\w+)", (SOURCE / "learn/measure_once/constants.py").read_text(encoding="utf-8"))
    )
    assert {field.name for field in fields(constants)} <= read | of_itself
    assert "wholly_unused" not in read


@cache
def table(seed: int):
    """Numbers that bend, an ordinal and levels; a has four effects, and two columns have two causes."""
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((2, ROWS))
    c = a + b + random.standard_normal(ROWS)
    d = a * b + 0.5 * a + random.standard_normal(ROWS)
    e = np.clip(np.round(a + 0.7 * random.standard_normal(ROWS) + 2), 0, 4).astype(int)
    f = (np.abs(a + 0.5 * random.standard_normal(ROWS)) > 0.7).astype(int) + (b > 1)
    schema = Schema(
        (
            *(Numeric(name, -20, 20) for name in "abcd"),
            Ordinal("e", tuple("01234")),
            Categorical("f", tuple("012")),
        )
    )
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}, schema


EPSILONS = (8.0, 1.5, 0.7, 0.05)
"""At the last noise hides how long rows are."""


def linked(constants: FeatureConstants, epsilon: float) -> dict:
    values, schema = table(0)
    curator = Curator(values, schema, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=0)
    return dict(MeasureOnce(features=constants).fit(curator).linked)


@cache
def usual(epsilon: float) -> dict:
    return linked(FeatureConstants(), epsilon)


def changed(value):
    """A tenth of a constant, or of all it holds."""
    return tuple(changed(x) for x in value) if isinstance(value, tuple) else value / 10


@pytest.mark.slow
@pytest.mark.parametrize("name", [field.name for field in fields(FeatureConstants)])
def test_every_constant_of_features_changes_a_result(name):
    other = replace(FeatureConstants(), **{name: changed(getattr(FeatureConstants(), name))})
    assert any(linked(other, epsilon) != usual(epsilon) for epsilon in EPSILONS)
