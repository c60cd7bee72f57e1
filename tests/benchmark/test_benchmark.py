"""`dpcurate benchmark`: methods by worlds by epsilon, with a guarantee that is what the session says."""

from __future__ import annotations

import csv
import json
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest

from dpcurate import Budget, Curator, Dag, Numeric, Schema, benchmark, methods, networks
from dpcurate.benchmark import Case, FitResult, Run, Skeleton, compare, orient
from dpcurate.benchmark.benchmark_worlds import find
from dpcurate.benchmark.candidates import DEFAULT, NoisedCovariance
from dpcurate.benchmark.method_comparison import table_of
from dpcurate.cli import main
from dpcurate.errors import DpcurateError, QueryError
from dpcurate.graphs.pag import Pag
from dpcurate.networks.interventions import true_pag
from dpcurate.queries import Counts, Gaussian, Release
from pages import ROOT, blocks

SMALL = {"rows": 2_000, "seeds": 1}
DOC = ROOT / "docs" / "benchmark.md"


def graph_of(queryable, edges=(), **more):
    skeleton = Skeleton.of(queryable.schema.names, edges, {})
    return FitResult(orient(skeleton), skeleton, **more)


@dataclass(frozen=True)
class Half:
    """Spends half of the budget and draws the true skeleton of Cancer, with probabilities that are half right."""

    def fit(self, queryable, knowledge=None):
        queryable.ask(Release(Counts(()), Gaussian(rho=queryable.remaining / 2)))
        true = networks.load("cancer").dag.edges
        return graph_of(queryable, map(tuple, true), linked=dict.fromkeys(true, 0.5))


class Bare:
    """Returns a graph alone."""

    def fit(self, queryable, knowledge=None):
        return graph_of(queryable).graph


class Endless:
    def fit(self, queryable, knowledge=None):
        while True:
            pass


class Slow:
    """As if its time were up, whatever the limit."""

    def fit(self, queryable, knowledge=None):
        signal.raise_signal(signal.SIGPROF)


class Broken:
    def fit(self, queryable, knowledge=None):
        raise ZeroDivisionError("by nothing")


class Rows:
    """Sees the rows."""

    def fit_rows(self, table, schema, budget, seed):
        assert len(table["Smoker"]) == schema.rows == 2_000
        skeleton = Skeleton.of(schema.names, [], {})
        return FitResult(orient(skeleton), skeleton, claimed=budget.epsilon / 4)


# --- one run ------------------------------------------------------------------------------------------------


def test_a_recipe_is_scored_and_what_it_spent_is_what_the_session_charged():
    (run,) = compare([Half()], ["cancer"], [1.0], **SMALL).runs
    assert (run.guarantee, run.skeleton_f1, run.problem) == ("proved", 1.0, "")
    assert run.brier == pytest.approx(4 * 0.25 / 10)
    assert 0.6 < run.spent < 0.75  # half of a rho is about 1/sqrt(2) of an epsilon
    assert run.cpdag_f1 == pytest.approx(2 * 4 / (8 + 4))  # four lines are eight arcs, the truth has four arrows


def test_nothing_more_can_be_spent_than_the_budget():
    class Greedy:
        def fit(self, queryable, knowledge=None):
            queryable.ask(Release(Counts(()), Gaussian(rho=queryable.remaining * 2)))

    (run,) = compare([Greedy()], ["cancer"], [1.0], **SMALL).runs
    assert run.skeleton_f1 is None
    assert "budget" in run.problem


def test_published_forms_are_claimed_within_the_total_and_exact_methods_have_no_guarantee():
    found = compare(["svt-pc:published", "pc", "pc:published", "em-pc"], ["cancer"], [1.0, 5.0], **SMALL).runs
    assert [(run.method, run.guarantee, run.epsilon) for run in found] == [
        ("em-pc", "proved", 1.0), ("em-pc", "proved", 5.0),
        ("svt-pc:published", "claimed", 1.0), ("svt-pc:published", "claimed", 5.0),
        ("pc", "none", None), ("pc:published", "none", None),
    ]  # fmt: skip
    assert all(0 < run.spent <= run.epsilon * (1 + 1e-6) for run in found if run.epsilon)
    assert all(run.spent is None for run in found if run.epsilon is None)


