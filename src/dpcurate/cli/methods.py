"""`dpcurate methods`."""

from __future__ import annotations

from argparse import Namespace

from dpcurate.cli.texts import columns, show
from dpcurate.learn.methods import listed


def run(_args: Namespace) -> None:
    """Each method with its family, what it needs and what it does; two names of one recipe are one entry."""
    entries = list(listed().values())
    names = {entry.name: [one.name for one in entries if one.recipe == entry.recipe] for entry in entries}
    first = [entry for entry in entries if names[entry.name][0] == entry.name]
    show(columns((", ".join(names[e.name]), e.family, e.needs, e.about) for e in first))
