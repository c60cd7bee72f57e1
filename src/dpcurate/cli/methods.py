"""`dpcurate methods`."""

from __future__ import annotations

import inspect
from argparse import Namespace

from dpcurate.cli.texts import columns, show
from dpcurate.learn.recipes import recipes


def run(_args: Namespace) -> None:
    """Each method with the first line of its description."""
    rows = [(name, inspect.getdoc(type(made)) or "") for name, made in recipes().items()]
    show(columns((name, text.split("\n", 1)[0]) for name, text in rows))
