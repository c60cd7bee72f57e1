"""`dpcurate audit`: a lower bound on what a method reveals, compared with what it is charged."""

from __future__ import annotations

import sys
from argparse import Namespace

from dpcurate.accounting import DELTA, Budget
from dpcurate.errors import QueryError


def run(args: Namespace) -> None:
    if args.long:
        from dpcurate.audit.__main__ import main

        raise SystemExit(main([]))
    if args.method is None:
        raise QueryError("name a method to audit ('dpcurate methods' lists them), or give --long")
    from dpcurate.audit import audit, audit_published, forecast
    from dpcurate.audit.run import power_sentence

    if args.variant == "published":
        for result in audit_published(args.method, seed=args.seed):
            print(result)
        return
    budget = Budget(epsilon=args.epsilon, delta=DELTA)
    power = forecast(args.method, budget=budget, runs=args.runs, seed=args.seed)
    print(power_sentence(power), file=sys.stderr)
    result = audit(args.method, budget=budget, runs=args.runs, seed=args.seed, power=power)
    print(result)
    if result.accused:
        raise SystemExit(1)
