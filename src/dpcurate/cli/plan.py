"""`dpcurate plan`: look before spending."""

from __future__ import annotations

import os
from argparse import Namespace

from dpcurate.cli.discover import load_schema
from dpcurate.cli.progress import Bar
from dpcurate.cli.texts import fresh, say, show
from dpcurate.plan import EPSILONS, plan


def run(args: Namespace) -> None:
    """Simulate, show, advise."""
    target = None if args.output is None else fresh(args.output, force=args.force)
    bar = Bar()
    made = plan(
        load_schema(args.schema),
        args.rows,
        epsilons=args.epsilons or EPSILONS,
        methods=args.methods,
        worlds=args.worlds,
        seed=args.seed,
        delta=args.delta,
        neighbours=args.neighbours,
        workers=os.cpu_count() or 1,
        progress=lambda done, total: bar.draw("worlds", done / total, f"{done} of {total}"),
    )
    bar.clear()
    show(made)
    show("" if args.accuracy is None else f"\n{made.advice(args.accuracy)}")
    if target is not None:
        made.report(target, accuracy=args.accuracy)
        say(f"written: {target}")
