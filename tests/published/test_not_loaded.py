"""A private run never loads what is published but not proved."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN = """
import sys
from dataclasses import replace
from pathlib import Path
import dpcurate
from dpcurate import networks

folder, cancer = Path(sys.argv[1]), networks.load("cancer")
schema = replace(cancer.schema, rows=2_000)
study = dpcurate.open(cancer.sample(2_000, seed=1), schema, ledger=folder / "l", epsilon=3)
found = study.discover(epsilon=2)
for name in ("r.html", "r.json", "r.txt", "r.dot"):
    found.report(folder / name)
found.effects()
study.fit_model(found).sample(10, seed=1)
dpcurate.plan(schema, 2_000, epsilons=(1.0,), worlds=1)
dpcurate.ask(cancer.sample(500, seed=1), schema, dpcurate.queries.Counts(("Smoker",)), epsilon=1)
"""
LOADED = "print(sorted(name for name in sys.modules if name.startswith('dpcurate.published')))"


@pytest.mark.parametrize("code", [RUN, "import sys, dpcurate.audit"], ids=["run", "audit"])
def test_what_is_published_is_not_loaded(tmp_path, code):
    command = [sys.executable, "-c", f"{code}\n{LOADED}", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "[]"), ended.stderr


def test_a_method_of_a_paper_loads_it_by_name():
    code = f"import sys\nfrom dpcurate import methods\nmethods.find('em-pc', variant='published')\n{LOADED}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "dpcurate.published" in ended.stdout
