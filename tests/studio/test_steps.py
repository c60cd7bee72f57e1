"""From an empty folder to a saved report, by requests alone: every step works without a script."""

from __future__ import annotations

import io
import json
import math
import threading
import zipfile

import pandas as pd
import pytest

import dpcurate
from dpcurate.cli import main
from dpcurate.planning.simulation import Refusal, WorldRun
from dpcurate.studio import plan_page
from studio_tables import Visitor, a_clinic, hidden


@pytest.fixture
def visitor(tmp_path):
    a_clinic(tmp_path)
    return Visitor(tmp_path)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """A visitor behind the first run, for tests that change nothing."""
    return _after_a_run(tmp_path_factory.mktemp("read"))


def _after_a_run(folder):
    a_clinic(folder)
    visitor = Visitor(folder)
    project = visitor.described()
    visitor.post(f"{project}/order", do="suggest", suggested="sex\nage\nregion")
    visitor.spent(project, 1, purpose="a <b>test</b>")
    assert visitor.at.startswith(f"{project}/read?run=1")
    return visitor, project, folder


def test_the_whole_way_ends_at_a_saved_page(read):
    _, _, folder = read
    home = folder / "clinic-studio"
    assert "<title>Causal graph of 10 columns" in (home / "results" / "run-1" / "report.html").read_text()
    assert dpcurate.Schema.load(home / "schema.toml").names[:3] == ("sex", "age", "region")
    assert dpcurate.Knowledge.load(home / "knowledge.toml").tiers[0] == {"sex", "age", "region"}
    ledger = dpcurate.Ledger.open(home / "clinic-studio.ledger")
    assert [run.outcome for run in ledger.log()] == ["finished"]
    assert ledger.facts.table == "clinic"


def test_the_page_to_publish_says_what_its_run_has_spent(read):
    visitor, project, folder = read
    page = visitor.get(f"{project}/report").text
    assert page == (folder / "clinic-studio" / "results" / "run-1" / "report.html").read_text()
    head = page.partition('id="graph"')[0].partition("Privacy:")[2].partition("</p>")[0]
    assert "; spent 1 of 2)" in head
    assert "rho" not in head
    other = visitor.get(f"{project}/report?direction=0.9").text
    assert "spent 0 in this run, 1 of 2" in other
    result = io.BytesIO(visitor.get(f"{project}/file/result.zip").content)
    with zipfile.ZipFile(result) as packed:
        assert packed.read("report.html").decode() == page
        assert {"schema.toml", "knowledge.toml", "edges.csv", "report.json"} <= set(packed.namelist())


def test_the_command_line_reads_the_same_from_the_saved_files(read, tmp_path, monkeypatch):
    _, _, folder = read
    home = folder / "clinic-studio"
    monkeypatch.chdir(tmp_path)
    knowledge = ["--knowledge", str(home / "knowledge.toml")]
    assert main(["discover", "--from-answers", str(home / "clinic-studio.ledger"), *knowledge, "-o", "again"]) == 0
    there, here = (
        json.loads((at / "report.json").read_text()) for at in (home / "results" / "run-1", tmp_path / "again")
    )
    assert there["edges"] == here["edges"]
    assert there["pairs"] == here["pairs"]
    assert there["edges"]


def test_other_views_are_free_and_respect_what_is_typed_later(tmp_path):
    visitor, project, folder = _after_a_run(tmp_path)
    ledger = folder / "clinic-studio" / "clinic-studio.ledger"
    spent = dpcurate.Ledger.open(ledger).spent
    all_edges = visitor.get(f"{project}/file/edges.csv?at=0.05").text
    few = visitor.get(f"{project}/file/edges.csv?at=0.95").text
    assert len(all_edges.splitlines()) > len(few.splitlines())
    assert "hidden" in visitor.get(f"{project}/report?latent=1").text
    assert "a &lt;b&gt;test&lt;/b&gt;" in visitor.get(f"{project}/read").text
    effect = visitor.get(f"{project}/read?cause=age&outcome=blood_pressure").text
    assert 'id="effect" role="status"><p class="note">' in effect
    assert "the same in both" in visitor.get(f"{project}/read?other=hidden").text
    visitor.post(f"{project}/order", do="say:apart", a="sex", b="outcome")
    assert "forbidden_edges" in visitor.get(f"{project}/file/knowledge.toml").text
    visitor.post(f"{project}/read", at="0.9", run="1")
    assert (folder / "clinic-studio" / "results" / "run-1-view-2" / "report.html").exists()
    assert dpcurate.Ledger.open(ledger).spent == spent


def test_a_run_asks_before_it_finds_nothing(visitor):
    project = visitor.described()
    visitor.post(f"{project}/plan", epsilon="0.05", was="")
    assert "would find hardly any links" in visitor.get(f"{project}/plan").text
    page = visitor.get(f"{project}/run").text
    refused = visitor.post(f"{project}/run", do="run", **hidden(page, "left", "epsilon"))
    assert refused.status_code == 400
    assert "nothing was spent" in refused.text
    assert visitor.site.workplace.project("clinic-studio").ledger is None


