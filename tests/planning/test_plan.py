"""Plans: what they simulate, what they say, what they leave alone."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from dpcurate import Budget, Categorical, Curator, Numeric, Ordinal, Person, Schema, networks
from dpcurate.errors import BudgetError, DpcurateError, FormatError, QueryError, SchemaError
from dpcurate.graphs.graph import Cpdag, Skeleton
from dpcurate.learn.methods import PC, OrderSearch, PrivPC, private
from dpcurate.networks import plausible
from dpcurate.networks.plausible import DEGREE, edge_count, random_world, simulate
from dpcurate.planning import plan as planning
from dpcurate.planning import simulation
from dpcurate.planning.estimate import estimate
from dpcurate.planning.plan import Plan, plan
from dpcurate.planning.simulation import WorldRun
from dpcurate.result.fit import FitResult

SMALL = Schema(
    (
        Categorical("sex", ("f", "m")),
        Ordinal("stage", ("I", "II", "III")),
        Numeric("age", 0, 100, bins=4),
        Categorical("site", ("a", "b", "c")),
    )
)


def made(means, *, accuracies=(0.03, 0.1, 1.0), limit=1.0, method="em-pc"):
    """A plan whose figures are given: one world, F1 by epsilon."""
    values = dict(zip((*accuracies, math.inf), (*means, limit), strict=True))
    runs = tuple(WorldRun(0, method, e, f1, 1, 2) for e, f1 in values.items())
    return Plan(SMALL, 1000, 1000, 1e-10, "add-remove", accuracies, (method,), 1, runs)


@pytest.fixture(scope="module")
def small():
    methods = ("auto", "em-pc", "svt-pc", "priv-pc", "curate-pc")
    return plan(SMALL, 20_000, epsilons=(0.01, 0.3, 10), methods=methods, worlds=3, seed=1)


def test_a_number_without_bins_is_planned_as_a_number():
    columns = (Numeric("age", 0, 100), Numeric("dose", -1, 1), *SMALL.columns[:2])
    schema = Schema(columns)
    worlds = [random_world(schema, seed=s) for s in range(20)]
    tables = [simulate(schema, world, 2000, seed=1) for world in worlds]
    for table in tables:
        assert len(np.unique(table["age"])) > 1900
        assert table["age"].min() >= 0
        assert table["age"].max() <= 100
        assert abs(table["age"].mean() - 50) < 8
    linked = [w.dag.edges >= {frozenset(("age", "dose"))} for w in worlds]
    seen = [abs(np.corrcoef(t["age"], t["dose"])[0, 1]) for t in tables]
    assert np.mean([s for s, there in zip(seen, linked, strict=True) if there]) > 0.1
    found = plan(schema, 2000, epsilons=(1,), worlds=1, methods=("notears-moments",))
    assert found.methods == ("notears-moments",)
    with pytest.raises(QueryError, match="em-pc: column 'age' is a number without bins"):
        plan(schema, 2000, epsilons=(1,), worlds=1, methods=("em-pc",))


@pytest.mark.parametrize(
    ("rows", "delta", "larger"),
    [(2_000, 1e-10, "1e-06"), (90_000, 1e-10, "1e-07"), (2_000, 1e-6, None), (2_000, 0.0, None)],
)
def test_a_plan_says_what_a_larger_delta_would_buy(rows, delta, larger):
    said = str(plan(SMALL, rows, epsilons=(1,), delta=delta))
    assert ("the same epsilon buys" in said) == (larger is not None)
    if larger:
        assert f"With delta = {larger}," in said
        times = Budget(epsilon=1, delta=float(larger)).ceiling / Budget(epsilon=1, delta=delta).ceiling
        assert f"buys {float(times):.1f} times the rho" in said
        assert f"{float(1 / times) ** 0.5:.0%} of the noise" in said


def test_worlds_have_the_schema_and_no_other_levels():
    world = random_world(SMALL, seed=3)
    assert world.nodes == SMALL.names
    assert [len(v.levels) for v in world.variables] == list(SMALL.sizes(SMALL.names))
    assert 3 <= len(world.dag.edges) <= 6
    table = simulate(SMALL, world, 500, seed=3)
    assert set(table["sex"]) == {"f", "m"}
    assert set(table["stage"]) <= {"I", "II", "III"}
    assert table["age"].min() >= 0
    assert table["age"].max() <= 100
    # every row is kept, with the code that the world drew
    codes = world.codes(500, seed=3)
    assert (np.searchsorted(SMALL["age"].edges, table["age"], side="right") == codes[:, 2]).all()
    curator = Curator(table, SMALL, budget=Budget.unlimited(), insecure_seed=0)
    from dpcurate.queries import Counts, Exact, Release

    assert float(curator.ask(Release(Counts(()), Exact()))) == 500


def test_worlds_differ_by_seed_and_repeat():
    assert random_world(SMALL, seed=1) == random_world(SMALL, seed=1)
    assert random_world(SMALL, seed=1) != random_world(SMALL, seed=2)


def test_children_depend_on_parents():
    """An arrow that had no effect would count as a missed edge of every method."""
    for seed in range(10):
        for v in random_world(SMALL, seed=seed).variables:
            if v.parents:
                assert np.ptp(v.table, axis=0).max() > 0.005


def test_two_columns_and_many_levels():
    two = Schema((Categorical("a", ("0", "1")), Categorical("b", tuple(range(700)))))
    assert len(random_world(two, seed=0).dag.edges) == 1
    wide = Schema(tuple(Categorical(f"c{i}", tuple(range(500))) for i in range(8)))
    assert all(v.table.size <= plausible.MOST_CELLS for v in random_world(wide, seed=0).variables)


def test_persons_are_simulated():
    schema = replace(SMALL, person=Person("id", 3))
    table = simulate(schema, random_world(schema, seed=0), 10, seed=0)
    assert np.bincount(table["id"]).tolist() == [3, 3, 3, 1]
    assert plan(schema, 200, epsilons=(1,), methods=("auto",), worlds=1).cells


def test_more_epsilon_is_better_and_the_limit_best(small):
    f1 = [small.cells["auto", e].f1 for e in (0.01, 10, math.inf)]
    assert f1[0] < f1[1] <= f1[2]
    f1 = [small.cells["em-pc", e].f1 for e in (0.01, 10, math.inf)]
    assert f1[0] < f1[1] <= f1[2] + 0.1
    assert sum(r.method in small.methods for r in small.runs) == 3 * (len(small.methods) - 1) * 4


def test_no_noise_is_no_noise():
    """The run called 'no noise' is what an exact choice gives."""
    one = plan(replace(SMALL, rows=5000), 5000, epsilons=(1,), methods=("em-pc",), worlds=1, seed=4)
    seed = 4 * 1_000_003
    schema = replace(SMALL, rows=5000)
    world = random_world(schema, seed=seed)
    table = simulate(schema, world, 5000, seed=seed)
    exact = private()["em-pc"].fit(Curator(table, schema, budget=Budget.unlimited(), insecure_seed=9)).graph
    (cell,) = [r for r in one.runs if r.method == "em-pc" and math.isinf(r.epsilon)]
    assert (cell.missed, cell.false) == (len(world.dag.edges - exact.edges), len(exact.edges - world.dag.edges))


def test_same_seed_same_plan_whatever_the_workers():
    words = {"epsilons": (1, 0.1, 1), "methods": ("auto", "em-pc"), "worlds": 2, "seed": 5}
    alone = plan(SMALL, 2000, **words)
    assert alone.epsilons == (0.1, 1.0)
    assert plan(SMALL, 2000, workers=2, **words).runs == alone.runs
    assert plan(SMALL, 2000, **(words | {"seed": 6})).runs != alone.runs


def test_without_processes_it_goes_on_alone(monkeypatch):
    def broken(*_, **__):
        raise OSError("no processes here")

    monkeypatch.setattr(simulation, "ProcessPoolExecutor", broken)
    seen = []
    words = {"methods": ("em-pc",), "worlds": 2, "workers": 2}
    found = plan(SMALL, 500, epsilons=(1,), progress=lambda *x: seen.append(x), **words)
    assert [r.method for r in found.runs] == ["em-pc", "em-pc", "PC", "BIC search"] * 2
    assert seen[-1] == (2, 2)
    assert seen[0] == (0, 2)


def test_exact_methods_stand_beside_on_the_same_rows(tmp_path):
    """The figures without privacy are those of PC and order search on each world's own table."""
    small = plan(SMALL, 500, epsilons=(1,), methods=("auto",), worlds=3, seed=1)
    seeds = [1_000_003 + world for world in range(3)]
    assert small.ceiling["PC"].f1 != small.ceiling["BIC search"].f1  # or each could be the other
    for name, method in (("PC", PC()), ("BIC search", OrderSearch())):
        found = [r for r in small.runs if r.method == name]
        for run, seed in zip(found, seeds, strict=True):
            world = random_world(SMALL, seed=seed)
            table = simulate(SMALL, world, 500, seed=seed)
            graph = method.fit(Curator(table, SMALL, budget=Budget.unlimited(), insecure_seed=0)).graph
            assert (run.missed, run.false) == (len(world.dag.edges - graph.edges), len(graph.edges - world.dag.edges))
        assert small.ceiling[name].f1 == pytest.approx(np.mean([r.f1 for r in found]))
    assert set(small.ceiling).isdisjoint(small.methods)
    assert re.search(r"^without privacy\n +PC  #+.*\nBIC search  #+", str(small), re.MULTILINE)
    assert [c["method"] for c in small.to_dict()["without_privacy"]] == ["PC", "BIC search"]
    page = small.report(tmp_path / "p.html").read_text()
    assert page.count("<td>without privacy</td>") == 2
    assert page.count('<line class="limit"') == 2


