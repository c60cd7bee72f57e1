"""`dpcurate plan`: look before spending."""

from __future__ import annotations

import os
from argparse import Namespace

from dpcurate.cli.files import load_schema
from dpcurate.cli.progress import Bar
from dpcurate.cli.texts import fresh, say, show
from dpcurate.planning.plan import EPSILONS, check_accuracy, check_report, plan


def run(args: Namespace) -> None:
    target = None if args.output is None else check_report(fresh(args.output, force=args.force))
    if args.accuracy is not None:
        check_accuracy(args.accuracy)
    else:
        say("with --accuracy 0.8 this also says which epsilon is enough for a skeleton F1 of 0.8")
    bar = Bar()
    outlook = plan(
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
    show(outlook)
    if args.accuracy is not None:
        show(f"\n{outlook.advice(args.accuracy)}")
    if target is not None:
        outlook.report(target, accuracy=args.accuracy)
        say(f"written: {target}")
