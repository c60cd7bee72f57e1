import json
import math
import re
from dataclasses import replace

import pytest

from dpcurate.accounting import epsilon_of
from dpcurate.graphs.graph import Dag
from dpcurate.published import PublishedKendallP, PublishedPrivPC, schedules
from dpcurate.published.claims import READINGS
from dpcurate.published.reproduction import figures, main, store
from dpcurate.published.reproduction.adaptivity import first_of
from dpcurate.published.reproduction.comparisons import StatementVerdict, View, literal, otherwise
from dpcurate.published.reproduction.grid import (
    ALL_READINGS,
    AUTHORS_ARCS,
    LITERAL,
    TARGETS,
    GridCell,
    full,
    quick,
    tiny,
    world,
)
from dpcurate.published.reproduction.paper_page import page, table
from dpcurate.published.reproduction.rehearsal import RANGE, Rehearsal, memory
from dpcurate.published.reproduction.runs import (
    COLUMNS,
    CellRecord,
    chosen_threshold,
    curate_reading,
    recipe,
    run,
)
from dpcurate.published.reproduction.statements import STATEMENTS
from dpcurate.published.reproduction.store import (
    ENOUGH,
    METRICS,
    Runs,
    Summary,
    beats,
    grouped,
    read_runs,
    run_grid,
    write_runs,
)
from dpcurate.published.reproduction.texts import CURATE_READINGS, PICTURES
from dpcurate.queries import Exact, Laplace, Release

ROWS = 2_000
VERDICT = re.compile(r"(holds|does not hold|cannot be told|holds in part) \d+/\d+/\d+")


@pytest.fixture(scope="module")
def tiny_runs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("paper")
    assert main(["--grid", "tiny", "-o", str(directory), "--workers", "2"]) == 0
    return directory


@pytest.mark.slow
class TestEndToEnd:
    def test_every_cell_is_in_the_parquet(self, tiny_runs):
        rows = read_runs(tiny_runs / "runs.parquet")
        assert list(rows[0]) == list(COLUMNS)
        done = {(r["kind"], r["network"], r["method"], r["reading"], r["target"]) for r in rows}
        for cell in tiny():
            if cell.kind != "schedule":
                assert (cell.kind, cell.network, cell.method, cell.reading, cell.target) in done
        assert all(r["version"] for r in rows)

    def test_published_runs_have_both_leakages_and_all_truths(self, tiny_runs):
        rows = [r for r in read_runs(tiny_runs / "runs.parquet") if r["kind"] == "private"]
        for r in rows:
            assert r["claimed"] > 0
            assert r["proved"] > 0
            assert all(0 <= r[m] <= 1 for m in (*METRICS, "pc_precision", "pc_recall"))
        infinite = {r["method"] for r in rows if math.isinf(r["proved"])}
        assert infinite == {"em-pc", "noleaks", "curate-score"}

    def test_figures_are_drawn(self, tiny_runs):
        drawn = sorted(p.name for p in (tiny_runs / "figures").iterdir())
        names = list(PICTURES)
        assert drawn == sorted(f"{n}.png" for n in names)
        assert all(p.stat().st_size > 2_000 for p in (tiny_runs / "figures").iterdir())
        text = (tiny_runs / "paper.md").read_text()
        assert all(f"(figures/{n}.png)" in text for n in names)

    def test_few_runs_give_no_verdicts(self, tiny_runs):
        text = (tiny_runs / "paper.md").read_text()
        for statement in STATEMENTS:
            assert statement.text in text
        assert not VERDICT.search(text)
        assert "too few runs" in text

    def test_many_runs_give_a_verdict_on_every_statement(self, tiny_runs):
        text = page(many(read_runs(tiny_runs / "runs.parquet")))
        for number, statement in enumerate(STATEMENTS, 1):
            (row,) = (line for line in text.splitlines() if line.startswith(f"| {number} | “{statement.text}”"))
            assert VERDICT.search(row) or "-." in row
            assert statement.rule in row
        assert text.index("| CURATE: printed |") < text.index("| CURATE: script |")

    def test_the_page_works_without_figures(self, tiny_runs):
        assert "figures/" not in page(Runs(read_runs(tiny_runs / "runs.parquet")), drawn=False)

    def test_what_is_done_is_not_run_again(self, tiny_runs, monkeypatch):
        before = read_runs(tiny_runs / "runs.parquet")
        cells = tiny()
        (tiny_runs / "cells" / f"{cells[0].name}.json").unlink()
        ran = []
        monkeypatch.setattr(store, "run", lambda cell: ran.append(cell) or run(cell))
        path = run_grid(cells, tiny_runs, workers=1)
        assert ran == [cells[0]]
        assert read_runs(path) == before


