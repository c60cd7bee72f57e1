"""What can be typed. Little of the library is imported here, so that help appears at once."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from dpcurate import __version__
from dpcurate.accounting import DELTA

if TYPE_CHECKING:
    _Parsers: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001
_HELP = argparse.RawDescriptionHelpFormatter


_DESCRIPTION = "Differentially private causal discovery with proven guarantees."
_FIRST_STEPS = (
    "first steps:\n"
    "  dpcurate demo                                                    try it on an example\n"
    "  dpcurate schema draft patients.csv -o patients.toml              describe your table; read every line\n"
    "  dpcurate schema check patients.csv --schema patients.toml        see how the rows fit (for the owner)\n"
    "  dpcurate plan --schema patients.toml --rows 50000                see what accuracy to expect\n"
    "  dpcurate discover patients.csv --schema patients.toml --epsilon 1 --ledger patients.ledger -o result\n"
    "                                                                   then open result/report.html\n"
)


def first_steps() -> str:
    """What `dpcurate` without a command says."""
    return f"{_DESCRIPTION}\n\n{_FIRST_STEPS}\n'dpcurate --help' lists all commands."


class _Parser(argparse.ArgumentParser):
    """Says which command or choice was probably meant."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        from dpcurate._messages import did_you_mean

        if action.choices is not None and value not in action.choices:
            what = "command" if isinstance(action.choices, dict) else "choice"
            raise argparse.ArgumentError(
                action, f"there is no {what} {value!r}{did_you_mean(value, list(action.choices))}"
            )


def build() -> argparse.ArgumentParser:
    root: argparse.ArgumentParser = _Parser(
        prog="dpcurate",
        description=_DESCRIPTION,
        epilog=f"{_FIRST_STEPS}\n"
        "exit codes: 0 done, 1 refused or failed (with an explanation), 2 wrong usage, 130 stopped by Ctrl-C",
        formatter_class=_HELP,
    )
    root.add_argument("--version", action="version", version=f"dpcurate {__version__}")
    commands = root.add_subparsers(metavar="COMMAND")
    for add in (_discover, _ask, _diff, _plan, _schema, _ledger, _methods, _network, _audit, _reproduce, _demo):
        add(commands)
    return root


def _command(commands: _Parsers, name: str, line: str, to: str, *, more: str = "") -> argparse.ArgumentParser:
    """A command that runs `module:function` of this package."""
    parser = _parser(commands, name, line, more)
    module, _, function = to.partition(":")
    parser.set_defaults(module=module, function=function)
    return parser


def _group(commands: _Parsers, name: str, line: str) -> _Parsers:
    return _parser(commands, name, line).add_subparsers(metavar="COMMAND", required=True)


def _parser(commands: _Parsers, name: str, line: str, more: str = "") -> argparse.ArgumentParser:
    description = f"{line[0].upper()}{line[1:]}."
    return commands.add_parser(name, help=line, description=description, epilog=more or None, formatter_class=_HELP)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def _cut(text: str) -> float | str:
    """A number, or a word that the library knows or refuses."""
    try:
        return float(text)
    except ValueError:
        return text


def _whole(text: str) -> int:
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _separator(text: str) -> str:
    """A tab can hardly be typed."""
    return {"tab": "\t", "\\t": "\t"}.get(text, text)


def _table(parser: argparse.ArgumentParser) -> argparse.Action:
    kinds = (
        "a CSV, Parquet, Excel, Stata, SPSS or SAS file, a folder of Parquet files, FILE.duckdb#TABLE or "
        "postgresql://USER@HOST/DATABASE#TABLE"
    )
    return parser.add_argument("table", metavar="TABLE", help=kinds)


def _described(parser: argparse.ArgumentParser) -> argparse.Action:
    line = "public description of the table (TOML); see 'dpcurate schema draft'"
    return parser.add_argument("--schema", required=True, metavar="FILE", help=line)


class _FromAnswers(argparse.Action):
    """Takes a ledger and perhaps a run, and makes needless what is else needed."""

    needless: tuple[argparse.Action, ...] = ()

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if len(values) > 2 or (len(values) == 2 and not values[1].isdecimal()):
            parser.error(f"{option} takes a ledger and the number of a run")
        for action in self.needless:
            action.required = False
        namespace.from_answers = values[0], int(values[1]) if len(values) == 2 else None


