"""Where a ledger's file is: one path, one link.

SQLite finds what an interrupted transaction left behind, the journal, by the file's name. Under a second
name (a hard link, a rename, a single file mounted into a container) that journal is not found, and opening
the first name later would undo what was paid under the second. So a ledger has one name, and is refused
under any other until it is adopted there.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path
from shlex import quote

from dpcurate._messages import shown
from dpcurate.errors import LedgerError

LONGEST = 480  # bytes; SQLite takes 512, and the journal's name is longer
MOUNTS = Path("/proc/self/mountinfo")  # Linux; elsewhere a mounted file cannot be told from any other
_ESCAPES = {ord(c): f"\\{ord(c):03o}" for c in " \t\n\\"}  # as Linux writes them in MOUNTS

_DRAFT = ".new"

FileIdentity = tuple[int, int]
"""Which file it is, whatever its name: device and inode."""


def real(path: object) -> Path:
    """The one path of a file: absolute, with every symbolic link followed."""
    try:
        text = os.fspath(path)  # type: ignore[call-overload]
        if not isinstance(text, str) or "\0" in text:
            raise ValueError
        resolved = os.path.realpath(text)
        size = len(os.fsencode(resolved))
    except (TypeError, ValueError):
        raise LedgerError(f"a ledger's path is text without a NUL, or a pathlib.Path; got {shown(path)}") from None
    if size > LONGEST:
        raise LedgerError(f"a ledger's path may be {LONGEST} bytes long, and {text[:40]!r}... is {size}; shorten it")
    return Path(resolved)


def is_there(path: Path) -> bool:
    """Whether something is at the path; not knowing is an error, never a no."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as problem:
        raise LedgerError(f"whether there is a file {path} cannot be told: {problem.strerror}") from None
    return True


def look(path: Path) -> FileIdentity:
    """Which file is at the path now, if it is a plain file with this one name."""
    seen = os.lstat(path)
    if not stat.S_ISREG(seen.st_mode):
        raise LedgerError(f"{path} is not a plain file, so no ledger could be read from it; it was left as it is")
    if seen.st_nlink > 1:
        raise LedgerError(
            f"{path} has {seen.st_nlink} names (hard links), and under one of them a payment made under another can be "
            "undone. No answer was given and it was left as it is. Remove the names it was not made under "
            f"('find FOLDER -samefile {quote(str(path))}' lists them); back it up with a copy, not a link"
        )
    return seen.st_dev, seen.st_ino


# --- a new ledger is written under another name, and has its own only when it is whole -------------------


def drafted(path: Path) -> Path:
    """A name that nobody else uses, under which a new ledger is written."""
    return path.with_name(f".{_short(path)}{secrets.token_hex(4)}{_DRAFT}")


def _short(path: Path) -> str:
    """A name may be as long as a system allows, so a draft's cannot hold it."""
    return hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]


def put(draft: Path, path: Path) -> None:
    """Give a whole ledger its name, if nobody was faster; from here on the other name is only in the way."""
    try:
        os.link(draft, path)
    except (FileExistsError, FileNotFoundError):  # another was faster, and has tidied up
        raise occupied(path) from None
    except OSError:  # a file system without links: the name is taken first, and a kill here leaves an empty file
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise occupied(path) from None
        os.replace(draft, path)


def tidy(path: Path) -> None:
    """Remove what creations of this ledger left that were cut short; nothing was ever charged under such a name."""
    if path.exists():
        for left in path.parent.glob(f".{_short(path)}????????{_DRAFT}*"):
            left.unlink(missing_ok=True)


def occupied(path: Path) -> LedgerError:
    """The refusal to make a ledger where there is a file."""
    return LedgerError(
        f"{path} exists and is never overwritten; open it with Ledger.open, or choose another name "
        "(the budget belongs to the table: a new file is not a new budget)"
    )


def refuse_mounted(path: Path) -> None:
    """Refuse a file that is mounted by itself: its journal would be written in another folder than its own."""
    try:
        lines = [line.split(b" ") for line in MOUNTS.read_bytes().split(b"\n")]
    except OSError:
        return
    written = os.fsencode(str(path).translate(_ESCAPES))
    if any(written in line[4:5] for line in lines):
        raise LedgerError(
            f"{path} is mounted as a single file, so its journal stays outside the folder it comes from, and what was "
            "paid can be undone. No answer was given. Mount the folder it is in, not the file"
        )


def sqlite_journal(path: Path) -> Path:
    """What SQLite writes beside the file during a transaction."""
    return Path(f"{path}-journal")


def elsewhere(path: Path, home: Path) -> LedgerError:
    """The refusal of a ledger under another path than the one it is kept at."""
    return LedgerError(
        f"{path} says that it is kept at {home}. Under another name payments can be undone, so no answer was given and "
        "it was left as it is. If it was moved for good, with no run under way, adopt it: "
        f"'dpcurate ledger moved {quote(str(path))}', or Ledger.moved in Python. A copy is not a move: used "
        "beside the original it is a second budget"
    )


def check_left(home: Path, path: Path) -> bool:
    """Refuse to leave a home that still holds a part of the ledger; whether another file is there now."""
    if is_there(journal := sqlite_journal(home)):
        raise LedgerError(
            f"{journal} is still there: a transaction was interrupted before {path} was moved, and without this "
            f"journal it cannot be undone. Nothing was adopted. Move the ledger back to {home}, open it there once "
            f"('dpcurate ledger show {quote(str(home))}'), then move it with no run under way"
        )
    if not is_there(home):
        return False
    if not (home.exists() and home.samefile(path)):
        return True
    if not home.is_symlink() and not (home.name == path.name and home.parent.samefile(path.parent)):
        raise LedgerError(
            f"{path} and {home} are one file in two folders, so one of them is mounted as a single file. Nothing was "
            "adopted. Mount the folder, not the file"
        )
    return False