def test_a_method_that_sees_rows_is_claimed_whatever_it_says():
    (run,) = compare([Rows], ["cancer"], [1.0], **SMALL).runs
    assert (run.method, run.guarantee, run.spent) == ("Rows", "claimed", 0.25)


def test_every_default_method_exists_and_both_forms_of_the_papers_systems_are_there():
    found = {one.name: one.guarantee for one in benchmark.candidates()}
    assert tuple(found) == DEFAULT
    published = {name for name in methods.listed("published") if name != "pc"}
    assert {n for n, g in found.items() if g == "claimed"} == {f"{name}:published" for name in published}
    assert all(found[name] == "proved" for name in ("auto", "noised-covariance", *published))
    assert {n for n, g in found.items() if g == "none"} == {"pc", "pc:published", "notears", "order-search"}


def test_settings_are_part_of_a_name():
    one, two = benchmark.candidates(["curate-pc:statistic=g", "noised-covariance:alpha=0.2"])
    assert (one.method.statistic, two.method.alpha) == ("g", 0.2)


def test_the_covariance_is_released_once_and_its_noise_is_counted():
    """With next to no budget nothing is found; with plenty all of it."""
    low, high = compare(["noised-covariance"], ["linear"], [0.001, 10.0], rows=20_000, seeds=1).runs
    assert low.skeleton_f1 == 0
    assert high.skeleton_f1 > 0.8
    assert high.spent == pytest.approx(10)
    (levels,) = compare(["noised-covariance"], ["cancer"], [10.0], rows=20_000, seeds=1).runs
    assert levels.skeleton_f1 == 1


def test_noise_of_a_released_covariance_makes_few_false_edges():
    """Of 140 pairs of independent columns 1.4 are expected at a level of 0.01; 71 if noise is not counted."""
    world = networks.random_linear(Dag.of(tuple("abcdefgh")), seed=1)
    binned = Schema(tuple(Numeric(c.name, c.low, c.high, bins=8) for c in world.schema.columns))
    found = 0
    for seed in range(5):
        budget = Budget(epsilon=0.5, delta=1e-10)
        curator = Curator(world.sample(2_000, seed=seed), binned, budget=budget, insecure_seed=seed)
        found += len(NoisedCovariance().fit(curator).graph.edges)
    assert found <= 6


def test_a_method_that_fails_or_does_not_end_is_said_and_the_others_go_on():
    (run,) = compare([Bare], ["cancer"], [1.0], **SMALL).runs
    assert run.problem == "a method returns a FitResult, and this one returned Cpdag"
    found = compare([Broken, Slow, Half], ["cancer"], [1.0], limit=900, rows=2_000, seeds=2)
    assert [run.problem for run in found.runs] == [
        *["ZeroDivisionError: by nothing"] * 2,
        "over 900 s of processor time",  # the second seed is not tried
        "",
        "",
    ]
    assert found.problems == (
        "Broken on cancer: ZeroDivisionError: by nothing (2 runs)",
        "Slow on cancer: over 900 s of processor time (1 run)",
    )
    assert all(problem in str(found) for problem in found.problems)


def test_a_method_without_an_end_is_stopped():
    (run,) = compare([Endless], ["cancer"], [1.0], limit=0.05, **SMALL).runs
    assert run.problem == "over 0.05 s of processor time"


# --- worlds -------------------------------------------------------------------------------------------------


def hidden(seed, rows):
    """The truth is a PAG."""
    case = benchmark.FAMILIES["levels"](seed, rows)
    return Case(case.table, case.schema, true_pag(case.graph))


def cyclic(seed, rows):
    case = benchmark.FAMILIES["levels"](seed, rows)
    return Cyclic(case.table, case.schema)


@dataclass
class Cyclic:
    table: object
    schema: object
    graph: None = None


