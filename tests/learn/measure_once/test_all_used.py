"""Nothing under learn/ is dead: every function, method and constant is used, every constant of the default matters."""

from __future__ import annotations

import ast
import re
from collections import Counter
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
NAMES = re.compile(r"[A-Za-z_]\w*")
ROWS = 4000


def defined(tree: ast.Module) -> Counter[str]:
    """What a module defines: functions, methods but those of Python, classes and constants."""
    names = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    targets = [t for n in tree.body if isinstance(n, ast.Assign) for t in n.targets]
    targets += [n.target for n in tree.body if isinstance(n, ast.AnnAssign)]
    names += [t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)]
    return Counter(name for name in names if not name.startswith("__"))


def unused(modules: list[str], others: str) -> list[str]:
    """Names that occur nowhere but where they are defined; one that begins with _ counts in its own module alone."""
    here = [(defined(ast.parse(text)), Counter(NAMES.findall(text))) for text in modules]
    everywhere = sum((counted for _, counted in here), Counter(NAMES.findall(others)))
    all_defined = sum((names for names, _ in here), Counter())
    dead = {name for names, counted in here for name, n in names.items() if name[0] == "_" and counted[name] <= n}
    return sorted(dead | {name for name, n in all_defined.items() if name[0] != "_" and everywhere[name] <= n})


def test_every_function_method_and_constant_of_learn_is_used():
    learn = (SOURCE / "learn").rglob("*.py")
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    modules = [texts.pop(path) for path in learn]
    others = "\n".join(texts.values())
    assert unused(modules, others) == []
    dead = (
        "LEFT = 1\n\n\nclass Toy:\n    def _missed(self):\n        pass\n\n    def wholly_unused(self):\n        pass\n"
    )
    assert unused([*modules, dead], others) == ["LEFT", "Toy", "_missed", "wholly_unused"]


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
