"""`dpcurate discover --server` and `ask --server`: a table on a server in place of one here."""

from __future__ import annotations

import pytest

from dpcurate.cli import main
from local_service import serving


@pytest.fixture
def service(tmp_path, monkeypatch):
    (tmp_path / "server").mkdir()
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path / "server") as service:
        monkeypatch.setenv("DPCURATE_TOKEN", service.token(purpose="a study"))
        yield service


def test_a_graph_is_found_on_a_server_and_written_here(service, tmp_path, capsys):
    words = ["discover", "--server", service.url, "--epsilon", "1", "--purpose", "first look", "-o", "result", "--yes"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "columns of 't'" in said.err
    assert "as alice" in said.err
    assert "--ledger" not in said.err
    assert (tmp_path / "result" / "report.html").exists()
    (run,) = service.host.log()
    assert (run.facts.by, run.facts.purpose, run.outcome) == ("alice", "first look", "finished")
    assert str(tmp_path) not in run.facts.result
    assert main(["ask", "--server", service.url, "--counts", "Smoker", "--epsilon", "0.1"]) == 0
    assert "Smoker" in capsys.readouterr().out


def test_a_token_is_read_from_a_file(service, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("DPCURATE_TOKEN")
    words = ["ask", "--server", service.url, "--counts", "Smoker", "--epsilon", "0.1"]
    assert main(words) == 1
    assert "DPCURATE_TOKEN" in capsys.readouterr().err
    (tmp_path / "token").write_text(service.token("bob") + "\n")
    assert main([*words, "--token-file", "token"]) == 0
    assert service.host.log()[0].facts.by == "bob"


def test_made_up_rows_cost_nothing_and_say_so(service, tmp_path, capsys):
    assert main(["discover", "--server", service.url, "--dummy", "--epsilon", "1", "--yes", "-o", "result"]) == 0
    assert "MADE-UP ROWS" in capsys.readouterr().err
    names = [path.name for path in (tmp_path / "result").iterdir()]
    assert names
    assert all(name.startswith("MADE-UP-") for name in names)
    assert "MADE-UP ROWS" in (tmp_path / "result" / "MADE-UP-report.html").read_text()
    assert service.host.log() == ()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["t.csv"], "TABLE"), (["--schema", "t.toml"], "--schema"), (["--ledger", "t.ledger"], "--ledger"),
        (["--by", "mallory"], "--by"), (["--insecure-seed", "1"], "--insecure-seed"), (["--delta", "0"], "--delta"),
        (["--method", "pc", "--not-private"], "--not-private"), (["--from-answers", "x"], "--server"),
    ],
    ids=str,
)  # fmt: skip
def test_what_the_service_has_is_not_given_here(service, capsys, words, why):
    assert (
        main(["discover", "--server", service.url, *words, *([] if "--from-answers" in words else ["--epsilon", "1"])])
        == 1
    )
    assert why in capsys.readouterr().err
    assert service.host.log() == ()


@pytest.mark.parametrize("word", ["--dummy", "--token-file=x"])
def test_an_option_of_a_server_needs_one(word, capsys):
    assert main(["discover", "t.csv", "--schema", "t.toml", word]) == 1
    assert "goes with --server" in capsys.readouterr().err
