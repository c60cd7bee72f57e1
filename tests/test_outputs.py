"""Outputs never touch inputs, ledgers or somebody's files; what was paid for is handed over whatever the disk does."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

import dpcurate
from dpcurate import networks
from dpcurate._files import NO_INPUTS, Inputs, OutputFolder, save_text
from dpcurate.cli import main
from dpcurate.cli.public import write_rows
from dpcurate.errors import OutputError
from dpcurate.private.ledger import Ledger
from dpcurate.queries import Counts

FILES = ["edges.csv", "graph.dot", "graph.graphml", "graph.json", "report.html", "report.json"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of its own with a small table, its schema and knowledge."""
    monkeypatch.chdir(tmp_path)
    assert main(["network", "sample", "asia", "--rows", "2000", "-o", "t.csv", "--schema", "t.toml"]) == 0
    Path("k.toml").write_text('forbidden_edges = [["xray", "asia"]]\n')
    return tmp_path


def discover(*words, ledger="a.ledger"):
    kept = [] if ledger is None else ["--ledger", ledger]
    return main(["discover", "t.csv", "--schema", "t.toml", "--epsilon", "5", "--yes", *kept, *words])


# --- inputs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [os.link, os.symlink, lambda a, b: None], ids=["hard link", "symbolic link", "itself"])
@pytest.mark.parametrize("kind", ["table", "schema", "knowledge", "ledger"])
def test_no_output_is_an_input_by_any_name(here, capsys, kind, link):
    """Each input in the place of report.json; with --force."""
    os.mkdir("out")
    old = {"table": "t.csv", "schema": "t.toml", "knowledge": "k.toml", "ledger": "a.ledger"}[kind]
    if kind == "ledger":
        assert main(["ledger", "init", old, "--table", "t", "--schema", "t.toml", "--epsilon", "20"]) == 0
    link(os.path.abspath(old), "out/report.json")
    if not os.path.lexists("out/report.json"):
        os.rename(old, "out/report.json")
        old = "out/report.json"
        assert kind != "ledger" or main(["ledger", "moved", old]) == 0
    before = Path(old).read_bytes()
    given = {"table": "t.csv", "schema": "t.toml", "knowledge": "k.toml", "ledger": "a.ledger"} | {kind: old}
    capsys.readouterr()
    words = ["--schema", given["schema"], "--knowledge", given["knowledge"], "--ledger", given["ledger"]]
    assert main(["discover", given["table"], *words, "--epsilon", "1", "--yes", "-o", "out", "--force"]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert (
        f"is the {kind} of this run and is never overwritten, even with --force" in err or "names (hard links)" in err
    )
    assert Path(old).read_bytes() == before
    assert os.listdir("out") == ["report.json"]


def test_a_ledger_that_is_not_there_yet_is_no_output_either(here, capsys):
    assert discover("-o", "out", ledger="out/report.json") == 1
    assert "is the ledger of this run" in capsys.readouterr().err
    words = ["ask", "t.csv", "--schema", "t.toml", "--epsilon", "1", "--counts", "asia"]
    assert main([*words, "--ledger", "q.json", "-o", "./q.json"]) == 1
    os.symlink("q.json", "dangling.json")
    assert main([*words, "--ledger", "dangling.json", "-o", "q.json", "--force"]) == 1
    assert not os.path.exists("q.json")


@pytest.mark.parametrize("table", ["synthetic.csv", "./synthetic.csv", "synth*.csv"])
def test_synthetic_rows_do_not_replace_the_table(here, capsys, table):
    os.rename("t.csv", "synthetic.csv")
    before = Path("synthetic.csv").read_bytes()
    words = ["--epsilon", "5", "--yes", "-o", ".", "--quantify", "0.5", "--synthetic", "5", "--force"]
    assert main(["discover", table, "--schema", "t.toml", *words]) == 1
    assert "is the table of this run" in capsys.readouterr().err
    assert Path("synthetic.csv").read_bytes() == before


def test_no_output_joins_the_table_of_a_pattern(here, capsys):
    assert main(["discover", "*.csv", "--schema", "t.toml", "--epsilon", "5", "--yes", "-o", "."]) == 1
    assert "'edges.csv' would become a part of the table '*.csv'" in capsys.readouterr().err


def test_files_of_a_folder_that_is_the_table(here):
    os.mkdir("parts")
    os.rename("t.csv", "parts/t.csv")
    with pytest.raises(OutputError, match="is the table"):
        Inputs.of(table="parts").refuse(Path("parts/t.csv"))
    Inputs.of(table="parts").refuse(Path("other.csv"))


COMMANDS = {
    "draft": ["schema", "draft", "t.csv", "-o"],
    "plan": ["plan", "--schema", "t.toml", "--rows", "100", "--worlds", "1", "-o"],
    "ask": ["ask", "t.csv", "--schema", "t.toml", "--epsilon", "1", "--counts", "asia", "-o"],
    "rows": ["network", "sample", "asia", "--rows", "5", "-o"],
    "schema of rows": ["network", "sample", "asia", "--rows", "5", "-o", "new.csv", "--schema"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_every_command_leaves_inputs_ledgers_folders_and_pipes_alone(here, capsys, words):
    assert main(["ledger", "init", "a.ledger", "--table", "t", "--schema", "t.toml", "--epsilon", "5"]) == 0
    os.symlink("a.ledger", "l.csv")
    os.mkdir("folder.csv")
    os.mkfifo("pipe.csv")
    mine = {"draft": "t.csv", "plan": "t.toml", "ask": "t.csv"}.get(words[0] if words[0] != "schema" else words[1])
    before = {p: Path(p).read_bytes() for p in ("t.csv", "t.toml", "a.ledger")}
    for place in ("a.ledger", "l.csv", "a.ledger-journal", "a.ledger-run-1", "folder.csv", "pipe.csv", mine):
        if place is not None:
            assert main([*words, place, "--force"]) == 1, place
            assert re_said(capsys.readouterr().err), place
    assert {p: Path(p).read_bytes() for p in before} == before
    assert not os.path.exists("a.ledger-journal")


def re_said(err):
    said = ("never overwritten, even with --force", "is a folder, a device or a pipe")
    return any(one in err for one in said)


def test_python_writes_over_no_input_and_no_ledger(here):
    found = dpcurate.discover("t.csv", "t.toml", epsilon=5, ledger="a.ledger")
    answer = dpcurate.ask("t.csv", "t.toml", Counts(("asia",)), epsilon=1)
    os.rename("a.ledger", "a.json")
    for write in (found.report, answer.report):
        with pytest.raises(OutputError, match=r"'t.csv' is the table of this run"):
            write("t.csv")
        with pytest.raises(OutputError, match="is a ledger"):
            write("a.json")
    with pytest.raises(OutputError, match="is a ledger"):
        networks.load("asia").schema.save("a.json")
    assert Ledger.moved("a.json").spent > 0
    found.report("x.json")
    found.report("x.json")  # one's own report may be written again


# --- somebody's files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.bif", "synthetic.csv", "edges.csv"])
def test_every_file_that_will_be_written_is_looked_for(here, capsys, name):
    os.mkdir("out")
    Path("out", name).write_text("mine")
    Path("out", ".dpcurate").write_text("mine too")
    words = ("-o", "out", "--quantify", "0.5", "--synthetic", "5")
    assert discover(*words) == 1
    assert f"'out/{name}' exists and is left as it is; nothing was read or spent" in capsys.readouterr().err
    assert not os.path.exists("a.ledger")
    assert discover(*words, "--force") == 0
    assert Path("out", ".dpcurate").read_text() == "mine too"
    assert Path("out", name).read_text() != "mine"


def test_a_link_in_the_folder_is_replaced_and_not_followed(here):
    os.mkdir("out")
    Path("mine.txt").write_text("mine")
    os.symlink("../mine.txt", "out/report.html")
    os.symlink("../nothing.txt", "out/graph.dot")
    assert discover("-o", "out") == 1  # also a link that leads nowhere is somebody's
    assert discover("-o", "out", "--force") == 0
    assert Path("mine.txt").read_text() == "mine"
    assert not os.path.exists("nothing.txt")
    assert not os.path.islink("out/report.html")


@pytest.mark.parametrize("make", [lambda path: path.write_text("mine"), lambda path: path.symlink_to("nothing")])
def test_one_file_or_dangling_link_is_enough_to_refuse(tmp_path, make):
    make(tmp_path / "a")
    with pytest.raises(OutputError, match=r"'.*a' exists and is left as it is; nothing was read or spent"):
        OutputFolder.checked(tmp_path, ["a", "b"], NO_INPUTS, force=False)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").is_symlink() or (tmp_path / "a").read_text() == "mine"


def test_a_dangling_link_that_appears_meanwhile_stays_where_there_are_no_hard_links(tmp_path, monkeypatch):
    """There a file gets its name by renaming, which would replace the link."""

    def none(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    folder = OutputFolder.made(tmp_path / "out", ["a", "b"], NO_INPUTS, force=False)
    os.symlink("nothing", tmp_path / "out" / "a")
    monkeypatch.setattr("dpcurate._files.os.link", none)
    with pytest.raises(OutputError, match="appeared while the run was under way"):
        folder.write("a", "new")
    assert os.readlink(tmp_path / "out" / "a") == "nothing"
    assert folder.write("b", "new").read_text() == "new"


@pytest.mark.parametrize("link", [False, True], ids=["file", "link"])
def test_a_temporary_name_that_is_taken_is_not_written_to(tmp_path, monkeypatch, link):
    """Somebody who guesses the temporary name gets neither the text nor a place for it."""
    folder = OutputFolder.made(tmp_path / "out", ["a"], NO_INPUTS, force=True)
    taken = tmp_path / "out" / ".dpcurate-0000000000000000.tmp"
    (tmp_path / "mine").write_text("mine")
    (os.symlink if link else os.link)(tmp_path / "mine", taken)
    monkeypatch.setattr("dpcurate._files.secrets.token_hex", lambda _: "0" * 16)
    with pytest.raises(OutputError, match=r"cannot write .*: File exists"):
        folder.write("a", "new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert sorted(os.listdir(tmp_path / "out")) == [taken.name]


def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path):
    folder = OutputFolder.made(tmp_path / "out", ["a", "b"], NO_INPUTS, force=False)
    (tmp_path / "out" / "a").write_text("mine")
    os.symlink(tmp_path / "elsewhere", tmp_path / "out" / "b")
    for name in ("a", "b"):
        with pytest.raises(OutputError, match="appeared while the run was under way"):
            folder.write(name, "new")
    assert (tmp_path / "out" / "a").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()
    assert sorted(os.listdir(tmp_path / "out")) == ["a", "b"]


def test_a_folder_that_is_replaced_by_a_link_meanwhile_is_not_written_to(tmp_path):
    (tmp_path / "victim").mkdir()
    folder = OutputFolder.made(tmp_path / "out", ["a"], NO_INPUTS, force=True)
    os.rename(tmp_path / "out", tmp_path / "old")
    os.symlink(tmp_path / "victim", tmp_path / "out")
    with pytest.raises(OutputError, match="was replaced by another one while the run was under way"):
        folder.write("a", "new")
    assert os.listdir(tmp_path / "victim") == []


def test_a_folder_that_is_replaced_between_two_steps_gets_nothing(tmp_path, monkeypatch):
    """The swap comes while the file is being written: the new name goes to the folder that was opened."""
    (tmp_path / "victim").mkdir()
    folder = OutputFolder.made(tmp_path / "out", ["a"], NO_INPUTS, force=True)
    synced = os.fsync

    def swap(handle):
        os.rename(tmp_path / "out", tmp_path / "old")
        os.symlink(tmp_path / "victim", tmp_path / "out")
        synced(handle)

    monkeypatch.setattr("dpcurate._files.os.fsync", swap)
    folder.write("a", "new")
    assert os.listdir(tmp_path / "victim") == []
    assert os.listdir(tmp_path / "old") == ["a"]


def test_a_folder_by_a_link_is_the_users_wish(here):
    os.mkdir("real")
    os.symlink("real", "latest")
    assert discover("-o", "latest") == 0
    assert sorted(os.listdir("real")) == FILES


# --- names ------------------------------------------------------------------------------------------------------


def test_a_control_character_in_a_name_is_refused_before_anything_is_spent(here, capsys):
    text = Path("t.toml").read_text()
    for old, new in (("[columns.asia]", '[columns."as\\u001bia"]'), ('"yes"', '"y\\u001bs"'), ('"yes"', '"y\\u009bs"')):
        Path("s.toml").write_text(text.replace(old, new, 1))
        assert main(["discover", "t.csv", "--schema", "s.toml", "--epsilon", "5", "--ledger", "l", "-o", "out"]) == 1
        err = capsys.readouterr().err
        assert "holds a control character" in err
        assert err.replace("\n", "").isprintable()
    assert not os.path.exists("l")


def test_words_of_a_result_cannot_steer_a_terminal(here):
    told = {"by": "me\x1b]0;owned\x07", "purpose": "\x9b2J\nfake line"}
    found = dpcurate.discover("t.csv", "t.toml", epsilon=5, **told)
    answer = dpcurate.ask("t.csv", "t.toml", Counts(("asia",)), epsilon=1, **told)
    assert str(found.run).isprintable()
    for said in (str(found), repr(found.run), str(answer), found.report_text("a.txt"), answer.report_text("a.txt")):
        assert said.replace("\n", "").isprintable()


def test_rows_of_a_network_are_not_written_into_a_folder_that_took_the_place_of_the_checked_one(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    folder = OutputFolder.of_file(out / "x.csv", NO_INPUTS, force=True)
    out.rename(tmp_path / "moved")
    out.mkdir()
    with pytest.raises(OutputError, match="was replaced by another one"):
        write_rows(networks.load("asia"), folder, "x.csv", rows=5, seed=1)
    assert not list(out.iterdir())


# --- the disk -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nothing_is_writable_for_others(here, umask):
    before = os.umask(umask)
    try:
        assert discover("-o", "deep/out", "--quantify", "0.5", "--synthetic", "5") == 0
        assert main(["network", "sample", "asia", "--rows", "5", "-o", "deep/x.parquet"]) == 0
        save_text("deep/y", "text")
    finally:
        os.umask(before)
    for path in [Path("deep"), *Path("deep").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o755 if path.is_dir() else 0o644) & ~umask, path


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr("dpcurate._files.os.fsync", full)
    with pytest.raises(OutputError, match=r"cannot write .*: No space left on device"):
        save_text(tmp_path / "a", "new")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize("ledger", [None, "a.ledger"])
def test_what_was_paid_for_is_printed_if_the_disk_is_full(here, capsys, monkeypatch, ledger):
    def full(*_):
        raise OSError(28, "No space left on device")

    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr("dpcurate._files.os.fsync", full)
        assert discover("-o", "out", "--quantify", "0.5", ledger=ledger) == 1
    out, err = capsys.readouterr()
    edges, _, rest = out.partition("{")
    report, end = json.JSONDecoder().raw_decode("{" + rest)
    assert len(report["edges"]) == len(edges.splitlines()) > 0
    assert "variable asia" in ("{" + rest)[end:]  # the model
    assert "cannot write 'out/report.html': No space left on device" in err
    assert ("the same command writes the files and pays nothing more" in err) == (ledger is not None)
    if ledger is not None:
        spent = Ledger.open(ledger).spent
        assert discover("-o", "out", "--quantify", "0.5") == 0
        assert Ledger.open(ledger).spent == spent
        assert sorted(os.listdir("out")) == sorted([*FILES, "model.bif"])


def test_a_folder_that_cannot_be_written_costs_nothing(here, capsys, monkeypatch):
    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr("dpcurate._files.os.open", read_only)
        assert discover("-o", "out") == 1
    assert (
        "cannot write to the folder 'out': Read-only file system; nothing was read or spent" in capsys.readouterr().err
    )
    assert discover("-o", "t.csv") == 1
    assert "'t.csv' is not a folder" in capsys.readouterr().err
    assert not os.path.exists("a.ledger")


def test_a_name_that_no_file_can_hold_is_refused_as_such(tmp_path):
    with pytest.raises(dpcurate.errors.FormatError, match="no character"):
        save_text(tmp_path / "a", "\ud800")
    assert os.listdir(tmp_path) == []


def test_fresh_reproductions_remove_their_own_cells_only(tmp_path):
    from dpcurate.published.reproduction.store import run_grid

    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "mine").write_text("mine")
    run_grid([], tmp_path, workers=1, fresh=True)
    assert (tmp_path / "cells" / "mine").read_text() == "mine"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "paper.md").write_text("mine")
    with pytest.raises(OutputError, match=r"paper.md' exists"):
        run_grid([], tmp_path / "other", workers=1)


def test_a_report_in_json_of_a_table_in_memory_names_no_place(tmp_path):
    """The record of a run knows its table object; the file must not, and must be written while the table lives."""
    net = networks.load("cancer")
    table = net.sample(500, seed=3)
    found = dpcurate.discover(table, net.schema, epsilon=1)
    counted = dpcurate.ask(table, net.schema, Counts(("Cancer",)), epsilon=1)
    report = json.loads(found.report(tmp_path / "r.json").read_text())
    assert set(report["run"]) == {"by", "at", "purpose", "table", "number", "schema_file", "settings", "again"}
    assert "origin" not in counted.to_json()
