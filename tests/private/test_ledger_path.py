"""A ledger has one name: under another, what was paid could be undone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_ledger import ZCDP, _folder, _nobody, gaussian, made

from dpcurate import Curator
from dpcurate.cli import main
from dpcurate.errors import LedgerError
from dpcurate.private.ledger import Ledger
from dpcurate.private.ledger import path as ledger_path

QUARTER = [gaussian(0.25)]
JOURNAL = bytes.fromhex("d9d505f920a163d7")  # how a journal begins, once SQLite has synced it


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path)) / "the ledger?.ledger"


def journal(path: Path) -> Path:
    return Path(f"{path}-journal")


def interrupted(path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object] | None = None) -> Path:
    """A ledger with 0.25 paid, whose next payment was killed after its pages were written, before its commit.

    Or one that is there, and another act.
    The commit is the removal of the journal, so the journal is kept as it was and put back.
    """
    kept: list[bytes] = []
    connect = sqlite3.connect

    def keep(statement: str) -> None:
        if statement == "COMMIT" and journal(path).exists():
            kept.append(journal(path).read_bytes())

    def watched(*args: Any, **more: Any) -> sqlite3.Connection:
        connection = connect(*args, **more)
        connection.set_trace_callback(keep)
        return connection

    if act is None:
        made(path).charge(QUARTER)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", watched)
        (act or (lambda: Ledger.open(path).charge(QUARTER)))()
    (whole,) = kept
    journal(path).write_bytes(JOURNAL + b"\xff" * 4 + whole[12:])  # as many records as the journal is long
    return path


def test_the_interruption_is_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(path, monkeypatch)
    assert Ledger.open(path).spent == 0.25
    assert not journal(path).exists()


# --- links -----------------------------------------------------------------------------------------------


def test_a_second_link_cannot_undo_a_payment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed under one name, charged under the other, opened under the first."""
    interrupted(path, monkeypatch)
    link = path.with_name("link")
    link.hardlink_to(path)
    before = _folder(path)
    for name in (link, path):
        for way_in in (Ledger.open, Ledger.moved):
            with pytest.raises(LedgerError, match=r"2 names \(hard links\)"):
                way_in(name)
    assert _folder(path) == before
    path.unlink()
    with pytest.raises(LedgerError, match="ledger moved"):
        Ledger.open(link)
    with pytest.raises(LedgerError, match="interrupted"):
        Ledger.moved(link)
    link.rename(path)
    assert Ledger.open(path).spent == 0.25


def test_a_link_made_while_the_ledger_is_open_stops_it(path: Path) -> None:
    ledger = made(path)
    link = path.with_name("link")
    with ledger.reserve(0.5):
        link.hardlink_to(path)
        ledger.charge(QUARTER)  # from the block, which is paid for
        uses: list[Callable[[], object]] = [lambda: ledger.spent, lambda: ledger.events, lambda: ledger.kept_at]
        for use in uses:
            with pytest.raises(LedgerError, match="2 names"):
                use()
        link.unlink()
    assert ledger.spent == 0.25
    link.hardlink_to(path)
    with pytest.raises(LedgerError, match="2 names"):
        ledger.charge(QUARTER)
    with pytest.raises(LedgerError, match="2 names"), ledger.reserve(0.25):
        pass
    link.unlink()
    assert Ledger.open(path).spent == 0.25


def test_a_link_made_between_the_first_look_and_the_lock_is_seen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = made(path)
    look = ledger_path.look
    looks: list[Path] = []

    def meddled(place: Path) -> ledger_path.File:
        looks.append(place)
        if len(looks) == 2:
            path.with_name("link").hardlink_to(path)
        return look(place)

    monkeypatch.setattr(ledger_path, "look", meddled)
    with pytest.raises(LedgerError, match="2 names"):
        ledger.charge(QUARTER)


