"""Nothing that is called free is charged: a ledger is the same, byte for byte, after every call on what was found."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dpcurate
from dpcurate import Budget, Categorical, Curator, Discovery, Model, Numeric, Ordinal, Schema
from dpcurate.private.ledger import Ledger
from dpcurate.queries import Counts

TOOLS = {"to_pgmpy", "to_dowhy", "to_causallearn"}
"""Need packages of their own: tests/tools/test_free.py."""
ON_FOUND = {
    "at": lambda found, _: found.at(0.8).effects(),
    "diff": lambda found, _: found.diff(found.at("best-f1")),
    "effect": lambda found, _: [found.effect(a, b) for a in "abc" for b in "abc" if a != b],
    "effects": lambda found, _: str(found.effects()),
    "files": lambda found, _: [text() for text in found.files(synthetic=5).values()],
    "plot": lambda found, _: found.plot(),
    "report": lambda found, folder: [found.report(folder / f"r.{x}") for x in ("html", "json", "txt", "csv", "dot")],
    "report_text": lambda found, _: [found.report_text(f"r.{x}") for x in ("html", "json", "txt", "csv", "dot")],
    "save": lambda found, folder: found.save(folder / "all", synthetic=5, force=True),
    "to_bnlearn": lambda found, _: found.to_bnlearn(),
    "to_dag": lambda found, _: found.to_dag(),
    "to_dagitty": lambda found, _: found.to_dagitty(),
    "registry_record": lambda found, _: found.registry_record(),
    "to_dict": lambda found, _: found.to_dict(),
    "to_frame": lambda found, _: found.to_frame(),
    "to_networkx": lambda found, _: found.to_networkx(),
    "to_tetrad": lambda found, _: found.to_tetrad(),
}
ON_MODEL = {
    "effect": lambda model, _: [model.effect(a, b) for a in "abc" for b in "abc" if a != b],
    "file_text": lambda model, _: model.file_text(),
    "predict": lambda model, _: model.predict({"b": "1"}, "c"),
    "sample": lambda model, _: model.sample(10, seed=1),
    "save": lambda model, folder: model.save(folder / (f"model{model.file_suffix}")),
}
ON_TABLES = {
    "log_likelihood": lambda model, _: model.log_likelihood(),
    "marginal": lambda model, _: model.marginal(["a", "b"]),
    "table": lambda model, _: model.table("c"),
}


def columns():
    draw = np.random.default_rng(3)
    a = draw.normal(size=3000)
    b = (a + draw.normal(size=3000) > 0).astype(int)
    c = np.digitize(a - b + draw.normal(size=3000), [-1.0, 0.5])
    return {"a": a, "b": b.astype(str), "c": c.astype(str)}


LEVELS = Schema((Numeric("a", -4, 4, bins=3), Categorical("b", ("0", "1")), Ordinal("c", ("0", "1", "2"))))
MIXED = Schema((Numeric("a", -4, 4), *LEVELS.columns[1:]))


def public(kind):
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def test_every_call_is_looked_at():
    assert public(Discovery) - TOOLS == set(ON_FOUND)
    assert public(Model) - TOOLS == {*ON_MODEL, *ON_TABLES}


@pytest.mark.slow(but=["levels"])
@pytest.mark.parametrize("schema", [LEVELS, MIXED], ids=["levels", "numbers and levels"])
def test_a_ledger_is_the_same_after_every_call(schema, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    path, table = tmp_path / "t.ledger", columns()
    budget = Budget(epsilon=4, delta=1e-10)
    Ledger.create(path, table="t", schema=schema, neighbours="add-remove", budget=budget)
    dpcurate.ask(table, schema, Counts(("b",)), epsilon=0.5, ledger=path)
    found = dpcurate.discover(table, schema, epsilon=2, ledger=path, quantify=0.5)
    before = path.read_bytes()
    on_model = ON_MODEL | (ON_TABLES if isinstance(found.model, Model) else {})
    for of, calls in ((found, ON_FOUND), (found.model, on_model)):
        for name, call in calls.items():
            call(of, tmp_path)
            assert path.read_bytes() == before, name
    for again in (dpcurate.discover_from, dpcurate.asked_from):
        str(again(path))
        assert path.read_bytes() == before, again
    curator = Curator(table, schema, ledger=path, name="t")
    assert curator.remaining > 0
    dpcurate.quantify(found, curator)
    assert path.read_bytes() != before  # what is charged would be seen
