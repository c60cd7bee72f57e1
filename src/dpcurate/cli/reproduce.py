"""`dpcurate reproduce`: the paper's tables and figures."""

from __future__ import annotations

from argparse import Namespace


def run(args: Namespace) -> None:
    from dpcurate.published.reproduction import main

    words = ["-o", args.output, "--workers", str(args.workers)]
    words += ["--quick"] * args.quick + ["--fresh"] * args.fresh
    raise SystemExit(main(words))
