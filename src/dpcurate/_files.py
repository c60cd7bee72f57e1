"""Files: those that are read from outside, and those that are written.

A file that is read is text of bounded size in UTF-8, and is refused in a sentence that names it.

A file that is written never replaces an input or a ledger, nor somebody's file unasked, and is never half a file: it
is written under a temporary name in its own folder and then renamed. So a full disk, a kill or a link that somebody
puts in the way leaves what was there before as it was.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import secrets
import stat
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from io import BufferedWriter
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dpcurate._messages import shown, shown_path
from dpcurate.errors import FormatError, OutputError, SchemaError

# --- reading --------------------------------------------------------------------------------------------------

T = TypeVar("T")
Complaint = type[FormatError] | type[SchemaError]

LARGEST = 1 << 24
"""Bytes of a file: the largest public networks and graphs have a tenth of that."""
LARGEST_TOML = 1 << 22
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}[ \t]*+\.[ \t]*+){{32}}", re.MULTILINE)


def load(
    path: str | os.PathLike[str],
    parse: Callable[[str], T],
    complain: Complaint = FormatError,
    unpack: Callable[[bytes], bytes] = bytes,
    *,
    largest: int = LARGEST,
) -> T:
    """What `parse` makes of the file's text; every refusal names the file, and the line if there is one."""
    if not isinstance(path, str | os.PathLike):
        raise complain(f"a file is named by a path, got {shown(path)}")
    name = shown_path(os.fspath(path))
    raw = _bytes(path, name, complain, largest)
    try:
        raw = unpack(raw)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        _refuse(complain, f"{name}, line {line}: not UTF-8 text", line)
    except (OSError, EOFError, ValueError) as error:
        _refuse(complain, f"cannot read {name}: {error}")
    try:
        return parse(text)
    except (FormatError, SchemaError) as error:
        _refuse(complain, f"{name}, {error}", error.line)


def line_at(text: str, position: int) -> int:
    """The line of a position in the text, from 1."""
    return text.count("\n", 0, position) + 1


