"""The command line: argparse over the public package, which a command imports only when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dpcurate.cli.parser import build, first_steps
from dpcurate.cli.terminal import flush, say, show
from dpcurate.errors import DpcurateError

OK, FAILED, INTERRUPTED = 0, 1, 130
"""Exit codes; argparse's own for a usage error is 2."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    try:
        _accept_all_names()
        args = build().parse_args(argv)
        if "module" in args:
            getattr(import_module(f"dpcurate.cli.{args.module}"), args.function)(args)
        else:
            show(first_steps())
        flush()
    except BrokenPipeError:
        _let_go()
    except KeyboardInterrupt:
        say("dpcurate: stopped")
        return INTERRUPTED
    except DpcurateError as error:
        say(f"dpcurate: {error}")
        return FAILED
    except OSError as error:
        say(f"dpcurate: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return FAILED
    return OK


def _accept_all_names() -> None:
    """A result that was paid for must not fail on a terminal without the letters of a column's name."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _let_go() -> None:
    """The reader of the pipe has seen enough; without this Python complains when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is no file, as in a test
        return