def many(rows):
    """The same runs, each twenty times."""
    return Runs([row for row in rows for _ in range(20)])


class TestGrids:
    def test_quick_has_every_network_and_the_figures_totals(self):
        cells = [c for c in quick() if c.kind == "private"]
        for network in AUTHORS_ARCS:
            assert {c.target for c in cells if c.network == network and c.method == "curate-pc"} == set(TARGETS)

    def test_full_has_enough_literal_runs_for_a_verdict_and_every_reading_of_curate(self):
        cells = [c for c in full() if c.kind == "private" and c.reading != "proved" and c.method != "em-pc"]
        assert min(c.runs for c in cells if c.reading == LITERAL[c.method]) >= ENOUGH
        assert {c.reading for c in cells if c.method == "curate-pc"} == set(ALL_READINGS["curate-pc"])
        for kind, least in (("allocation", 30), ("proved allocation", 10)):  # the comparison at equal leakage
            compared = {(c.network, c.target) for c in full() if c.kind == kind and c.runs >= 40}
            assert len(compared) >= least

    def test_names_tell_cells_apart_and_grids_are_sets(self):
        for grid in (full(), quick(), tiny()):
            assert len({c.name for c in grid}) == len(grid)
        groups = grouped(full())
        assert sum(map(len, groups)) == len(full())
        assert sum(c.cost for c in groups[0]) >= sum(c.cost for c in groups[-1])

    def test_the_page_explains_every_reading(self):
        assert tuple(CURATE_READINGS) == tuple(READINGS)


