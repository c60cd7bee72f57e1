"""`dpcurate plan`: look before spending."""

from __future__ import annotations

import math
import os
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from dpcurate._files import Folder, Inputs
from dpcurate.cli.files import load_schema
from dpcurate.cli.progress import Bar
from dpcurate.cli.texts import say, show
from dpcurate.planning.plan import EPSILONS, check_accuracy, check_report, plan

EVERY = 5.0
"""Seconds between two lines where there is no terminal."""


class Countdown:
    """How many worlds are done and how long the others will take: a bar, or lines now and then."""

    def __init__(self, bar: Bar, clock: Callable[[], float] = time.monotonic) -> None:
        self.bar = bar
        self._clock = clock
        self._start, self._next = clock(), -math.inf

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        left = f", about {(now - self._start) / done * (total - done):.0f} s left" if 0 < done < total else ""
        self.bar.draw("worlds", done / total, f"{done} of {total}{left}")
        if not self.bar.live and (now >= self._next or done == total):
            self._next = now + EVERY
            say(f"worlds: {done} of {total}{left}")


def run(args: Namespace) -> None:
    folder = None
    if args.output is not None:
        folder = Folder.of_file(args.output, Inputs.of(schema=args.schema), force=args.force)
        check_report(args.output)
    if args.accuracy is not None:
        check_accuracy(args.accuracy)
    else:
        say("with --accuracy 0.8 this also says which epsilon is enough for a skeleton F1 of 0.8")
    countdown = Countdown(Bar())
    outlook = plan(
        load_schema(args.schema),
        args.rows,
        order=args.order,
        epsilons=args.epsilons or EPSILONS,
        methods=args.methods,
        worlds=args.worlds,
        seed=args.seed,
        delta=args.delta,
        neighbours=args.neighbours,
        workers=os.cpu_count() or 1,
        progress=countdown,
    )
    countdown.bar.clear()
    show(outlook)
    if args.accuracy is not None:
        show(f"\n{outlook.advice(args.accuracy)}")
    if folder is not None:
        text = outlook.report_text(args.output, accuracy=args.accuracy)
        say(f"written: {folder.write(Path(args.output).name, text)}")