def test_guesses_block_a_run_until_they_are_confirmed(visitor):
    project = visitor.chosen("clinic.csv")
    page = visitor.until(f"{project}/describe", lambda page: 'id="card-0"' in page.text, "the draft is there").text
    assert page.count('class="tag guessed"') == 12  # 10 columns, the rows, and the sentence about it
    visitor.post(f"{project}/run", do="run", left="", epsilon="1")
    assert visitor.at == f"{project}/describe"
    typed = {"c1.name": "age", "c1.shown": "1", "c1.use": "number", "c1.low": "18", "c1.high": "110"}
    visitor.post(f"{project}/describe", **typed)
    state = visitor.site.workplace.project("clinic-studio").state
    assert state.card("age").confirmed  # whoever corrects a guess has looked at it
    assert len(state.unconfirmed) == 10
    visitor.confirmed(project)
    assert visitor.at == f"{project}/order"
    assert visitor.site.workplace.project("clinic-studio").schema["age"].high == 110


def test_what_makes_no_sense_is_told_on_its_card_and_kept_as_typed(visitor):
    project = visitor.chosen("clinic.csv")
    visitor.until(f"{project}/describe", lambda page: 'id="card-0"' in page.text, "the draft is there")
    typed = {"c1.name": "age", "c1.shown": "1", "c1.use": "number", "c1.low": "120", "c1.high": "about 100"}
    visitor.post(f"{project}/describe", **typed)
    page = visitor.confirmed(project).text
    assert "the greatest possible value must be a number, not &#39;about 100&#39;" in page
    assert 'value="about 100"' in page
    assert visitor.at == f"{project}/describe"


def test_a_budget_ends_and_reading_goes_on(visitor):
    project = visitor.chosen("clinic.csv")
    visitor.until(f"{project}/describe", lambda page: 'id="card-0"' in page.text, "the draft is there")
    visitor.post(f"{project}/choose", ledger="new", ceiling="1", do="next")
    visitor.confirmed(project)
    visitor.spent(project, 1)
    assert visitor.at.startswith(f"{project}/read")
    page = visitor.get(f"{project}/run").text
    assert "The budget does not allow another run" in page
    assert "Spend epsilon" not in page
    assert "Nothing is left" in visitor.get(f"{project}/plan").text
    assert visitor.get(f"{project}/read").status_code == 200


def test_a_stale_form_of_another_tab_spends_nothing(visitor):
    project = visitor.described()
    visitor.post(f"{project}/plan", epsilon="0.5", was="")
    stale = hidden(visitor.get(f"{project}/run").text, "left", "epsilon")
    visitor.spent(project, 0.5)
    refused = visitor.post(f"{project}/run", do="run", **stale)
    assert refused.status_code == 400
    assert "has changed since this page was shown" in refused.text
    assert len(visitor.site.workplace.project("clinic-studio").ledger.log()) == 1


def test_a_folder_of_parquet_files_is_one_table_and_a_relative_path_is_found(visitor, tmp_path):
    folder = tmp_path / "inner" / "parts"
    folder.mkdir(parents=True)
    for part in range(2):
        frame = pd.DataFrame({"a": ["x", "y", "z"] * 40, "b": [str(i % 2) for i in range(120)], "same": ["k"] * 120})
        frame.to_parquet(folder / f"{part}.parquet")
    listing = visitor.get("/?folder=inner/parts").text
    assert "all Parquet files of this folder" in listing
    for table in ({"listed": "inner/parts"}, {"path": "inner/parts"}):
        visitor.post("/", **table)
        project = visitor.at.removesuffix("/choose")
        page = visitor.until(f"{project}/describe", lambda page: 'id="card-0"' in page.text, "the draft is there")
        assert "Fewer than two different values." in page.text  # a constant column is pointed out
        checked = visitor.until(f"{project}/describe", lambda page: "rows are used" in page.text, "it is checked")
        assert "240 of 240 rows are used" in checked.text


def test_near_copies_are_pointed_out_on_their_card(visitor, tmp_path):
    rows = [f"{i % 7},{i % 7}.0,{i % 3}" for i in range(400)]
    (tmp_path / "t.csv").write_text("kg,kilograms,other\n" + "\n".join(rows) + "\n")
    project = visitor.chosen("t.csv")
    visitor.confirmed(project)
    page = visitor.until(f"{project}/describe", lambda page: "rows are used" in page.text, "it is checked").text
    assert "It is nearly a copy of &#39;kg&#39;: leave one of the two out." in page


def test_simulated_runs_arrive_one_after_the_other(visitor, monkeypatch):
    go_on = threading.Event()

    def simulated(jobs, _workers, _progress):
        if jobs[0].world > 0:
            assert go_on.wait(60)
        runs = [
            WorldRun(job.world, "auto", epsilon, 0.5, 3, 1) for job in jobs for epsilon in (*job.epsilons, math.inf)
        ]
        return (*runs, Refusal("PC", "it cannot"))

    monkeypatch.setattr(plan_page, "all_runs", simulated)
    project = visitor.described()
    visitor.post(f"{project}/plan", epsilon="0.7", was="", do="simulate")
    page = visitor.until(f"{project}/plan", lambda page: "On 2 random tables" in page.text, "the first are done").text
    assert "2 of 6 tables" in page
    assert "missed 3.0 links and drew 1.0 wrong ones on average" in page
    go_on.set()
    page = visitor.until(f"{project}/plan", lambda page: "On 6 random tables" in page.text, "all are done").text
    visitor.post(f"{project}/plan", epsilon="0.5", was="0.7")
    assert "random tables of this shape" not in visitor.get(f"{project}/plan").text  # that was another epsilon