def test_a_ceiling_that_would_take_long_or_cannot_be_is_left_out_and_said(monkeypatch):
    words = {"epsilons": (1,), "methods": ("auto",), "worlds": 2}
    monkeypatch.setattr(simulation, "SEARCHED_COLUMNS", 3)
    few = plan(SMALL, 300, **words)
    assert list(few.ceiling) == ["PC"]
    assert str(few).count("Left out: BIC search: 4 columns would take long") == 1
    monkeypatch.undo()
    monkeypatch.setattr(simulation, "SEARCHED_CELLS", 4 * 72 - 1)  # 72 different rows are possible
    assert "Left out: BIC search: 288 cells" in str(plan(SMALL, 300, **words))
    assert "BIC search" in plan(SMALL, 70, **words).ceiling
    monkeypatch.undo()
    assert list(plan(Schema((Numeric("a", 0, 1), Numeric("b", 0, 1))), 300, **words).ceiling) == ["PC", "BIC search"]
    mixed = plan(Schema((Numeric("age", 0, 1), *SMALL.columns[:2])), 300, **words)
    assert not mixed.ceiling
    assert "without privacy" not in str(mixed)
    assert "Left out: PC: it reads levels alone or numbers alone" in str(mixed)


def test_each_budget_is_kept(monkeypatch):
    """A planned run spends no more than the epsilon it stands for, in either currency."""
    spent = []
    from contextlib import contextmanager

    real = simulation.limited

    @contextmanager
    def noted(queryable, amount):
        before = queryable.ledger.spent
        with real(queryable, amount) as inner:
            yield inner
        spent.append((queryable.ledger.spent - before, amount))

    monkeypatch.setattr(simulation, "limited", noted)
    for delta in (0.0, 1e-6):
        methods = ("em-pc", "svt-pc", "priv-pc", "curate-pc")  # those that take a pure budget too
        found = plan(SMALL, 300, epsilons=(0.5,), worlds=1, delta=delta, methods=methods)
    assert len(spent) == 4 * len(found.methods)
    assert all(0 < cost <= amount * (1 + 1e-6) for cost, amount in spent)  # differences of large floats
    assert spent[0][1] == 0.5


