import json
import math

import pytest

from dpcurate.accounting import epsilon_of
from dpcurate.graphs.graph import Dag
from dpcurate.published import PublishedKendallP, PublishedPrivPC, schedules
from dpcurate.published.reproduction import main, store
from dpcurate.published.reproduction.grid import GridCell, full, quick, tiny
from dpcurate.published.reproduction.page import page, table
from dpcurate.published.reproduction.rehearsal import RANGE, Rehearsal, memory
from dpcurate.published.reproduction.runs import COLUMNS, chosen_threshold, first_of, run
from dpcurate.published.reproduction.statements import STATEMENTS, StatementVerdict
from dpcurate.published.reproduction.store import grouped, read_runs, run_grid, write_runs
from dpcurate.published.reproduction.summary import METRICS, Runs, Summary, beats
from dpcurate.published.reproduction.world import AUTHORS_ARCS, world
from dpcurate.queries import Exact, Laplace, Release

ROWS = 2_000


@pytest.fixture(scope="module")
def tiny_runs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("paper")
    assert main(["--grid", "tiny", "-o", str(directory), "--workers", "2"]) == 0
    return directory


class TestEndToEnd:
    def test_every_cell_is_in_the_parquet(self, tiny_runs):
        rows = read_runs(tiny_runs / "runs.parquet")
        assert list(rows[0]) == list(COLUMNS)
        done = {(r["kind"], r["network"], r["method"], r["target"]) for r in rows}
        for cell in tiny():
            if cell.kind != "schedule":
                assert (cell.kind, cell.network, cell.method, cell.target) in done
        assert all(r["version"] for r in rows)

    def test_published_runs_have_both_leakages_and_all_truths(self, tiny_runs):
        rows = [r for r in read_runs(tiny_runs / "runs.parquet") if r["kind"] == "private"]
        for r in rows:
            assert r["claimed"] > 0
            assert r["proved"] > 0
            assert all(0 <= r[m] <= 1 for m in (*METRICS, "authors_f1"))
        infinite = {r["method"] for r in rows if math.isinf(r["proved"])}
        assert infinite == {"em-pc", "noleaks", "curate-score"}

    def test_figures_are_drawn(self, tiny_runs):
        drawn = sorted(p.name for p in (tiny_runs / "figures").iterdir())
        names = [f"{axis}-{truth}" for axis in ("claimed", "proved") for truth in ("pc", "skeleton", "arc")]
        assert drawn == sorted(f"{n}.png" for n in [*names, "tests", "seconds", "schedules"])
        assert all(p.stat().st_size > 2_000 for p in (tiny_runs / "figures").iterdir())

    def test_the_page_lists_every_statement_with_a_verdict(self, tiny_runs):
        text = (tiny_runs / "paper.md").read_text()
        for number, statement in enumerate(STATEMENTS, 1):
            assert f"**{number}. {statement.text}**" in text
        words = ("| holds |", "| does not hold |", "| cannot be told |", "| holds in part |")
        assert sum(text.count(w) for w in words) >= len(STATEMENTS)
        assert "figures/claimed-pc.png" in text

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


class TestCells:
    def test_a_cell_gives_the_same_rows_twice(self):
        cell = GridCell("private", "cancer", "priv-pc", "published", 1.0, 2, ROWS)
        first, second = ([{k: v for k, v in vars_of(r).items() if k != "seconds"} for r in run(cell)] for _ in range(2))
        assert first == second
        assert first[0]["tests"] > 0

    def test_claims_meet_the_target(self):
        rows = run(GridCell("private", "cancer", "svt-pc", "published", 1.0, 20, ROWS))
        assert Summary.of([r.claimed for r in rows]).mean == pytest.approx(1.0, rel=0.1)

    def test_names_tell_cells_apart_and_grids_are_sets(self):
        for grid in (full(), quick(), tiny()):
            assert len({c.name for c in grid}) == len(grid)
        groups = grouped(full())
        assert sum(map(len, groups)) == len(full())
        assert sum(c.cost for c in groups[0]) >= sum(c.cost for c in groups[-1])

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
        ("signs", "word"),
        [
            ((1, 1, 0), "holds"),
            ((1, 0, 0), "cannot be told"),
            ((0, 0), "cannot be told"),
            ((), "cannot be told"),
            ((1, 1, -1), "holds in part"),
            ((1, -1, -1), "does not hold"),
            ((1, -1), "does not hold"),
            ((-1, 0), "does not hold"),
            ((-1, 0, 0), "cannot be told"),
        ],
    )
    def test_rule(self, signs, word):
        assert StatementVerdict.of([("somewhere", s) for s in signs]).word == word

    def test_means_must_differ_by_two_standard_errors(self):
        high, low = Summary(0.8, 0.1, 25), Summary(0.7, 0.1, 25)
        assert (beats(high, low), beats(low, high), beats(high, high)) == (1, -1, 0)
        assert beats(Summary(0.8, 0.2, 4), low) == 0

    def test_no_statement_about_nothing_gets_a_verdict(self):
        for statement in STATEMENTS:
            assert {v.word for v in statement.verdicts(Runs([])).values()} == {"cannot be told"}


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
    found = run(GridCell("private", "cancer", "noleaks", "published", 10.0, 1, ROWS))
    assert [r.variant for r in found] == ["published", "published-fixed"]
    assert found[0].skeleton_f1 >= found[1].skeleton_f1
