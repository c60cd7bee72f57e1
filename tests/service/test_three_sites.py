"""Three services, one analyst, one page: the tutorial of docs/pooling.md on tables at three addresses."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

import dpcurate
from dpcurate import Study
from running_service import Served, served

NETWORK = dpcurate.networks.load("cancer")
NAMES = ("berlin", "oslo", "rome")


def a_site(folder: Path, seed: int) -> Path:
    """A hospital's table, its schema and its ledger."""
    folder.mkdir()
    table = NETWORK.sample(8000, seed=seed)
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    NETWORK.schema.save(folder / "t.toml")
    budget = dpcurate.Budget(epsilon=2, delta=1e-10)
    dpcurate.Ledger.create(
        folder / "t.ledger", table=folder.name, neighbours="add-remove", budget=budget, schema=NETWORK.schema
    )
    return folder


def connected(service: Served, epsilon: float = 1.5) -> Study:
    token = service.records().add_token("alice", epsilon)
    return dpcurate.connect(f"http://127.0.0.1:{service.port}", token)


def test_three_services_one_analyst_one_page(tmp_path: Path) -> None:
    with ExitStack() as running:
        services = [running.enter_context(served(a_site(tmp_path / n, seed))) for seed, n in enumerate(NAMES)]
        study = dpcurate.pool(dict(zip(NAMES, map(connected, services), strict=True)), site="hospital")
        found = study.discover(epsilon=1, purpose="one graph of three hospitals")
        assert found.site_differences is not None
        assert found.site_differences.site == "hospital"
        assert frozenset(("Smoker", "Cancer")) in found.graph.edges
        assert [one.ledger for one in found.privacy.sites] == list(NAMES)
        assert all(one.privacy.run_epsilon == pytest.approx(1, rel=1e-3) for one in found.privacy.sites)
        page = found.report(tmp_path / "page.html").read_text()
        assert all(name in page for name in NAMES)
        for name in NAMES:
            ledger = dpcurate.Ledger.open(tmp_path / name / "t.ledger")
            (run,) = ledger.log()
            assert (run.facts.by, run.outcome) == ("alice", "finished")
            assert ledger.budget.as_epsilon(ledger.spent) == pytest.approx(1, rel=1e-3)
