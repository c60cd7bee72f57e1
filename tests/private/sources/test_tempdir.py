"""Rows never lie around: what DuckDB spills is this user's alone, and goes with the process or at the next start."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dpcurate.private.sources import duck, tempdir

pytestmark = pytest.mark.skipif(tempdir._locks() is None, reason="no locks that end with a process here")

OPEN = """
import sys
from dpcurate.private.sources import duck, tempdir
connection = duck._connection()
connection.execute("SET memory_limit = '30MB'")
connection.execute("SET threads = 1")
place = connection.execute("SELECT current_setting('temp_directory')").fetchone()[0]
"""
ROWS = "SELECT range AS id, 'row ' || range AS note FROM range({rows})"
CAPPED = f"SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY id % 99991 ORDER BY note) AS n FROM ({ROWS}))"
SPILL = """
import os, threading
seen, done = [], threading.Event()
def watch():  # for as long as the query runs
    while not done.is_set():
        for folder, _, files in os.walk(os.path.dirname(place)):
            seen.extend(os.path.join(folder, name) for name in files)
watching = threading.Thread(target=watch)
watching.start()
connection.execute(query).fetchall()
done.set()
watching.join()
print(len(set(seen)), oct(os.stat(os.path.dirname(place)).st_mode)[-3:], place)
"""


def started(code, folder, **query):
    """A process that runs some code in a folder of its own, and takes that folder for temporary files."""
    text = f"query = {CAPPED.format(**query)!r}\n{code}" if query else code
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", OPEN + text], cwd=folder, env=environment, **pipes)


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def spilled_and_stopped(process, folder):
    """Whether there are rows in its files; it is held, since DuckDB also removes files while it goes on."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return any(path.stat().st_size for path in files_in(folder))


def test_what_is_spilled_is_ours_alone_and_gone_at_the_end(tmp_path):
    with started(SPILL, tmp_path, rows=1_000_000) as process:
        files, mode, place = process.communicate()[0].split()
    assert process.returncode == 0
    assert int(files) > 0  # it did spill
    assert mode == "700"
    assert Path(place).parent.parent == tmp_path
    assert Path(place).parent.name.startswith(tempdir.PREFIX)
    assert list(tmp_path.iterdir()) == []  # and no .tmp beside it


def test_what_a_killed_process_left_is_removed_at_the_next_start(tmp_path):
    with started("connection.execute(query).fetchall()", tmp_path, rows=10**9) as process:
        while not spilled_and_stopped(process, tmp_path):
            assert process.poll() is None
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert files_in(tmp_path)
    with started("", tmp_path) as process:
        assert process.wait() == 0
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder for temporary files, and a process that has opened nothing yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tempdir._folder_of.cache_clear()
    yield tmp_path
    tempdir._folder_of.cache_clear()


def where(connection):
    return connection.execute("SELECT current_setting('temp_directory')").fetchone()[0]


def left(root, name, mode=0o700):
    folder = root / f"{tempdir.PREFIX}{name}"
    folder.mkdir(mode)
    (folder / "rows").write_text("7,red")
    return folder


def test_only_folders_of_ours_that_nobody_holds_are_removed(root):
    elsewhere = root / "mine"
    elsewhere.mkdir(0o700)
    (elsewhere / "rows").write_text("7,red")
    (root / f"{tempdir.PREFIX}link").symlink_to(elsewhere)
    (root / f"{tempdir.PREFIX}file").write_text("7,red")
    open_to_others, stale = left(root, "open", 0o755), left(root, "stale")
    with started("print(place, flush=True); sys.stdin.readline()", root) as living:
        held = Path(living.stdout.readline().strip()).parent
        assert not stale.exists()
        (held / "rows").write_text("8,blue")
        stale = left(root, "stale")
        assert Path(tempdir.place()).parent.parent == root
        assert not stale.exists()
        assert (held / "rows").exists()
        living.communicate("")
    assert not held.exists()
    assert files_in(elsewhere)
    assert files_in(open_to_others)
    assert (root / f"{tempdir.PREFIX}link").is_symlink()
    assert (root / f"{tempdir.PREFIX}file").exists()
    if os.geteuid() == 0:
        other = left(root, "other")
        os.chown(other, 65534, -1)
        tempdir._folder_of.cache_clear()
        tempdir.place()
        assert files_in(other)


def test_connections_of_one_process_have_places_of_their_own(root):
    places = [where(duck._connection()), where(duck._connection()), tempdir.place()]
    assert len(set(places)) == 3
    (folder,) = {Path(p).parent for p in places}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_forked_copy_neither_uses_nor_removes_the_folder(root):
    folder = Path(tempdir.place()).parent
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        own = Path(tempdir.place()).parent
        os.write(writing, str(own != folder and own.exists()).encode())
        tempdir._remove(own, None, os.getpid())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 9) == b"True"
    os.close(reading)
    os.close(writing)
    tempdir._remove(folder, None, child)  # as the copy would at its end
    assert folder.exists()


# --- without a place of our own nothing is spilled ------------------------------------------------------


def test_without_locks_nothing_is_spilled(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert where(duck._connection()) == ""
    assert list(root.iterdir()) == []


def test_without_a_folder_nothing_is_spilled(root, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(root / "absent"))
    assert where(duck._connection()) == ""


def test_a_disk_that_knows_no_locks(root, monkeypatch):
    def refuse(*_):
        raise OSError("no locks available")

    monkeypatch.setattr(tempdir._locks(), "flock", refuse)
    assert where(duck._connection()) == ""
    assert list(root.iterdir()) == []


def test_a_folder_that_another_process_took_for_a_stale_one(root, monkeypatch):
    plain, taken = tempfile.mkdtemp, []

    def swept(*args, **settings):
        made = plain(*args, **settings)
        if not taken:
            os.rmdir(made)
            os.mkdir(made, 0o700)
            taken.append(made)
        return made

    def same(path, lock, plain=tempdir._same):
        if str(path) in taken and path.exists():
            path.rmdir()  # between the lock and the look
        return plain(path, lock)

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    monkeypatch.setattr(tempdir, "_same", same)
    folder = Path(tempdir.place()).parent
    assert str(folder) not in taken
    assert folder.exists()
