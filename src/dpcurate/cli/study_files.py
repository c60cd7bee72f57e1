"""`dpcurate study`: several sites in one study, by files that people send each other."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from dpcurate import Codebook, Discovery, DpcurateError, Inputs, Ledger, OutputFolder, messages, pooling
from dpcurate.cli.options import existing, knowledge_file, load_schema, some_table
from dpcurate.cli.terminal import flush, hand_over, say, show
from dpcurate.errors import OutputError

STUDY = "study.json"
"""The next round's file, in the folder of `combine`."""
_JSON = (".json",)


def new(args: Namespace) -> None:
    """Write the file of a new study; reads no table."""
    inputs = Inputs.of(schema=args.schema, knowledge=args.knowledge)
    folder = OutputFolder.of_file(args.output, inputs, force=args.force, suffixes=_JSON)
    file = pooling.new_study(
        load_schema(args.schema), sites=args.sites, epsilon=args.epsilon, method=args.method, settings=args.set,
        latent=args.latent, knowledge=knowledge_file(args), order=args.order,
        column=None if args.no_site_column else args.site_column, purpose=args.purpose or "", rounds=args.rounds,
        deadline=args.deadline or "", noise=args.noise, keys=_keys(args.key), neighbours=args.neighbours,
        colluding=args.colluding, sites_per_person=args.sites_per_person,
        **({} if args.delta is None else {"delta": args.delta}),
    )  # fmt: skip
    say(f"written: {folder.write(Path(args.output).name, file.dumps())}")
    _tell_next(file, args.output)


def key(args: Namespace) -> None:
    """Print a site's public key; its secret is made beside the ledger if there is none."""
    show(pooling.site_public_key(args.ledger))


def _keys(given: list[str]) -> dict[str, str]:
    """SITE=KEY as a mapping."""
    pairs = [one.rpartition("=") for one in given]
    for name, _, digits in pairs:
        if not name:
            raise DpcurateError(f"--key is SITE=KEY, got {messages.shown(digits)}")
    return {name: digits for name, _, digits in pairs}


def answer(args: Namespace) -> None:
    """Say what an answer spends and releases, ask, and write it."""
    file = pooling.StudyFile.load(existing(args.study, "study"))
    book = Codebook() if args.map is None else Codebook.load(existing(args.map, "map"))
    schema = book.at_site(file.schema) if args.schema is None else load_schema(args.schema)
    fresh = not Ledger.exists(args.ledger)
    owner = pooling.SiteOwner(
        some_table(args.table), schema, epsilon=file.epsilon if fresh else None, delta=file.delta if fresh else None,
        neighbours=args.neighbours or (file.neighbours.value if fresh and file.noise == "shared" else None),
        ledger=args.ledger, name=args.name,
    )  # fmt: skip
    inputs = owner.study.inputs.with_(schema=args.schema, study=args.study, map=args.map)
    folder = OutputFolder.of_file(args.output, inputs, force=args.force, suffixes=_JSON)
    preview = pooling.preview_answer(file, args.site, owner, codebook=book)
    say(messages.printable(preview))
    if fresh:
        say(f"  ledger  {messages.one_line(args.ledger)}, which is new; this study's epsilon becomes its ceiling")
    if preview.cost and not args.yes and not _agreed():
        raise DpcurateError("stopped before anything was read or spent")
    answered = pooling.answer_study(file, args.site, owner, codebook=book, by=args.by)
    try:
        say(f"written: {folder.write(Path(args.output).name, answered.dumps())}; send it to the coordinator")
    except OutputError:
        say("the answer is in the ledger: the same command writes it again and pays nothing")
        raise


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise DpcurateError("nothing was read or spent. There is no terminal to ask at; add --yes to answer")
    say("Spend this and release it? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def combine(args: Namespace) -> None:
    """Write the next round's file, or the result."""
    file = pooling.StudyFile.load(existing(args.study, "study"))
    answers = [pooling.SiteAnswer.load(existing(path, "answer")) for path in args.answers]
    files = ("answer", *args.answers), ("study", args.study)
    inputs = Inputs(tuple((what, path) for what, *paths in files for path in paths))
    folder = OutputFolder.made(args.output, (*Discovery.FILES, STUDY), inputs, force=args.force)
    found = pooling.combine_study(file, answers, without=args.without)
    if isinstance(found, Discovery):
        hand_over(found, folder)
    else:
        written = folder.write(STUDY, found.dumps())
        say(f"written: {written}")
        _tell_next(found, str(written))
    flush()


def show_file(args: Namespace) -> None:
    """What a file of a study holds."""
    for line in pooling.describe_file(existing(args.file, "file")):
        show(messages.one_line(line))


def _tell_next(file: pooling.StudyFile, path: str) -> None:
    place = messages.one_line(path)
    say(f"round {file.round} of at most {file.rounds}. Send {place} to every site; each answers with")
    say(f"  dpcurate study answer {place} TABLE --site NAME --ledger LEDGER -o answer.json")
    say(f"sites: {', '.join(map(messages.shown, file.sites))}")