def test_every_family_gives_tables_that_a_method_for_all_columns_can_read():
    found = compare(["noised-covariance"], ["levels", "linear", "mixed"], [1.0], **SMALL).runs
    assert [(run.world, run.problem) for run in found] == [("levels", ""), ("linear", ""), ("mixed", "")]


def test_equal_seeds_give_equal_tables_and_others_others():
    one, again, other = (benchmark.FAMILIES["levels"](seed, 50) for seed in (1, 1, 2))
    assert one.graph == again.graph != other.graph
    assert all((one.table[name] == again.table[name]).all() for name in one.table)
    first, second = (find("cancer")(seed, 50).table for seed in (0, 1))
    assert any((first[name] != second[name]).any() for name in first)


def test_a_world_of_ones_own_may_have_a_pag_or_no_graph():
    found = compare(["em-pc"], [hidden, cyclic], [10.0], **SMALL).runs
    assert isinstance(hidden(0, 10).graph, Pag)
    assert found[0].skeleton_f1 > 0
    assert found[0].cpdag_f1 is None
    assert found[1].problem == "no graph describes this world"


def test_a_bif_file_is_a_world(tmp_path):
    path = tmp_path / "mine.bif"
    path.write_text(networks.write(networks.load("cancer")), encoding="utf-8")
    (run,) = compare(["pc"], [str(path)], **SMALL).runs
    assert (run.world, run.problem) == ("mine", "")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"methods": ["em-pcc"]}, "did you mean 'em-pc'"),
        ({"methods": ["pc", "pc"]}, "two methods are called 'pc'"),
        ({"methods": []}, "no methods to compare"),
        ({"methods": [3]}, "is no method"),
        ({"worlds": ["cancer", "cancer"]}, "two worlds are called 'cancer'"),
        ({"worlds": ["cancre"]}, "did you mean 'cancer'"),
        ({"worlds": []}, "nothing to compare"),
        ({"worlds": ["nowhere.py:f"]}, "there is no file"),
        ({"epsilons": [-1.0]}, "greater than 0"),
        ({"seeds": 0}, "seeds is a whole number above 0"),
        ({"limit": 0}, "limit is a number of seconds above 0"),
        ({"add": ["method.txt"]}, "is no Python file"),
    ],
)
def test_what_makes_no_sense_is_refused(given, words):
    with pytest.raises(DpcurateError, match=words):
        compare(**{"methods": ["pc"], "worlds": ["cancer"], "epsilons": [1.0], **SMALL, **given})


# --- runs are kept ------------------------------------------------------------------------------------------