def test_a_file_put_in_its_place_between_the_first_look_and_the_lock_is_seen(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = made(path)
    look = ledger_path.look
    looks: list[Path] = []

    def meddled(place: Path) -> ledger_path.File:
        looks.append(place)
        if len(looks) == 2:
            shutil.copy(path, path.with_name("copy"))
            path.with_name("copy").rename(path)
        return look(place)

    monkeypatch.setattr(ledger_path, "look", meddled)
    with pytest.raises(LedgerError, match="replaced while it was being opened"):
        ledger.charge(QUARTER)
    ledger.charge(QUARTER)
    assert Ledger.open(path).spent == ledger.spent == 0.25


# --- moves -----------------------------------------------------------------------------------------------


def test_moved_away_and_back_while_a_journal_is_hot(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = interrupted(path, monkeypatch).with_name("away")
    path.rename(away)
    for _ in range(2):
        with pytest.raises(LedgerError, match="kept at") as refusal:
            Ledger.open(away)
        assert "dpcurate ledger moved" in str(refusal.value)
        with pytest.raises(LedgerError, match="journal is still there"):
            Ledger.moved(away)
    away.rename(path)
    assert Ledger.open(path).spent == 0.25


def test_a_move_is_adopted_once_and_written_down(path: Path) -> None:
    ledger = made(path)
    ledger.charge(QUARTER)
    away = path.with_name("away")
    path.rename(away)
    with pytest.raises(LedgerError, match="could not be read or written"):
        ledger.charge(QUARTER)
    adopted = Ledger.moved(away)
    adopted.charge(QUARTER)
    assert [where for _, where in adopted.kept_at] == [str(path), str(away)]
    assert adopted.facts is not None
    assert adopted.facts.path == str(away)
    assert Ledger.open(away).spent == Ledger.moved(away).spent == 0.5
    assert len(Ledger.open(away).kept_at) == 2  # adopting it where it is changes nothing
    away.rename(path)
    with pytest.raises(LedgerError, match="kept at"):
        ledger.charge(QUARTER)
    with pytest.raises(LedgerError, match="kept at"):
        Ledger.open(path)
    assert len(Ledger.moved(path).kept_at) == 3
    ledger.charge(QUARTER)
    assert ledger.spent == 0.75


def test_a_moved_folder_takes_its_journal_with_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = path.parent / "folder"
    folder.mkdir()
    interrupted(folder / path.name, monkeypatch)
    away = folder.rename(path.parent / "away") / path.name
    with pytest.raises(LedgerError, match="kept at"):
        Ledger.open(away)
    assert Ledger.moved(away).spent == 0.25
    folder.write_text("a file, where the folder was")
    assert Ledger.open(away).spent == 0.25


def test_another_ledger_at_the_old_place_is_not_disturbed(path: Path) -> None:
    made(path).charge(QUARTER)
    away = path.with_name("away")
    path.rename(away)
    other = made(path)
    assert Ledger.moved(away).spent == 0.25
    assert other.spent == 0


def test_a_copy_is_not_adopted_beside_its_original(path: Path) -> None:
    ledger = made(path)
    ledger.charge(QUARTER)
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    before = copy.read_bytes()
    with pytest.raises(LedgerError, match="second budget"):
        Ledger.open(copy)
    with pytest.raises(LedgerError, match="two budgets"):
        Ledger.moved(copy)
    path.write_bytes(b"?")
    with pytest.raises(LedgerError, match="cannot be told"):
        Ledger.moved(copy)
    assert copy.read_bytes() == before
    path.unlink()
    assert Ledger.moved(copy).spent == 0.25


def test_a_copy_put_back_in_its_place_goes_on(path: Path) -> None:
    made(path).charge(QUARTER)
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    path.unlink()
    shutil.copy(copy, path)
    assert Ledger.open(path).spent == 0.25


def test_a_place_that_cannot_be_looked_at_is_not_left() -> None:
    folder = Path(os.path.realpath(tempfile.mkdtemp(dir="/tmp")))
    path, locked = folder / "ledger", folder / "locked"
    locked.mkdir()
    made(locked / "ledger")
    (locked / "ledger").rename(path)
    path.chmod(0o000)
    folder.chmod(0o777)
    with _nobody(), pytest.raises(LedgerError, match="could not be read: Permission denied"):
        Ledger.open(path)
    path.chmod(0o666)
    locked.chmod(0o000)
    try:
        with _nobody():
            with pytest.raises(LedgerError, match="cannot be told: Permission denied"):
                Ledger.moved(path)
            with pytest.raises(LedgerError, match="could not be read: Permission denied"):
                Ledger.open(locked / "ledger")
            with pytest.raises(LedgerError, match="cannot be told: Permission denied"):
                made(locked / "ledger")
            with pytest.raises(LedgerError, match="cannot be told: Permission denied"):
                Ledger.exists(locked / "ledger")
        locked.chmod(0o755)
        assert len(Ledger.moved(path).kept_at) == 2
    finally:
        locked.chmod(0o755)
        shutil.rmtree(folder)


def test_a_new_ledger_does_not_take_the_journal_of_an_old_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite would remove it, and with it what puts the old one right."""
    away = path.with_name("away")
    interrupted(path, monkeypatch).rename(away)
    with pytest.raises(LedgerError, match="left by another ledger"):
        made(path)
    assert not path.exists()
    away.rename(path)
    assert Ledger.open(path).spent == 0.25


# --- other ways to have two names ------------------------------------------------------------------------


def test_a_symbolic_link_is_followed_to_the_one_path(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path.name)
    ledger = made(link)  # made where the link points
    ledger.charge(QUARTER)
    again = Ledger.open(link)
    assert again.facts is not None
    assert again.facts.path == str(path)
    again.charge(QUARTER)
    assert link.is_symlink()
    assert Ledger.open(path).spent == 0.5
    away = path.with_name("away")
    path.rename(away)
    path.symlink_to(away)  # the old name still leads there
    assert Ledger.moved(path).spent == 0.5
    assert Ledger.open(path).spent == Ledger.open(away).spent == 0.5


@pytest.mark.parametrize("name", ["ledger", "a b\tc\\d\ne.ledger"])
def test_a_single_file_that_is_mounted_is_refused(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path.with_name(name)
    made(path)
    written = str(path).translate({32: r"\040", 9: r"\011", 10: r"\012", 92: r"\134"})
    mounts = path.with_name("mounts")
    monkeypatch.setattr(ledger_path, "MOUNTS", mounts)
    mounts.write_text(f"22 1 8:1 / {path.parent} rw - ext4 /dev/sda1 rw\nodd line\n")
    assert Ledger.open(path).spent == 0
    mounts.write_text(f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 8:1 /x {written} rw - ext4 /dev/sda1 rw\n")
    with pytest.raises(LedgerError, match="Mount the folder"):
        Ledger.open(path)
    mounts.unlink()  # not Linux
    assert Ledger.open(path).spent == 0


MOUNTED = """
set -e
mkdir "$1/mounted" && touch "$1/mounted/ledger"
mount --bind "$1/real/ledger" "$1/mounted/ledger" || exit 77
mkdir "$1/whole" && mount --bind "$1/real" "$1/whole"
"$2" -m dpcurate.cli ledger show "$1/mounted/ledger" 2>&1 || true
"$2" -m dpcurate.cli ledger moved "$1/whole/ledger" 2>&1
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare")
def test_real_mounts(path: Path) -> None:
    folder = path.parent
    (folder / "real").mkdir()
    made(folder / "real" / "ledger")
    command = ["unshare", "-m", "sh", "-c", MOUNTED, "sh", str(folder), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode in (1, 77) and "dpcurate" not in done.stdout:
        pytest.skip("not allowed to mount here")
    refused, adopted = done.stdout.splitlines()[:2]
    assert "Mount the folder it is in, not the file" in refused
    assert "is now kept at" in adopted


def test_one_file_in_two_folders_is_a_mounted_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where mounts cannot be listed: the file is the same, its folder is not."""
    home = made(path).facts.path  # type: ignore[union-attr]
    other = path.parent / "other" / path.name
    monkeypatch.setattr(Path, "samefile", lambda one, two: one.name == Path(two).name)
    with pytest.raises(LedgerError, match="one file in two folders"):
        ledger_path.check_left(Path(home), other)
    monkeypatch.setattr(Path, "samefile", lambda _one, _two: True)
    assert not ledger_path.check_left(Path(home), other)  # the whole folder has two names
    with pytest.raises(LedgerError, match="one file in two folders"):
        ledger_path.check_left(Path(home), other.with_name("renamed"))


# --- paths that are none ---------------------------------------------------------------------------------

ODD: dict[str, object] = {
    "NUL": "a\0b",
    "bytes": b"ledger",
    "nothing": None,
    "a number": 5,
    "half a letter": "\ud800",
    "long": "x" * 5000,
    "deep": "/".join(["x" * 100] * 5),
    "long name": "x" * 300,
    "a folder": ".",
    "no text": "",
    "a device": "/dev/null",
    "below a file": "file/ledger",
    "a loop": "loop",
}


@pytest.mark.parametrize("kind", ODD)
def test_a_path_that_is_none_is_a_sentence(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    ways: list[Callable[[object], object]] = [Ledger.open, Ledger.moved, made, _curator]  # type: ignore[list-item]
    for way in ways:
        with pytest.raises(LedgerError) as refusal:
            way(ODD[kind])
        assert len(str(refusal.value)) < 800
    assert sorted(tmp_path.iterdir()) == before


def _curator(ledger: object) -> Curator:
    if ledger is None:
        raise LedgerError("a curator without one keeps its ledger in memory")
    return Curator({"a": ["x"]}, {"a": ("x", "y")}, budget=ZCDP, ledger=ledger)  # type: ignore[arg-type]


def test_a_pipe_is_refused_without_waiting_for_it(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(LedgerError, match="not a plain file"):
        Ledger.open(path)


def test_a_name_that_is_no_text_is_kept_as_it_is(path: Path) -> None:
    path = path.with_name(os.fsdecode(b"b\xff%20 k"))
    made(path).charge(QUARTER)
    assert Ledger.open(path).spent == 0.25
    assert Ledger.open(path).kept_at[0][1] == str(path)


# --- the command -----------------------------------------------------------------------------------------


def test_the_command_adopts_and_show_tells(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(path).charge(QUARTER)
    away = path.rename(path.with_name("away"))
    assert main(["ledger", "show", str(away)]) == 1
    assert "dpcurate ledger moved" in capsys.readouterr().err
    assert main(["ledger", "moved", str(away)]) == 0
    assert f"is now kept at {away}" in capsys.readouterr().out
    assert main(["ledger", "show", str(away)]) == 0
    shown = capsys.readouterr().out
    assert f"kept at  {path} since" in shown
    assert f"kept at  {away} since" in shown
    assert main(["ledger", "moved", str(path)]) == 1
    assert "No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["ledger", "moved", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    for part in ("no run under way", "-journal", "second budget", "mount the folder"):
        assert part in told


# --- creation --------------------------------------------------------------------------------------------


def test_a_creation_that_is_killed_leaves_no_ledger_or_a_whole_one(path: Path) -> None:
    """Before it has its name there is none; after it there may be a second name, which goes when it is opened."""
    draft = ledger_path.drafted(path)
    draft.write_bytes(b"cut short")
    journal(draft).write_bytes(b"cut short")
    assert not Ledger.exists(path)
    made(path).charge(QUARTER)
    assert list(path.parent.iterdir()) == [path]
    os.link(path, ledger_path.drafted(path))
    assert Ledger.open(path).spent == 0.25
    assert list(path.parent.iterdir()) == [path]


def test_whoever_is_slower_is_refused_and_takes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ledger_path.put

    def late(draft: Path, where: Path) -> None:
        monkeypatch.setattr(ledger_path, "put", real)
        made(path).charge(QUARTER)
        real(draft, where)

    monkeypatch.setattr(ledger_path, "put", late)
    with pytest.raises(LedgerError, match="never overwritten"):
        made(path)
    assert Ledger.open(path).spent == 0.25
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("there", [True, False])
def test_a_file_system_without_links(path: Path, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(_draft: Path, where: Path) -> None:
        if there:
            where.write_text("faster")
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    if there:
        with pytest.raises(LedgerError, match="never overwritten"):
            made(path)
        assert path.read_text() == "faster"
    else:
        made(path).charge(QUARTER)
        assert Ledger.open(path).spent == 0.25
    assert list(path.parent.iterdir()) == [path]