def toml_text(value: str) -> str:
    """A TOML basic string; JSON's escapes are a subset, but for surrogates and DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def check_length(text: str, complain: Complaint = FormatError, limit: int = LARGEST) -> None:
    """Refuse a text that no graph, network or schema has."""
    if len(text) > limit:
        raise complain(f"a text of {len(text)} characters; the limit is {limit}")


def toml(text: str, complain: Complaint) -> dict[str, Any]:
    """The TOML text as a dictionary, without what would stop tomllib or a message about it."""
    check_length(text, complain, LARGEST_TOML)
    long = _LONG_KEY.search(text)
    if long:  # tomllib takes the square of a key's parts
        raise complain("not TOML: a key of more than 32 parts", line=line_at(text, long.start()))
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        raise complain(f"not TOML: {error}", line=int(at[1]) if at else text.count("\n") + 1) from None
    except RecursionError:
        raise complain("not TOML that can be read: brackets nested too deeply") from None
    except ValueError as error:
        raise complain(f"not TOML that can be read: {error}") from None
    _check_numbers(table, complain)
    return table


def _check_numbers(table: dict[str, Any], complain: Complaint) -> None:
    waiting: list[Any] = [table]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise complain("not TOML: a whole number of more than 64 bits")


def _bytes(path: str | os.PathLike[str], name: str, complain: Complaint, largest: int) -> bytes:
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            _refuse(complain, f"cannot read {name}: it is a folder, a pipe or a device; give a file")
        with Path(path).open("rb") as file:
            raw = file.read(largest + 1)  # a file may grow after it was looked at
    except (OSError, ValueError) as error:
        _refuse(complain, f"cannot read {name}: {getattr(error, 'strerror', None) or error}")
    if len(raw) > largest:
        _refuse(complain, f"cannot read {name}: it has more than {largest} bytes, the limit")
    return raw


def _refuse(complain: Complaint, message: str, line: int | None = None) -> NoReturn:
    error = complain(message)
    error.line = line
    raise error from None


# --- writing --------------------------------------------------------------------------------------------------

SQLITE = b"SQLite format 3\x00"
LEDGER = 0x64704C67
"""A ledger's application id in the header of its SQLite file, "dpLg"."""
SERVICE_LOG = 0x64705376
"""That of the log that a service keeps beside its ledger, "dpSv"."""
LEDGER_GATE = threading.RLock()
"""Held during every transaction on a ledger of this process, and here while a file's header is read: closing a plain
file handle drops every POSIX lock that the process has on the file."""
_BESIDE_A_LEDGER = re.compile(r"-(journal|wal|shm|run-\d+|service(-journal)?)\Z")
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
"""Before the umask, so that nothing is ever writable for a group or for everybody."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0)
_BY_HANDLE = bool(_FOLDER) and {os.open, os.stat, os.unlink, os.rename, os.link} <= os.supports_dir_fd
"""Whether a folder can be held by a handle, which goes on to mean it when its name is given to another one."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files that a run reads, and the ledger of its budget: none of them is ever written over."""

    files: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, **given: Any) -> Inputs:
        """Those that are paths, by what they are: table, schema, knowledge, ledger; a frame or a URL is no file."""
        paths = {what: os.fspath(one) for what, one in given.items() if isinstance(one, (str, Path))}
        return cls(tuple((what, path) for what, path in paths.items() if "://" not in path))

    def with_(self, **given: Any) -> Inputs:
        """These and others."""
        return Inputs((*self.files, *Inputs.of(**given).files))

    def refuse(self, target: Path) -> None:
        """Refuse to write what is one of these files, by whatever name or link."""
        for what, path in self.files:
            if any(_same(target, one) for one in _files_of(what, path)) or (
                what == "ledger" and _is_beside(target, path)
            ):
                raise OutputError(
                    f"{shown_path(str(target))} is the {what} of this run and is never overwritten, even with --force; "
                    "choose another output"
                )
            if what == "table" and _joins(target, path):
                raise OutputError(
                    f"{shown_path(str(target))} would become a part of the table {shown_path(path)}; choose another "
                    "output"
                )