def _output(parser: argparse.ArgumentParser, line: str, *, metavar: str = "FILE", required: bool = False) -> None:
    parser.add_argument("-o", "--output", required=required, metavar=metavar, help=line)
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def _seed(parser: argparse.ArgumentParser, what: str) -> None:
    line = f"the same seed gives the same {what} (default: 0)"
    parser.add_argument("--seed", type=_whole, default=0, metavar="N", help=line)


def _privacy(parser: argparse.ArgumentParser, epsilon: str, *, required: bool) -> argparse.Action:
    action = parser.add_argument("--epsilon", type=_number, required=required, metavar="E", help=epsilon)
    delta = f"chance that the epsilon bound fails; 0 for pure differential privacy (default: {DELTA:g})"
    parser.add_argument("--delta", type=_number, metavar="D", help=delta)
    line = "add-remove: one row or person more or less (default); replace: one changed"
    parser.add_argument("--neighbours", metavar="N", help=line)
    return action


def _discover(commands: _Parsers) -> None:
    more = (
        "The edges found go to standard output, everything else to standard error. What will be spent, and on what,\n"
        "is announced before the first row is read.\n\n"
        "example:\n  dpcurate discover patients.parquet --schema patients.toml --epsilon 1 \\\n"
        "    --ledger patients.ledger -o result\n"
        "  dpcurate discover patients.parquet --schema patients.toml --epsilon 1 --at 0.8 --direction 0.6\n"
        "  dpcurate discover --from-answers patients.ledger --order 'sex, age | *' -o result2\n"
        "  dpcurate discover public.parquet --schema public.toml --method curate-pc --variant published --not-private"
    )
    line = "find which columns drive which, within a privacy budget"
    parser = _command(commands, "discover", line, "discover:run", more=more)
    needless = _table(parser), _described(parser)
    line = "instead of a table: the answers that a run (by default the newest) has stored in this ledger; costs nothing"
    again = parser.add_argument("--from-answers", nargs="+", metavar=("LEDGER", "RUN"), action=_FromAnswers, help=line)
    again.needless = needless  # type: ignore[attr-defined]
    epsilon = "the most this run may spend; with an existing ledger, the default is all that is left"
    _privacy(parser, epsilon, required=False)
    parser.add_argument("--method", default="auto", metavar="M", help="see 'dpcurate methods' (default: auto)")
    line = (
        "the form with a proof (default), or the one in the paper: NOT PRIVATE, and --epsilon is what its authors "
        "would claim: for the whole run of curate-pc, noleaks and curate-score, for EACH STEP of em-pc, svt-pc and "
        "priv-pc"
    )
    parser.add_argument("--variant", choices=("proved", "published"), default="proved", help=line)
    line = "set a parameter of the method, such as threshold=0.01, beta1=0.1 or reading.coin=fair; 'methods' lists them"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=line)
    line = "run an exact method or a published variant on a table that needs no protection; takes no ledger"
    parser.add_argument("--not-private", action="store_true", help=line)
    _kept(parser)
    line = "background knowledge: required and forbidden edges, tiers (TOML)"
    parser.add_argument("--knowledge", metavar="FILE", help=line)
    _order(parser)
    line = "common causes may be missing from the table: draw a PAG, whose edges say less (see the README)"
    parser.add_argument("--latent", action="store_true", help=line)
    line = "draw pairs linked with at least this probability (default: 0.5), or 'best-f1' for the highest expected F1"
    parser.add_argument("--at", type=_cut, metavar="P", help=line)
    line = "draw an arrow where one way round has at least this probability, else a line (default: 0.8)"
    parser.add_argument("--direction", type=_number, metavar="P", help=line)
    line = "set this part of the budget aside, such as 0.5, for the tables of what is found, and write a model of it"
    parser.add_argument("--quantify", type=_number, metavar="PART", help=line)
    line = "with --quantify, or from answers of such a run: write so many rows drawn from the model, synthetic.csv"
    parser.add_argument("--synthetic", type=_whole, metavar="ROWS", help=line)
    files = "report.html, report.json, graph.json, graph.dot, graph.graphml and edges.csv"
    _output(parser, f"write {files} to this folder, and the files of a model", metavar="DIR")
    line = "a rough public number of rows, to estimate what the run will find (default: `rows` in the schema)"
    parser.add_argument("--rows", type=_whole, metavar="N", help=line)
    line = "do not ask before spending on a run that is expected to find next to nothing"
    parser.add_argument("--yes", action="store_true", help=line)
    line = "repeatable noise, for simulations: NOT PRIVATE"
    parser.add_argument("--insecure-seed", type=_whole, metavar="N", help=line)


