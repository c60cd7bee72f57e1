"""`dpcurate studio`: from a table to a published page, in a browser on this machine."""

from __future__ import annotations

from argparse import Namespace

from dpcurate import messages, studio
from dpcurate.cli.terminal import flush, say, show


def run(args: Namespace) -> None:
    """Open the studio until it is stopped."""

    def ready(link: str) -> None:
        show(f"the studio is at {link}")
        say(f"projects are kept in {messages.one_line(args.folder)}; the link is for you alone, and always new")
        say("Ctrl-C stops the studio; a run under way can be resumed")
        flush()

    studio.start(args.folder, port=args.port, browser=not args.no_browser, ready=ready)
