"""One process, one budget: a forked copy is another process, even if it is given the number of one that ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from dpcurate.errors import RefusedError

_FORKS = [0]


def _forked() -> None:
    _FORKS[0] += 1


if hasattr(os, "register_at_fork"):  # there is none where there is no fork
    os.register_at_fork(after_in_child=_forked)


def process() -> tuple[int, int]:
    """The number of this process and how many forks led to it; no other process that shares its memory has both."""
    return os.getpid(), _FORKS[0]


def _checked(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but only in the process that made the object; asked before any lock, which a fork may have copied."""

    @wraps(call)
    def mine(self: Unique, *args: Any, **options: Any) -> Any:
        if process() != self._process:
            raise RefusedError(
                "this was opened by another process, and a forked copy would be a second budget and a second set of "
                "secrets. Nothing was read and nothing was spent. Open a curator in each process, with a ledger on "
                "disk (ledger=) so that they share one budget"
            )
        return call(self, *args, **options)

    return mine


class Unique:
    """Refuses copies, pickles and forks: a second one would be a second budget.

    Whatever a class of this kind offers in public, methods and properties, checks the process first.
    """

    def __init__(self) -> None:
        self._process = process()

    def __init_subclass__(cls) -> None:
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            guarded = property(_checked(member.fget)) if isinstance(member, property) else _checked(member)  # type: ignore[arg-type]
            setattr(cls, name, guarded)

    def __copy__(self) -> NoReturn:
        raise RefusedError("what guards a budget cannot be copied or pickled: a second one would be a second budget")

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.__copy__()

    def __getstate__(self) -> NoReturn:
        self.__copy__()
