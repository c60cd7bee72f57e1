"""`dpcurate diff A B`: what changed between two results."""

from __future__ import annotations

from argparse import Namespace

from dpcurate._messages import one_line
from dpcurate.cli.texts import existing, show
from dpcurate.result.comparison import difference, load_result


def run(args: Namespace) -> None:
    first, second = (load_result(existing(path, "result")) for path in (args.first, args.second))
    for line in difference(first, second).lines:
        show(one_line(line))