NO_INPUTS = Inputs()


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder to write into, checked before anything is read or spent, and known again when files are written.

    With `force` files that are there are replaced; an input or a ledger never is.
    """

    path: Path
    identity: tuple[int, int]
    inputs: Inputs
    force: bool = False

    @classmethod
    def checked(cls, path: str | Path, names: Iterable[str], inputs: Inputs, *, force: bool) -> OutputFolder:
        """The folder if each of these files can be written to it; it must be there."""
        folder = Path(path)
        try:
            there = folder.stat()
        except FileNotFoundError:
            raise OutputError(
                f"there is no folder {shown_path(str(folder))} to write {', '.join(names)} into"
            ) from None
        except OSError as problem:
            raise OutputError(f"cannot write to the folder {shown_path(str(folder))}: {problem.strerror}") from None
        if not stat.S_ISDIR(there.st_mode):
            raise OutputError(f"{shown_path(str(folder))} is not a folder, so nothing can be written into it")
        found = cls(folder, (there.st_dev, there.st_ino), inputs, force)
        found.check(names)
        found._try()
        return found

    @classmethod
    def made(cls, path: str | Path, names: Iterable[str], inputs: Inputs, *, force: bool) -> OutputFolder:
        """The same, of a folder that is created if it is not there."""
        _make_folder(Path(path))
        return cls.checked(path, names, inputs, force=force)

    @classmethod
    def of_file(cls, path: str | Path, inputs: Inputs, *, force: bool, suffixes: Sequence[str] = ()) -> OutputFolder:
        """The folder of one file that will be written, whose name ends in one of these suffixes if there are any."""
        folder = cls.checked(Path(path).parent, [Path(path).name], inputs, force=force)
        if suffixes:
            check_suffix(path, suffixes)
        return folder

    def check(self, names: Iterable[str]) -> None:
        """Refuse if one of these files may not be written."""
        targets = [self.path / name for name in names]
        for target in targets:
            self.inputs.refuse(target)
            refuse_precious(target)
        taken = [target for target in targets if os.path.lexists(target)]
        if taken and not self.force:
            several = f"{shown_path(str(self.path))} already holds {', '.join(target.name for target in taken)}"
            one = f"{shown_path(str(taken[0]))} exists and is left as it is"
            said = several if taken[1:] else one
            raise OutputError(f"{said}; nothing was read or spent. Choose another place, or add --force")

    def _try(self) -> None:
        """Write an empty file and remove it: a full or read-only disk is found out before anything is paid for."""
        try:
            with _held(self.path) as at, _draft(at):
                pass
        except OSError as problem:
            why = f"cannot write to the folder {shown_path(str(self.path))}: {problem.strerror}; nothing was read"
            raise OutputError(f"{why} or spent") from None

    def write(self, name: str, text: str) -> Path:
        """Write one file, if the folder is still the one that was checked."""
        return self.write_bytes(name, _encoded(text))

    def write_all(self, texts: Mapping[str, Callable[[], str]]) -> tuple[list[Path], Exception | None]:
        """Write every file that can be written: their paths, and the first problem, if there is one."""
        written: list[Path] = []
        problem: Exception | None = None
        for name, text in texts.items():
            try:
                written.append(self.write(name, text()))
            except Exception as error:  # of whatever kind: the other files still come
                problem = problem or error
        return written, problem

    def write_bytes(self, name: str, raw: bytes) -> Path:
        """The same of bytes."""
        target = self.path / name
        self.inputs.refuse(target)
        with _held(self.path) as at:
            there = os.stat(self.path if at.handle is None else at.handle)
            if (there.st_dev, there.st_ino) != self.identity:
                raise OutputError(
                    f"the folder {shown_path(str(self.path))} was replaced by another one while the run was under way, "
                    f"so {name} was not written"
                )
            _put(at, name, raw, replace=self.force)
        return target


def save_text(path: str | os.PathLike[str], text: str, inputs: Inputs = NO_INPUTS) -> None:
    """Write a text in UTF-8, with the same line ends on every system; a file that is there is replaced."""
    inputs.refuse(Path(path))
    save_bytes(path, _encoded(text))


def save_bytes(path: str | os.PathLike[str], raw: bytes) -> None:
    """The same of bytes."""
    target = Path(path)
    with _held(target.parent) as at:
        _put(at, target.name, raw, replace=True)


def check_suffix(path: str | Path, suffixes: Sequence[str]) -> Path:
    """The path, refused unless its name ends in one of these suffixes."""
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        what = f"unsupported suffix {target.suffix!r}" if target.suffix else f"{shown_path(str(path))} has no suffix"
        raise FormatError(f"{what}; use {known}")
    return target


def refuse_precious(target: Path) -> None:
    """Refuse to replace a ledger or what belongs to one, and what is no plain file."""
    try:
        there = target.lstat()
    except OSError:  # nothing, or nothing that can be looked at: writing will say so
        there = None
    if there is not None and not (stat.S_ISREG(there.st_mode) or stat.S_ISLNK(there.st_mode)):
        raise OutputError(f"{shown_path(str(target))} is a folder, a device or a pipe; write to a plain file")
    whole = _BESIDE_A_LEDGER.sub("", str(target))
    for name in dict.fromkeys((str(target), whole)):
        if _is_ledger(name):
            raise OutputError(
                f"{shown_path(str(target))} is {'' if name == str(target) else 'a part of '}a ledger, which keeps what "
                "was spent and is never overwritten, even with --force; choose another output"
            )


# --- one file -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _At:
    """A folder that is held by a handle, where the system has such handles."""

    path: Path
    handle: int | None

    def name(self, name: str) -> str:
        return str(self.path / name) if self.handle is None else name


@contextmanager
def _held(folder: Path) -> Iterator[_At]:
    if not _BY_HANDLE:
        yield _At(folder, None)
        return
    handle = os.open(folder, os.O_RDONLY | _FOLDER)
    try:
        yield _At(folder, handle)
    finally:
        os.close(handle)


@contextmanager
def _draft(at: _At) -> Iterator[tuple[str, BufferedWriter]]:
    """A new file under a name of its own, open for writing; the name is gone afterwards."""
    name = f".dpcurate-{secrets.token_hex(8)}.tmp"
    with open(os.open(at.name(name), _NEW, _FILE_MODE, dir_fd=at.handle), "wb") as file:
        try:
            yield name, file
        finally:
            with suppress(OSError):
                os.unlink(at.name(name), dir_fd=at.handle)


def _put(at: _At, name: str, raw: bytes, *, replace: bool) -> None:
    refuse_precious(at.path / name)
    try:
        with _draft(at) as (draft, file):
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())  # some disks say only now that they are full
            file.close()
            _name(at, draft, name, replace=replace)
    except OSError as problem:
        raise OutputError(f"cannot write {shown_path(str(at.path / name))}: {problem.strerror}") from None


def _name(at: _At, draft: str, name: str, *, replace: bool) -> None:
    """Give a whole draft its name."""
    if replace or not _linked(at, draft, name):
        os.replace(at.name(draft), at.name(name), src_dir_fd=at.handle, dst_dir_fd=at.handle)


def _linked(at: _At, draft: str, name: str) -> bool:
    """Give the draft its name unless the name is taken; False where the file system has no links."""
    taken = OutputError(
        f"{shown_path(str(at.path / name))} appeared while the run was under way and was left as it is; the new file "
        "was not written"
    )
    if os.path.lexists(at.path / name):
        raise taken
    try:
        os.link(at.name(draft), at.name(name), src_dir_fd=at.handle, dst_dir_fd=at.handle)
    except FileExistsError:
        raise taken from None
    except OSError as problem:
        if problem.errno in _NO_LINKS:
            return False
        raise
    return True


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FormatError(f"a name holds {text[error.start]!r}, which is no character; rename it") from None


def _make_folder(folder: Path) -> None:
    missing = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    try:
        for one in reversed(missing):
            one.mkdir(_FOLDER_MODE, exist_ok=True)
    except OSError as problem:
        raise OutputError(
            f"cannot create the folder {shown_path(str(folder))}: {problem.strerror}; nothing was read or spent"
        ) from None


# --- which file it is ---------------------------------------------------------------------------------------


def _files_of(what: str, path: str) -> Iterator[str]:
    """The files behind the name of an input: of a table also those of a pattern or a folder."""
    yield path
    if what != "table":
        return
    place = path.partition("#")[0]  # FILE.duckdb#TABLE, FILE.xlsx#SHEET
    yield place
    yield from glob.iglob(place, recursive=True)
    if os.path.isdir(place):
        yield from glob.iglob(os.path.join(glob.escape(place), "**", "*"), recursive=True)


def _same(target: Path, path: str) -> bool:
    """Whether both are one file: by path, by links of either kind, also before the file is there."""
    try:
        if os.path.samefile(target, path):
            return True
    except (OSError, ValueError):  # one of them is not there
        pass
    names = {os.path.normcase(f(path)) for f in (os.path.abspath, os.path.realpath)}
    return any(os.path.normcase(f(target)) in names for f in (os.path.abspath, os.path.realpath))


def _is_beside(target: Path, ledger: str) -> bool:
    """Whether it is one of the files that SQLite and runs keep beside a ledger."""
    whole = _BESIDE_A_LEDGER.sub("", str(target))
    return whole != str(target) and _same(Path(whole), ledger)


def _joins(target: Path, table: str) -> bool:
    """Whether a new file would be read with the table, whose path is a pattern."""
    folder, pattern = os.path.split(table)
    if not any(c in pattern for c in "*?["):
        return False
    return fnmatch(target.name, pattern) and os.path.realpath(target.parent) == os.path.realpath(folder)


def _is_ledger(path: str) -> bool:
    with LEDGER_GATE:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return False
            with open(path, "rb") as file:
                head = file.read(100)
        except (OSError, ValueError):
            return False
    return head.startswith(SQLITE) and int.from_bytes(head[68:72], "big") == LEDGER
