"""A result is delivered: files first, then its edges; what was paid for is shown whatever happens to the files."""

from __future__ import annotations

import shlex

from dpcurate import Discovery, OutputFolder, messages
from dpcurate.cli.terminal import say, show


def hand_over(result: Discovery, folder: OutputFolder | None, *, mark: str = "", synthetic: int | None = None) -> None:
    """Write the files, each name after `mark`, then print the edges; what cannot be written is printed."""
    rows = None if result.model is None else synthetic  # nothing may fail here: the result was paid for
    problem: Exception | None = None
    if folder is not None:
        texts = {f"{mark}{name}": text for name, text in result.files(synthetic=rows).items()}
        written, problem = folder.write_all(texts)
        if written:
            say(f"written: {', '.join([str(written[0]), *(path.name for path in written[1:])])}")
    for line in result.summary:
        say(messages.one_line(line))
    for edge in result.edges:
        show(messages.one_line(edge))
    if problem is not None:
        _print_instead(result)
        raise problem
    if rows is not None and result.model is not None:
        say(f"note: {messages.how_many(rows, 'synthetic row')} drawn from the model. {result.model.note}")


def _print_instead(result: Discovery) -> None:
    model = result.model
    say(f"not every file could be written, so here is the report as JSON{'' if model is None else ', and the model'}:")
    show(result.report_text("report.json").rstrip("\n"))
    if model is not None:
        show(model.file_text().rstrip("\n"))


def tell_order(result: Discovery, ledger: str | None) -> None:
    """How to add an order of columns, where nothing was known before."""
    if not result.example_order:
        return
    order = shlex.quote(result.example_order)
    say("directions rest on the data alone, because no order of columns was given. If you know which come first,")
    if ledger is None:
        say(messages.one_line(f"add --order {order}; after a run with --ledger it can be added later, at no cost"))
    else:
        command = f"dpcurate discover --from-answers {shlex.quote(ledger)} --order {order}"
        say(messages.one_line(f"add it at no privacy cost: {command}"))
