"""`--at` and `--direction`: which probabilities are drawn. Checked before anything is spent."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from dpcurate._messages import one_line
from dpcurate.cli.texts import say
from dpcurate.result.discovery import Discovery
from dpcurate.result.threshold import Threshold


def asked_cut(args: Namespace) -> Threshold | None:
    """The cut that was asked for, the default one if none was; None is best-f1."""
    return Threshold.of(Threshold().linked if args.at is None else args.at, args.direction)


def at_cut(result: Discovery, cut: Threshold | None) -> Discovery:
    """The result at that cut; what was paid for is handed over even if it cannot be cut."""
    if cut not in (None, Threshold()) and not result.learned.linked:
        say(f"note: {one_line(result.method)} gives no probabilities, so --at and --direction change nothing")
    return replace(result, cut=cut)