def test_what_was_run_is_not_run_again_and_more_can_be_added(tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    first = compare(["em-pc"], ["cancer"], [1.0], results=path, **SMALL)
    made = []
    monkeypatch.setattr(benchmark.method_comparison, "measure", lambda task: made.append(task) or fake(task))
    assert compare(["em-pc"], ["cancer"], [1.0], results=path, **SMALL) == first
    assert not made
    more = compare(["em-pc", "pc"], ["cancer"], [1.0], results=path, rows=2_000, seeds=2)
    assert [(task.candidate.name, task.seed) for task in made] == [("pc", 0), ("em-pc", 1), ("pc", 1)]
    assert [(run.method, run.seed) for run in more.runs] == [("em-pc", 0), ("em-pc", 1), ("pc", 0), ("pc", 1)]
    compare(["em-pc:threshold=0.01"], ["cancer"], [1.0], results=path, **SMALL)
    compare(["em-pc"], ["cancer"], [1.0], results=path, delta=1e-6, **SMALL)
    assert len(made) == 5
    for threshold in (0.05, 0.01, 0.05):
        compare([methods.EMPC(threshold=threshold)], ["cancer"], [1.0], results=path, **SMALL)
    assert len(made) == 7  # one name, two settings


def fake(task):
    one = task.candidate
    delta = None if task.epsilon is None else task.delta
    facts = {"method": one.name, "code": one.code, "guarantee": one.guarantee, "world": task.title}
    return Run(**facts, rows=task.rows, epsilon=task.epsilon, delta=delta, seed=task.seed, skeleton_f1=1.0)


def test_what_took_too_long_is_run_again_with_a_higher_limit(tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr(
        benchmark.method_comparison, "measure", lambda task: replace(fake(task), problem="over", limit=task.limit)
    )
    given = {"methods": ["pc"], "worlds": ["cancer"], "results": path, **SMALL}
    compare(**given, limit=1)
    monkeypatch.setattr(benchmark.method_comparison, "measure", fake)
    assert compare(**given, limit=1).problems
    assert not compare(**given, limit=2).problems


# --- the table ----------------------------------------------------------------------------------------------

BASE = Run(method="a", code="", guarantee="proved", world="x", rows=10, epsilon=1.0, delta=1e-10, seed=0, spent=1.0)


def lines(found):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in found.splitlines() if line.startswith("|")]


def test_means_are_over_worlds_and_say_over_how_many():
    runs = [
        replace(BASE, skeleton_f1=0.5, seconds=1.0),
        replace(BASE, skeleton_f1=0.6, seconds=2.0, seed=1),
        replace(BASE, skeleton_f1=0.7, seconds=3.0, seed=2),
        replace(BASE, skeleton_f1=1.0, seconds=8.0, world="y"),
        replace(BASE, skeleton_f1=1.0, seconds=8.0, world="y", seed=1),
        replace(BASE, method="b", guarantee="claimed", skeleton_f1=0.4, brier=0.125),
        replace(BASE, method="b", guarantee="claimed", world="y", problem="too slow"),
    ]
    head, rule, a, b = lines(table_of(runs))
    row = dict(zip(head, a, strict=True))
    assert set("".join(rule)) == {"-"}
    assert (row["x"], row["y"], row["skeleton F1"]) == ("0.60", "1.00", "0.800 ± 0.029")
    assert (row["seconds"], row["Brier"], row["guarantee"]) == ("5", "–", "proved")
    row = dict(zip(head, b, strict=True))
    assert (row["x"], row["y"], row["skeleton F1"]) == ("0.40", "–", "0.400 (1 of 2)")
    assert (row["Brier"], row["guarantee"]) == ("0.1250", "*claimed*")


def test_rows_without_a_proof_are_marked():
    proved = replace(BASE, skeleton_f1=1.0)
    assert "NOT PRIVATE" not in table_of([proved])
    assert "NOT PRIVATE" in table_of([proved, replace(proved, method="b", guarantee="claimed")])
    assert "| *none* " in table_of([replace(proved, guarantee="none", epsilon=None)])


# --- methods from files, and the command --------------------------------------------------------------------

REGISTERS = """
from dpcurate import methods
class Mine(methods.EMPC):
    pass
methods.register(methods.Listed("mine", Mine(max_order=0), "constraint", "Mine."))
def world(seed, rows):
    from dpcurate import benchmark
    return benchmark.FAMILIES["levels"](seed, rows)
"""


@pytest.fixture
def own_files(tmp_path, monkeypatch):
    """A folder to work in; what its files register and add to Python's path ends with the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if not name.startswith("dpcurate"):
            del sys.modules[name]


def test_the_documented_method_runs_as_printed_also_in_worker_processes(own_files, capsys):
    (code,) = [block for block in blocks(DOC) if block.startswith("# chow_liu.py")]
    assert 20 <= len([line for line in code.splitlines() if line.strip()]) <= 26
    (own_files / "chow_liu.py").write_text(code, encoding="utf-8")
    words = shlex.split("benchmark --methods em-pc --add chow_liu.py:ChowLiu --worlds cancer --epsilons 5 --seeds 1")
    assert main([*words, "--rows", "20000", "--workers", "2"]) == 0
    told = capsys.readouterr()
    head, _, *found = lines(told.out)
    assert [row[:3] for row in found] == [["em-pc", "proved", "5"], ["ChowLiu", "proved", "5"]]
    assert float(dict(zip(head, found[1], strict=True))["cancer"]) > 0.7
    assert (own_files / "benchmark" / "benchmark.md").read_text(encoding="utf-8") == told.out
    kept = [json.loads(line) for line in (own_files / "benchmark" / "runs.jsonl").read_text("utf-8").splitlines()]
    assert {row["method"] for row in kept} == {"em-pc", "ChowLiu"}
    assert main([*words, "--rows", "20000"]) == 0  # nothing is run again, and the folder is its own
    assert capsys.readouterr().out == told.out


def test_the_page_has_every_default_method_and_its_figures_are_those_of_the_results():
    with (DOC.parent / "data" / "benchmark.csv").open(encoding="utf-8", newline="") as file:
        results = {(row["method"], row["epsilon"]): row for row in csv.DictReader(file)}
    there = {row[0]: row for row in lines(DOC.read_text(encoding="utf-8")) if row[0] in DEFAULT}
    assert set(there) == set(DEFAULT)
    assert {row[1].strip("*") for row in there.values()} == {"proved", "claimed", "none"}
    nothing = {"skeleton F1": "", "CPDAG F1": ""}
    for name, (_, guarantee, *told, _) in there.items():
        exact = (name, "") in results  # without an epsilon, in the column in the middle
        keys = [("", ""), (name, ""), ("", "")] if exact else [(name, epsilon) for epsilon in ("0.1", "1", "10")]
        found = [results.get(key, nothing) for key in keys]
        assert results[keys[1]]["guarantee"] == guarantee.strip("*")
        assert told == [row[figure] for figure in nothing for row in found], name


def test_a_file_that_registers_its_recipes_needs_no_name_and_may_hold_worlds(own_files):
    (own_files / "of_mine.py").write_text(REGISTERS, encoding="utf-8")
    (run,) = compare([], ["of_mine.py:world"], [1.0], add=["of_mine.py"], **SMALL).runs
    assert (run.method, run.world, run.guarantee, run.problem) == ("mine", "world", "proved", "")


def test_an_edited_file_is_run_again(own_files):
    path = own_files / "edited.py"
    path.write_text("from dpcurate import methods\nclass Mine(methods.EMPC):\n    pass\n", encoding="utf-8")
    (before,) = benchmark.candidates([], ["edited.py:Mine"])
    path.write_text(path.read_text(encoding="utf-8") + "# better\n", encoding="utf-8")
    (after,) = benchmark.candidates([], ["edited.py:Mine"])
    assert before.code != after.code


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("nothing_there.py:Mine", "", "has no 'Mine'"),
        ("no_method.py", "", "registers no method"),
        ("json.py:Mine", "", "rename"),
        ("mistyped.py:Mine", "def", "cannot be imported: SyntaxError"),
        ("wrong_kind.py:x", "x = 1", "is no method"),
    ],
)
def test_a_file_without_a_method_is_refused(own_files, name, code, words):
    (own_files / name.partition(":")[0]).write_text(code, encoding="utf-8")
    with pytest.raises(QueryError, match=words):
        benchmark.candidates([], [name])


def test_a_folder_with_other_files_is_not_written_to(own_files, capsys):
    (own_files / "mine").mkdir()
    (own_files / "mine" / "benchmark.md").write_text("mine", encoding="utf-8")
    assert (
        main(["benchmark", "--methods", "pc", "--worlds", "cancer", "--rows", "500", "--seeds", "1", "-o", "mine"]) == 1
    )
    assert (own_files / "mine" / "benchmark.md").read_text(encoding="utf-8") == "mine"
    assert "benchmark.md" in capsys.readouterr().err


def test_what_is_published_is_loaded_only_by_name():
    code = (
        "import sys\nfrom dpcurate import benchmark\n"
        "benchmark.compare(['auto', 'noised-covariance', 'pc'], ['cancer'], [1.0], rows=500, seeds=1)\n"
        "assert not [name for name in sys.modules if name.startswith('dpcurate.published')]\n"
        "benchmark.candidates(['em-pc:published'])\n"
        "assert 'dpcurate.published' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