class TestCells:
    def test_a_cell_gives_the_same_rows_twice(self):
        cell = GridCell("private", "cancer", "priv-pc", "coded", 1.0, 2, ROWS)
        first, second = ([{k: v for k, v in vars_of(r).items() if k != "seconds"} for r in run(cell)] for _ in range(2))
        assert first == second
        assert first[0]["answered"] > 0

    def test_a_sampled_cell_gives_the_same_rows_twice(self):
        cell = GridCell("private", "cancer", "noleaks", "artifact", 1.0, 1)
        assert [r.claimed for r in run(cell)] == [r.claimed for r in run(cell)]

    def test_claims_meet_the_target(self):
        rows = run(GridCell("private", "cancer", "svt-pc", "printed", 1.0, 20, ROWS))
        assert Summary.of([r.claimed for r in rows]).mean == pytest.approx(1.0, rel=0.1)

    def test_curate_never_spends_more_than_its_total_as_printed(self):
        rows = run(GridCell("private", "asia", "curate-pc", "printed", 1.0, 10, ROWS))
        assert max(r.claimed for r in rows) <= 1.0 + 1e-6

    @pytest.mark.parametrize(("method", "reading"), [(m, r) for m, rs in ALL_READINGS.items() for r in rs])
    def test_readings_are_different_recipes(self, method, reading):
        cells = [GridCell("private", "survey", method, r, 1.0, 1) for r in ALL_READINGS[method] if r != reading]
        same = [c.reading for c in cells if recipe(c, 1.0) == recipe(replace(cells[0], reading=reading), 1.0)]
        assert method == "noleaks" or not same

    def test_the_script_takes_survey_for_five_columns(self):
        script = GridCell("private", "survey", "curate-pc", "script", 1.0, 1)
        assert curate_reading(script).variables == 5
        assert curate_reading(replace(script, network="asia")).variables is None

    def test_the_slip_changes_arcs_and_nothing_else(self):
        slip, own = (run(GridCell("private", "earthquake", "em-pc", r, 5.0, 3)) for r in ("coded", "own separators"))
        assert [r.skeleton_f1 for r in slip] == [r.skeleton_f1 for r in own]
        assert [r.claimed for r in slip] == [r.claimed for r in own]
        assert Summary.of([r.authors_f1 for r in slip]).mean < Summary.of([r.authors_f1 for r in own]).mean - 0.2

    @pytest.mark.parametrize(("network", "deletions"), [("cancer", 7), ("earthquake", 6), ("survey", 9), ("asia", 21)])
    def test_pc_makes_as_many_tests_in_the_authors_unit_as_theirs(self, network, deletions):
        (found,) = run(GridCell("exact", network, "pc-kendall", "exact", 0.0, 1))
        assert abs(found.counted - deletions) <= 2
        assert found.answered > 2 * found.counted
        assert found.pc_f1 == 1.0

    def test_a_half_written_cell_does_not_count(self, tmp_path, monkeypatch):
        def broken(cell):
            raise KeyboardInterrupt

        monkeypatch.setattr(store, "run", broken)
        with pytest.raises(KeyboardInterrupt):
            run_grid(tiny()[:1], tmp_path, workers=1)
        assert not list((tmp_path / "cells").iterdir())
        assert not (tmp_path / "runs.parquet").exists()

    def test_an_interrupted_command_says_how_to_go_on(self, tmp_path, monkeypatch, capsys):
        def broken(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(store, "run_grid", broken)
        assert main(["--grid", "tiny", "-o", str(tmp_path)]) == 130
        assert "goes on from here" in capsys.readouterr().err


def vars_of(row):
    return json.loads(json.dumps({name: getattr(row, name) for name in COLUMNS}))


class TestRehearsal:
    STATISTIC = PublishedKendallP("Smoker", "Cancer", (), bound="priv-pc")

    def test_noise_is_charged_at_the_bound_that_holds(self):
        queryable = Rehearsal(memory("cancer", ROWS), "a")
        for _ in range(3):
            queryable.ask(Release(self.STATISTIC, Laplace(scale=2.0)))
        assert queryable.rho == pytest.approx(3 * (RANGE / 2.0) ** 2 / 2)
        queryable.ask(Release(self.STATISTIC, Exact()))
        assert queryable.rho == math.inf

    def test_noise_by_epsilon_has_the_authors_scale(self):
        queryable = Rehearsal(memory("cancer", ROWS), "a")
        queryable.ask(Release(self.STATISTIC, Laplace(epsilon=0.5)))
        assert queryable.rho == pytest.approx((RANGE * 0.5 / queryable.sensitivity(self.STATISTIC)) ** 2 / 2)

    def test_noise_is_laplace(self):
        queryable = Rehearsal(memory("cancer", ROWS), "a")
        exact = float(queryable.ask(Release(self.STATISTIC, Exact())))
        drawn = [float(queryable.ask(Release(self.STATISTIC, Laplace(scale=3.0)))) - exact for _ in range(4_000)]
        assert sum(map(abs, drawn)) / len(drawn) == pytest.approx(3.0, rel=0.08)
        assert abs(sum(drawn) / len(drawn)) < 0.3

    def test_a_proved_epsilon_is_larger_than_the_claimed_one(self):
        queryable = Rehearsal(memory("cancer", 100_000), "a")
        found = PublishedPrivPC(epsilon=0.05).fit(queryable)
        assert epsilon_of(rho=queryable.rho, delta=1e-10) > 10 * found.claimed


class TestTruths:
    def test_the_authors_lists_name_real_nodes(self):
        for name in AUTHORS_ARCS:
            arcs = world(name, ROWS).authors
            assert all(a != b for a, b in arcs)
            assert len(arcs) == len(AUTHORS_ARCS[name].split())

    def test_codings_differ_only_in_the_order_of_levels(self):
        place = world("survey", ROWS)
        for name in place.dag.nodes:
            pairs = set(zip(place.natural.table[name], place.alphabetical.table[name], strict=True))
            assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})

    def test_the_chosen_threshold_is_the_best_one(self):
        truth = Dag(("a", "b", "c"), frozenset({("a", "b"), ("b", "c")}))
        weights = [[0, 0.9, 0.1], [0.05, 0, 0.5], [0, 0, 0]]
        assert chosen_threshold(weights, truth).edges == truth.edges

    def test_first_of_spends_the_total(self):
        for total in (0.1, 1.0, 10.0):
            assert sum(schedules.algorithm_2(first_of(total, 50), 50)) == pytest.approx(total, rel=1e-3)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("counts", "word"),
        [
            ((7, 0, 3), "holds"),
            ((14, 2, 4), "holds"),
            ((14, 3, 3), "holds in part"),
            ((6, 0, 4), "holds in part"),
            ((4, 0, 6), "cannot be told"),
            ((0, 0, 3), "cannot be told"),
            ((0, 0, 0), "cannot be told"),
            ((2, 2, 1), "does not hold"),
            ((0, 3, 1), "does not hold"),
        ],
    )
    def test_rule(self, counts, word):
        signs = [s for s, number in zip((1, -1, 0), counts, strict=True) for _ in range(number)]
        found = StatementVerdict.of([("somewhere", s) for s in signs])
        assert (found.word, found.counts) == (word, counts)

    def test_means_must_differ_by_two_standard_errors(self):
        high, low = Summary(0.8, 0.1, 25), Summary(0.7, 0.1, 25)
        assert (beats(high, low), beats(low, high), beats(high, high)) == (1, -1, 0)
        assert beats(Summary(0.8, 0.2, 4), low) == 0

    def test_no_statement_about_nothing_gets_a_verdict(self):
        for statement in STATEMENTS:
            found = [statement.verdict(Runs([]), part, View("pc_f1", "spent", "printed")) for part in statement.parts]
            assert {v.word for v in found} == {"cannot be told"}

    def test_spent_and_nominal_leakage_can_disagree(self):
        """CURATE is as good at a total of 1 as its rival, and spent a tenth of it."""
        runs = Runs(
            [*cell("curate-pc", 1.0, 0.1, 0.6), *cell("svt-pc", 0.05, 0.05, 0.2), *cell("svt-pc", 1.0, 1.0, 0.6)]
        )
        against = STATEMENTS[2].verdict
        assert against(runs, "SVT-PC", View("pc_f1", "nominal", "printed")).counts == (0, 0, 1)
        assert against(runs, "SVT-PC", View("pc_f1", "spent", "printed")).counts == (1, 0, 0)

    def test_what_else_makes_it_true_is_the_most_literal_reading_that_does(self):
        rival = [*cell("svt-pc", 0.1, 0.1, 0.5), *cell("svt-pc", 1.0, 1.0, 0.5)]
        low, high = (cell("curate-pc", 1.0, 0.9, f, r) for f, r in ((0.3, "printed"), (0.8, "script")))
        runs = Runs([*rival, *low, *high])
        assert "SVT-PC: does not hold 0/1/0" in literal(STATEMENTS[2], runs)
        assert "SVT-PC: true as *script*, at spent" in otherwise(STATEMENTS[2], runs)
        assert not otherwise(STATEMENTS[2], Runs([*rival, *low]))
        assert not otherwise(STATEMENTS[2], Runs([*rival, *cell("curate-pc", 1.0, 0.9, 0.8)]))

    def test_a_line_is_followed_between_its_points_and_no_further(self):
        runs = Runs([*cell("svt-pc", 0.1, 0.1, 0.2), *cell("svt-pc", 10.0, 10.0, 0.6)])
        assert runs.at("pc_f1", "cancer", "svt-pc", "spent", 1.0).mean == pytest.approx(0.4, abs=0.01)
        assert runs.at("pc_f1", "cancer", "svt-pc", "spent", 0.05) is None
        assert runs.at("pc_f1", "cancer", "svt-pc", "spent", 20.0) is None