def test_a_method_that_cannot_is_refused(monkeypatch):
    sampling = private() | {"priv-pc": PrivPC(max_order=2, rate=0.5)}
    monkeypatch.setattr(planning, "get", sampling.__getitem__)
    monkeypatch.setattr(simulation, "get", sampling.__getitem__)
    schema = replace(SMALL, person=Person("id", 3))
    assert plan(schema, 300, epsilons=(1,), worlds=1).methods == ("auto",)  # the default, unless others are asked for
    with pytest.raises(QueryError, match="priv-pc: a secret sample"):
        plan(schema, 300, epsilons=(1,), worlds=1, methods=("auto", "priv-pc"))


def test_many_rows_are_simulated_with_fewer(monkeypatch):
    monkeypatch.setattr(planning, "MOST_ROWS", 400)
    found = plan(SMALL, 10_000, epsilons=(1,), methods=("auto",), worlds=1)
    assert found.simulated_rows == 400
    assert "400 were simulated" in str(found)


@pytest.mark.parametrize(
    ("means", "expected"),
    [((0.2, 0.85, 0.9), 0.1), ((0.9, 0.5, 0.9), 1.0), ((0.8, 0.8, 0.8), 0.03), ((0.1, 0.2, 0.3), None)],
)
def test_smallest_epsilon_from_which_on_it_holds(means, expected):
    found = made(means).smallest(0.8)
    assert (found and found.epsilon) == expected


