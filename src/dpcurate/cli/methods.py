"""`dpcurate methods`."""

from __future__ import annotations

from argparse import Namespace

from dpcurate.cli.settings import settings_of
from dpcurate.cli.texts import columns, show
from dpcurate.learn.methods import find, listed


def run(args: Namespace) -> None:
    """Each method with its family, what it needs and what it does; two names of one recipe are one entry."""
    if args.name is not None:
        recipe = find(args.name, variant=args.variant).recipe
        show(columns((name, "=", str(value)) for name, value in settings_of(recipe).items()))
        about = getattr(recipe, "about_epsilon", "")
        if about:
            show(f"\n{about}")
        return
    entries = list(listed().values())
    names = {entry.name: [one.name for one in entries if one.recipe == entry.recipe] for entry in entries}
    first = [entry for entry in entries if names[entry.name][0] == entry.name]
    show(columns((", ".join(names[e.name]), e.family, e.needs, e.about) for e in first))
