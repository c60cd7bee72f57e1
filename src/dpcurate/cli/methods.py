"""`dpcurate methods`."""

from __future__ import annotations

from argparse import Namespace

from dpcurate.cli.texts import columns, show
from dpcurate.learn.methods import listed


def run(_args: Namespace) -> None:
    """Each method with its family, what it needs and what it does."""
    show(columns((entry.name, entry.family, entry.needs, entry.about) for entry in listed().values()))