def test_advice():
    assert "smallest epsilon tried is 0.1, by em-pc: 0.85" in made((0.2, 0.85, 0.9)).advice(0.8)
    assert "will not help" in made((0.1, 0.2, 0.3), limit=0.4).advice(0.8)
    assert "the best is 0.30" in made((0.1, 0.2, 0.3), limit=0.4).advice(0.8)
    assert "larger epsilon or more rows" in made((0.1, 0.2, 0.3), limit=0.9).advice(0.8)
    with pytest.raises(QueryError, match="accuracy"):
        made((0.1, 0.2, 0.3)).advice(80)


def test_cells_are_means_with_a_spread():
    runs = tuple(WorldRun(w, "em-pc", e, f1, w, 0) for w, f1 in enumerate((0.0, 0.5, 1.0)) for e in (1.0, math.inf))
    cell = Plan(SMALL, 9, 9, 0.0, "replace", (1.0,), ("em-pc",), 3, runs).cells["em-pc", 1.0]
    assert (cell.f1, cell.low, cell.high, cell.missed) == (0.5, 0.0, 1.0, 1.0)


def test_the_range_of_few_worlds_holds_as_much_as_it_says():
    """Of eight even draws the range that is said to hold 8 of 10 tables holds 7 of 9, not 6 of 10."""
    held = []
    for seed in range(400):
        drawn = np.random.default_rng(seed).random(8)
        runs = tuple(WorldRun(i, "em-pc", e, float(x), 0, 0) for i, x in enumerate(drawn) for e in (1.0, math.inf))
        cell = Plan(SMALL, 9, 9, 0.0, "replace", (1.0,), ("em-pc",), 8, runs).cells["em-pc", 1.0]
        held.append(cell.high - cell.low)
    assert np.mean(held) == pytest.approx(7 / 9, abs=0.02)


def test_chart(small):
    text = str(small)
    assert "No private data was touched" in text
    assert text.count("no noise") == len(small.methods)
    bars = re.findall(r"^ +(\S+)  (#*)\.*  (\d\.\d\d)   ", made((0.0, 0.5, 1.0)).__str__(), re.MULTILINE)
    assert [(e, len(bar)) for e, bar, _ in bars] == [("0.03", 0), ("0.1", 12), ("1", 24)]
    assert all(len(line) <= 120 for line in text.splitlines())
    assert text.isascii()


def test_page_is_self_contained_and_escaped(tmp_path, small):
    page = small.report(tmp_path / "p.html", accuracy=0.8).read_text()
    assert small.advice(0.8) in page
    assert "<script" not in page
    assert "http" not in page
    svg = re.search(r"<svg.*</svg>", page, re.DOTALL)[0]
    assert len(ElementTree.fromstring(svg).findall("polyline")) == len(small.methods)
    hostile = made((0.1, 0.2, 0.3), method="<script>alert(1)</script>").report(tmp_path / "h.html").read_text()
    assert "<script>" not in hostile
    assert made((0.5,), accuracies=(1.0,)).report(tmp_path / "one.html").exists()