def _order(parser: argparse.ArgumentParser) -> None:
    line = "what comes first, such as 'sex, age | smoker | *': no arrow points back (default: the schema's order)"
    parser.add_argument("--order", metavar="ORDER", help=line)


def _ask(commands: _Parsers) -> None:
    more = (
        "One release on the same ledger as all else: 'ledger log' lists it, and the same command resumes it if it was\n"
        "stopped. What it will cost of what is left is said before the first row is read. The answer goes to\n"
        "standard output, everything else to standard error.\n\n"
        "examples:\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --counts age,sex --epsilon 0.1\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --mean income --epsilon 0.1\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --epsilon 0.2 \\\n"
        "    --quantiles income 0.25,0.5,0.75 --purpose 'table 1' -o quartiles.csv\n"
        "  dpcurate ask --from-answers patients.ledger"
    )
    line = "ask for a table of counts, for means or for quantiles, within the same privacy budget"
    parser = _command(commands, "ask", line, "ask:run", more=more)
    table, schema = _table(parser), _described(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    line = "how many rows have each combination of levels of these columns, such as age,sex"
    what.add_argument("--counts", metavar="COLUMNS", help=line)
    what.add_argument("--mean", "--means", metavar="COLUMNS", help="the means of these columns of numbers")
    line = "quantiles of a column of numbers, such as --quantiles income 0.25,0.5,0.75, each with an interval"
    what.add_argument("--quantiles", nargs=2, metavar=("COLUMN", "P,P"), help=line)
    line = "what the answer may cost; of an existing ledger, so much of its budget"
    epsilon = _privacy(parser, line, required=True)
    line = "instead of all these: the answer that a run of 'ask' (by default the newest) has stored; costs nothing"
    again = parser.add_argument("--from-answers", nargs="+", metavar=("LEDGER", "RUN"), action=_FromAnswers, help=line)
    again.needless = table, schema, what, epsilon  # type: ignore[attr-defined]
    _kept(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print the answer as CSV, with all digits")
    form.add_argument("--json", action="store_true", help="print the answer as JSON, with what it cost and who asked")
    _output(parser, "also write the answer to this file: .csv, .json or .txt")
    line = "repeatable noise, for simulations: NOT PRIVATE"
    parser.add_argument("--insecure-seed", type=_whole, metavar="N", help=line)


def _kept(parser: argparse.ArgumentParser) -> None:
    """What a ledger is told of a run."""
    line = "record of what all runs on this table have spent; created if it does not exist"
    parser.add_argument("--ledger", metavar="FILE", help=line)
    line = "the table's name, kept in its ledger (default: its file name); another one than the ledger's is refused"
    parser.add_argument("--table", "--name", dest="name", metavar="NAME", help=line)
    parser.add_argument("--purpose", metavar="TEXT", help="what the run is for, for the log and the report")
    parser.add_argument("--by", metavar="WHO", help="who runs it, for the log and the report (default: the login name)")


def _diff(commands: _Parsers) -> None:
    line = "say what changed between two results: edges that appeared, vanished or turned, and how sure they are"
    more = (
        "A result is a report.json, the folder of 'discover -o' that holds it, or a graph in a file (.json, .csv,\n"
        ".dot, .graphml, ...). Both are public already, so comparing them costs nothing.\n\n"
        "example:\n  dpcurate diff result1 result2"
    )
    parser = _command(commands, "diff", line, "diff:run", more=more)
    parser.add_argument("first", metavar="A", help="a result")
    parser.add_argument("second", metavar="B", help="another result")


def _plan(commands: _Parsers) -> None:
    line = "see what accuracy to expect before spending anything; touches no private data"
    more = (
        "The estimate for the default method comes at once. With --worlds 8, or for other methods, random networks\n"
        "are simulated, too: they show what exact PC and, up to 20 columns, an exact score search reach without\n"
        "privacy.\n\n"
        "example:\n  dpcurate plan --schema patients.toml --rows 50000 --accuracy 0.8 -o plan.html"
    )
    parser = _command(commands, "plan", line, "plan:run", more=more)
    _described(parser)
    _order(parser)
    line = "roughly how many rows the table has, from public knowledge"
    parser.add_argument("--rows", type=_whole, required=True, metavar="N", help=line)
    line = "the skeleton F1 you want (0 to 1); also report which epsilon reaches it"
    parser.add_argument("--accuracy", type=_number, metavar="F", help=line)
    line = "values of epsilon to try (default: 0.03 0.1 0.3 1 3 10)"
    parser.add_argument("--epsilons", type=_number, nargs="+", metavar="E", help=line)
    line = f"chance that the epsilon bound fails (default: {DELTA:g})"
    parser.add_argument("--delta", type=_number, default=DELTA, metavar="D", help=line)
    parser.add_argument("--neighbours", default="add-remove", metavar="N", help="add-remove (default) or replace")
    parser.add_argument("--methods", nargs="+", metavar="M", help="methods to try (default: auto)")
    line = "how many random networks to simulate (default: none for the default method, 8 for others)"
    parser.add_argument("--worlds", type=_whole, metavar="N", help=line)
    _seed(parser, "simulations")
    _output(parser, "write the plan as a page (.html) or as data (.json)")


def _schema(commands: _Parsers) -> None:
    group = _group(commands, "schema", "write and check the public description of a table (for its owner)")
    line = "write a first schema from a table; LOOKS AT THE DATA, so check every line before anyone uses it"
    more = "example:\n  dpcurate schema draft patients.csv -o patients.toml"
    draft = _command(group, "draft", line, "schema:draft_file", more=more)
    _table(draft)
    line = "what separates the cells of a text file, such as ';' or tab (default: found, and written into the schema)"
    draft.add_argument("--separator", type=_separator, metavar="S", help=line)
    line = "encoding of a text file, such as windows-1252 (default: found, and written into the schema)"
    draft.add_argument("--encoding", metavar="E", help=line)
    line = "decimal mark of a text file, '.' or ',' (default: found, and written into the schema)"
    draft.add_argument("--decimal", metavar="D", help=line)
    line = "lines before the header of a text file (default: found, and written into the schema)"
    draft.add_argument("--skip", type=_whole, metavar="N", help=line)
    _output(draft, "where to write the schema (default: standard output)")
    line = "report how well the rows fit a schema; LOOKS AT THE DATA, for the owner's eyes only"
    more = (
        "Shows how full levels and bins are, what share of the rows a rule drops, and what to look at. These are\n"
        "exact numbers of the table: NOT PRIVATE, never to be published, and printed to a terminal only.\n\n"
        "example:\n  dpcurate schema check patients.csv --schema patients.toml"
    )
    check = _command(group, "check", line, "schema:check", more=more)
    _table(check)
    _described(check)
    line = "print it although standard output is no terminal"
    check.add_argument("--yes", action="store_true", help=line)


def _ledger(commands: _Parsers) -> None:
    group = _group(commands, "ledger", "keep one privacy budget per table, across runs and people")
    more = (
        "The budget belongs to the people in the table: a second ledger is not a second budget.\n\n"
        "example:\n  dpcurate ledger init patients.ledger --table patients --schema patients.toml --epsilon 3"
    )
    init = _command(group, "init", "create the ledger of a table, once", "ledger:init", more=more)
    init.add_argument("path", metavar="PATH", help="file to create; an existing file is never touched")
    init.add_argument("--table", required=True, metavar="NAME", help="a name for the table")
    _described(init)
    _privacy(init, "the most that may ever be spent on this table", required=True)
    show = _command(group, "show", "show where the budget went, and what is left", "ledger:report")
    show.add_argument("path", metavar="PATH", help="the ledger")
    line = "also show what other composition rules would report"
    show.add_argument("--composition", action="store_true", help=line)
    log = _command(group, "log", "list the runs: when, who, what for, what each spent, what became of it", "ledger:log")
    log.add_argument("path", metavar="PATH", help="the ledger")
    more = (
        "A ledger is refused anywhere but at its own path: an interrupted payment is repaired from the file\n"
        "PATH-journal beside it, which is found by the ledger's name. Use this only after the file has been moved\n"
        "for good, with no run under way. Nothing is adopted while a -journal, or the ledger itself, is still at\n"
        "the old path; if that path cannot be seen from here, check it yourself. A copy is not a move: used beside\n"
        "the original it is a second budget, which cannot be detected across machines.\n"
        "In containers, mount the folder, not the file, at the same path everywhere.\n\n"
        "example:\n  mv patients.ledger archive/ && dpcurate ledger moved archive/patients.ledger"
    )
    moved = _command(group, "moved", "adopt a ledger whose file was moved", "ledger:moved", more=more)
    moved.add_argument("path", metavar="PATH", help="where the ledger is now")


def _methods(commands: _Parsers) -> None:
    more = "With a name, the parameters that 'discover --set NAME=VALUE' takes are listed, with their defaults."
    parser = _command(commands, "methods", "list the discovery methods and their parameters", "methods:run", more=more)
    parser.add_argument("name", nargs="?", metavar="METHOD", help="list the parameters of this method")
    line = "the form with a proof (default), or the one in the paper"
    parser.add_argument("--variant", choices=("proved", "published"), default="proved", help=line)


def _network(commands: _Parsers) -> None:
    group = _group(commands, "network", "benchmark networks: public data to practise on")
    _command(group, "list", "list the networks and their sizes", "network:listing")
    more = "example:\n  dpcurate network sample asia --rows 100000 --seed 1 -o asia.parquet --schema asia.toml"
    sample = _command(group, "sample", "draw rows from a network into a file", "network:sample", more=more)
    sample.add_argument("name", metavar="NAME", help="a name from 'dpcurate network list', or a .bif file")
    sample.add_argument("--rows", type=_whole, required=True, metavar="N", help="how many rows to draw")
    _seed(sample, "rows")
    _output(sample, "file to write, .parquet or .csv", required=True)
    sample.add_argument("--schema", metavar="FILE", help="also write the network's public schema to this file")


def _audit(commands: _Parsers) -> None:
    line = "try to tell two neighbouring tables apart by what a method releases; touches no private data"
    more = "examples:\n  dpcurate audit curate-pc --runs 1000\n  dpcurate audit curate-pc --variant published"
    parser = _command(commands, "audit", line, "audit:run", more=more)
    parser.add_argument("method", nargs="?", metavar="METHOD", help="a name from 'dpcurate methods'")
    line = "the form with a proof (default), or the one in the paper"
    parser.add_argument("--variant", choices=("proved", "published"), default="proved", help=line)
    parser.add_argument(
        "--epsilon",
        type=_number,
        default=20.0,
        metavar="E",
        help="budget of each run (default: 20; little shows below)",
    )
    line = "runs on each of the two tables (default: 1000)"
    parser.add_argument("--runs", type=_whole, default=1000, metavar="N", help=line)
    _seed(parser, "audit")
    line = "audit every statistic, mechanism, method and control instead; takes about 10 minutes"
    parser.add_argument("--long", action="store_true", help=line)


def _reproduce(commands: _Parsers) -> None:
    line = "rerun the tables and figures of the CURATE paper, as published and as proved"
    parser = _command(commands, "reproduce", line, "reproduce:run")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only a few runs and no verdicts, in under 180 seconds; all of it takes about 40 minutes",
    )
    parser.add_argument("--fresh", action="store_true", help="start over instead of resuming an interrupted run")
    parser.add_argument("--workers", type=_whole, default=2, metavar="N", help="number of processes (default: 2)")
    parser.add_argument("-o", "--output", default="paper", metavar="DIR", help="folder to write to (default: paper)")


def _demo(commands: _Parsers) -> None:
    line = "try it out: draw 100,000 rows of the Asia network and find its graph with epsilon = 1"
    parser = _command(commands, "demo", line, "demo:run")
    parser.add_argument("-o", "--output", default="demo", metavar="DIR", help="folder to write to (default: demo)")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
