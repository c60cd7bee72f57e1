"""`dpcurate discover --from-answers`: another knowledge, cut or method, from answers that were paid for before."""

from __future__ import annotations

from argparse import Namespace

from dpcurate._files import Inputs
from dpcurate._messages import one_line
from dpcurate.cli.cuts import at_cut
from dpcurate.cli.files import hand_over, result_folder, tell_order
from dpcurate.cli.quantified import MODEL, ROWS, SCORES, check_stored, refuse_stored, tell
from dpcurate.cli.settings import chosen
from dpcurate.cli.texts import existing, say
from dpcurate.errors import QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.models.model import Model
from dpcurate.result.threshold import Threshold
from dpcurate.study.calls import discover_from

_NEEDLESS = ("table", "schema", "epsilon", "delta", "neighbours", "ledger", "name", "by", "purpose", "insecure_seed")


def run(args: Namespace, cut: Threshold | None) -> None:
    for name in _NEEDLESS:
        if getattr(args, name) is not None:
            word = "a table" if name == "table" else "--table" if name == "name" else f"--{name.replace('_', '-')}"
            raise QueryError(f"--from-answers reads no table and spends nothing: leave out {word}")
    if args.not_private or args.variant != "proved":
        raise QueryError("--from-answers uses private answers, and methods with a proof: leave out --not-private")
    refuse_stored(args)
    path, number = args.from_answers
    inputs = Inputs.of(knowledge=args.knowledge, ledger=path)
    rows = () if args.synthetic is None else (ROWS,)
    folder = result_folder(args.output, inputs, force=args.force, more=rows)
    knowledge = None if args.knowledge is None else Knowledge.load(existing(args.knowledge, "knowledge file"))
    say(f"from the answers stored in {one_line(path)}: no table is read and nothing is spent")
    result = discover_from(
        existing(path, "ledger"), number, method=chosen(args), knowledge=knowledge, order=args.order, latent=args.latent
    )
    check_stored(args, result)
    if folder is not None and result.model is not None:
        folder.check([MODEL if isinstance(result.model, Model) else SCORES])
    hand_over(at_cut(result, cut), folder, rows=args.synthetic)
    tell(result, args.synthetic)
    tell_order(result, path)