def test_other_reports(tmp_path, small):
    figures = json.loads(small.report(tmp_path / "p.json", accuracy=0.1).read_text())
    assert len(figures["cells"]) == 4 * len(small.methods)
    assert figures["advice"].startswith("For a skeleton F1")
    assert small.report(tmp_path / "p.txt", accuracy=0.1).read_text().startswith(str(small))
    with pytest.raises(FormatError, match=r"use .html"):
        small.report(tmp_path / "p.doc")


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        ({"epsilons": (0,)}, BudgetError, "greater than 0"),
        ({"epsilons": ()}, QueryError, "at least one epsilon"),
        ({"epsilons": (math.inf,)}, QueryError, "finite"),
        ({"methods": ("em-px",)}, QueryError, "did you mean 'em-pc'"),
        ({"worlds": -1}, QueryError, "worlds must be"),
        ({"worlds": 0, "methods": ("em-pc",)}, QueryError, "worlds must be"),
        ({"rows": 0}, QueryError, "rows must be"),
        ({"neighbours": "both"}, SchemaError, "neighbours"),
        ({"delta": 2}, BudgetError, "delta"),
        ({"schema": {"a": ("0", "1")}}, QueryError, "at least two columns"),
    ],
)
def test_refusals(words, problem, hint):
    words = {"schema": SMALL, "rows": 100, "worlds": 1} | words
    with pytest.raises(problem, match=hint) as caught:
        plan(words.pop("schema"), words.pop("rows"), **words)
    assert isinstance(caught.value, DpcurateError)


def test_near_the_benchmark_networks():
    """The worlds are neither much easier nor much harder than networks people have published."""
    gaps = []
    for name in ("cancer", "survey", "asia"):
        network = networks.load(name)
        schema = replace(network.schema, rows=20_000)
        curator = Curator(network.sample(20_000, seed=1), schema, budget=Budget.unlimited(), insecure_seed=1)
        real = simulation.compare(0, "em-pc", math.inf, private()["em-pc"].fit(curator).graph, network.dag).f1
        planned = plan(schema, 20_000, epsilons=(1,), methods=("em-pc",), worlds=6).cells["em-pc", math.inf].f1
        gaps.append(planned - real)
    assert abs(np.mean(gaps)) < 0.25


def test_strengths_of_worlds_spread_evenly_over_seeds():
    """A few worlds that follow each other hold weak and strong ones."""
    schema = Schema(tuple(Categorical(f"c{i}", ("0", "1")) for i in range(12)))

    def moved(seed):
        found = [np.ptp(v.table, axis=0).max() for v in random_world(schema, seed=seed).variables if v.parents]
        return float(np.mean(found))

    for first in (0, 7_000_021):
        strengths = sorted(moved(first + i) for i in range(8))
        assert strengths[-1] > 1.7 * strengths[0]
    degrees = {len(random_world(schema, seed=seed).dag.edges) for seed in range(12)}
    assert min(degrees) >= edge_count(12, DEGREE[0])
    assert max(degrees) <= edge_count(12, DEGREE[1])
    assert len(degrees) > 3


def test_the_default_is_expected_to_do_what_is_announced_before_a_run(small):
    for epsilon in small.epsilons:
        power = estimate(SMALL, 20_000, budget=Budget(epsilon=epsilon, delta=1e-10))
        cell = small.cells["auto", epsilon]
        assert (cell.f1, cell.low, cell.high) == (power.f1, *power.range)
    assert not any(r.method == "auto" for r in small.runs)


@pytest.mark.parametrize("rows", [50, 189, 2000, 50_000])
def test_f1_missed_and_false_edges_are_of_the_same_graph(rows):
    found = plan({f"c{i}": ("0", "1") for i in range(11)}, rows, epsilons=(0.001, 0.1, 1, 10), worlds=1)
    edges = estimate(found.schema, rows, budget=Budget(epsilon=1, delta=1e-10)).edges
    for epsilon in (*found.epsilons, math.inf):
        cell = found.cells["auto", epsilon]
        hits = edges - cell.missed
        assert cell.f1 == pytest.approx(2 * hits / (2 * hits + cell.missed + cell.false))
        assert 0 < cell.f1 < 1
        assert cell.low <= cell.f1 <= cell.high