def cell(method, target, claimed, f1, reading=None):
    """Twenty runs that spread little."""
    facts = {"kind": "private", "network": "cancer", "method": method, "reading": reading or LITERAL[method]}
    scores = {"pc_f1": f1, "authors_f1": f1, "skeleton_f1": f1}
    record = CellRecord(**facts, target=target, claimed=claimed, proved=math.inf, **scores)
    row = {name: getattr(record, name) for name in COLUMNS}
    return [{**row, **{k: v + 0.01 * (i % 3 - 1) for k, v in scores.items()}} for i in range(20)]


@pytest.mark.slow
def test_the_dotted_line_is_the_run_that_methods_are_compared_with(tiny_runs):
    runs = Runs(read_runs(tiny_runs / "runs.parquet"))
    assert runs.exact("pc_f1", "cancer") == 1.0

    class Axis:
        lines = ()

        def axhline(self, y, **style):
            self.lines = (*self.lines, (y, style["label"]))

        def __getattr__(self, name):
            return lambda *_, **__: None

    axis = Axis()
    figures._spent("skeleton_f1")(axis, runs, "cancer")
    assert axis.lines == ((runs.exact("skeleton_f1", "cancer"), "PC, Kendall, not private"),)


def test_parquet_keeps_infinity_and_nothing(tmp_path):
    rows = [dict.fromkeys(COLUMNS) | {"kind": "private", "proved": math.inf, "seed": 1, "undefined": 0}]
    path = tmp_path / "it's.parquet"
    write_runs(rows, path)
    (row,) = read_runs(path)
    assert row["proved"] == math.inf
    assert row["claimed"] is None


def test_table():
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n|---|---|\n| 1 | 2 |\n"


def test_a_score_run_gives_a_row_for_each_way_to_set_the_threshold():
    found = run(GridCell("private", "cancer", "noleaks", "printed", 10.0, 1, ROWS))
    assert [r.reading for r in found] == ["printed", "printed, threshold 0.3"]
    assert found[0].skeleton_f1 >= found[1].skeleton_f1