def test_the_estimate_simulates_nothing_unless_asked(monkeypatch):
    monkeypatch.setattr(planning, "all_runs", lambda *_: pytest.fail("simulated"))
    found = plan(SMALL, 20_000, epsilons=(1,))
    assert (found.worlds, found.ceiling) == (0, {})
    assert found.cells["auto", 1.0].f1 > 0.5
    assert "--worlds 8" in str(found)


def test_what_is_simulated_is_the_graph_that_a_result_shows(monkeypatch):
    """Of a method with probabilities, pairs more likely linked than not."""
    learned = FitResult(Cpdag.of("ab", lines=[("a", "b")]), Skeleton.of("ab", [("a", "b")]), {frozenset("ab"): 0.3})
    monkeypatch.setattr(simulation, "get", lambda _: SimpleNamespace(fit=lambda _, known: learned))
    schema = {"a": ("0", "1"), "b": ("0", "1")}
    found = plan(schema, 100, epsilons=(1,), methods=("em-pc",), worlds=1)
    assert (found.cells["em-pc", 1.0].missed, found.cells["em-pc", 1.0].false) == (1, 0)


ENDLESS = """
import os
import signal
import sys

from dpcurate.planning import simulation
from dpcurate.planning.plan import plan


def world(job):
    os.write(1, b"working\\n")
    signal.pause()


if __name__ == "__main__":
    simulation._world = world
    try:
        plan({"a": ("0", "1"), "b": ("0", "1")}, 1000, worlds=4, workers=2)
    except KeyboardInterrupt:
        print("stopped", flush=True)
        sys.exit(130)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs POSIX signals")
@pytest.mark.slow(but=["killpg"])
@pytest.mark.parametrize("kill", [os.killpg, os.kill])
def test_an_interrupt_ends_the_workers_too_and_leaves_no_trace(tmp_path, kill):
    """Whether Ctrl-C goes to the whole group, as in a terminal, or a signal to the parent alone."""
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    words = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, str(script)], **words) as process:
        try:
            assert process.stdout.readline() == "working\n"
            kill(process.pid, signal.SIGINT)
            said, trouble = process.communicate(timeout=100)  # until every process has closed its end
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "stopped"
    assert trouble == ""


# --- several sites ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-10, 0])
def test_a_plan_for_sites_is_that_of_one_table_with_their_rows_and_noise(delta):
    schema, epsilons = networks.load("asia").schema, (0.1, 1.0)
    told = plan(schema, 1000, sites=9, epsilons=epsilons, delta=delta)
    assert told.methods == ("alone", "pooled", "shared")
    for epsilon in epsilons:
        whole = Budget(epsilon=epsilon, delta=delta)
        noisier = Budget(epsilon=epsilon / 3, delta=0) if delta == 0 else Budget(rho=whole.ceiling / 9, delta=delta)
        for way, rows, budget in (("alone", 1000, whole), ("pooled", 9000, noisier), ("shared", 9000, whole)):
            assert told.cells[way, epsilon].f1 == estimate(schema, rows, budget=budget).f1
    f1 = [told.cells[way, 1.0].f1 for way in told.methods]
    assert f1 == sorted(f1)


def test_a_plan_for_sites_is_written_as_any_other(tmp_path):
    told = plan(networks.load("asia").schema, 1000, sites=10)
    assert "1,000 rows at each of 10 sites" in str(told)
    assert "secure aggregation" in told.report_text("x.html", accuracy=0.8)
    assert json.loads(told.report_text("x.json"))["sites"] == 10
    assert "worlds" not in str(told).lower()
    with pytest.raises(QueryError, match="default method"):
        plan(networks.load("asia").schema, 1000, sites=10, methods=("em-pc",))
    with pytest.raises(QueryError, match="sites"):
        plan(networks.load("asia").schema, 1000, sites=0)
