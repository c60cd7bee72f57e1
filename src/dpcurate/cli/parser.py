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
    "  dpcurate schema check patients.csv --schema patients.toml        see how the rows fit (owner only)\n"
    "  dpcurate plan --schema patients.toml --rows 50000                see what accuracy to expect\n"
    "  dpcurate discover patients.csv --schema patients.toml --epsilon 1 --ledger patients.ledger -o result\n"
    "                                                                   then open result/report.html\n"
)


def first_steps() -> str:
    """What `dpcurate` without a command prints."""
    return f"{_DESCRIPTION}\n\n{_FIRST_STEPS}\n'dpcurate --help' lists all commands."


class _Parser(argparse.ArgumentParser):
    """Suggests the command or choice that was probably meant."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        from dpcurate import messages

        if action.choices is not None and value not in action.choices:
            what = "command" if isinstance(action.choices, dict) else "choice"
            known = list(action.choices)
            raise argparse.ArgumentError(action, f"there is no {what} {value!r}{messages.did_you_mean(value, known)}")


def build() -> argparse.ArgumentParser:
    """The parser of all commands."""
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


# --- kinds of values ----------------------------------------------------------------------------------------


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def _threshold(text: str) -> float | str:
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


class _FromAnswers(argparse.Action):
    """Takes a ledger and perhaps a run; arguments that are otherwise required may then be left out."""

    needless: tuple[argparse.Action, ...] = ()

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if len(values) > 2 or (len(values) == 2 and not values[1].isdecimal()):
            parser.error(f"{option} takes a ledger and the number of a run")
        for action in self.needless:
            action.required = False
        namespace.from_answers = values[0], int(values[1]) if len(values) == 2 else None


# --- arguments of several commands --------------------------------------------------------------------------


def _table(parser: argparse.ArgumentParser) -> argparse.Action:
    kinds = (
        "a CSV, Parquet, Excel, Stata, SPSS or SAS file, a folder of Parquet files, FILE.duckdb#TABLE or "
        "postgresql://USER@HOST/DATABASE#TABLE"
    )
    return parser.add_argument("table", metavar="TABLE", help=kinds)


def _described(parser: argparse.ArgumentParser) -> argparse.Action:
    line = "public description of the table (TOML); see 'dpcurate schema draft'"
    return parser.add_argument("--schema", required=True, metavar="FILE", help=line)


def _answers(parser: argparse.ArgumentParser, line: str, *needless: argparse.Action) -> None:
    again = parser.add_argument("--from-answers", nargs="+", metavar=("LEDGER", "RUN"), action=_FromAnswers, help=line)
    again.needless = needless  # type: ignore[attr-defined]


def _output(parser: argparse.ArgumentParser, line: str, *, metavar: str = "FILE", required: bool = False) -> None:
    parser.add_argument("-o", "--output", required=required, metavar=metavar, help=line)
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def _seed(parser: argparse.ArgumentParser, what: str) -> None:
    line = f"the same seed gives the same {what} (default: 0)"
    parser.add_argument("--seed", type=_whole, default=0, metavar="N", help=line)


def _insecure_seed(parser: argparse.ArgumentParser) -> None:
    line = "repeatable noise, for simulations: NOT PRIVATE"
    parser.add_argument("--insecure-seed", type=_whole, metavar="N", help=line)


def _variant(parser: argparse.ArgumentParser, more: str = "") -> None:
    line = f"the form with a proof (default), or the one in the paper{more}"
    parser.add_argument("--variant", choices=("proved", "published"), default="proved", help=line)


def _privacy(parser: argparse.ArgumentParser, epsilon: str, *, required: bool) -> argparse.Action:
    action = parser.add_argument("--epsilon", type=_number, required=required, metavar="E", help=epsilon)
    delta = f"probability that the epsilon bound fails; 0 for pure differential privacy (default: {DELTA:g})"
    parser.add_argument("--delta", type=_number, metavar="D", help=delta)
    line = "add-remove: tables differ by one added or removed row or person (default); replace: by one changed"
    parser.add_argument("--neighbours", metavar="N", help=line)
    return action


def _order(parser: argparse.ArgumentParser) -> None:
    line = "which columns come first, such as 'sex, age | smoker | *': no arrow points back (default: the schema's)"
    parser.add_argument("--order", metavar="ORDER", help=line)


def _record(parser: argparse.ArgumentParser) -> None:
    """What a ledger records of a run."""
    line = "file that records what all runs on this table have spent; created if it does not exist"
    parser.add_argument("--ledger", metavar="FILE", help=line)
    line = "the table's name in its ledger (default: its file name); refused if the ledger has another"
    parser.add_argument("--table", "--name", dest="name", metavar="NAME", help=line)
    parser.add_argument("--purpose", metavar="TEXT", help="what the run is for, for the log and the report")
    parser.add_argument("--by", metavar="WHO", help="who runs it, for the log and the report (default: the login name)")


# --- commands -----------------------------------------------------------------------------------------------


def _discover(commands: _Parsers) -> None:
    more = (
        "Edges go to standard output, everything else to standard error. What the run may spend is announced before\n"
        "the first row is read.\n\n"
        "example:\n  dpcurate discover patients.parquet --schema patients.toml --epsilon 1 \\\n"
        "    --ledger patients.ledger -o result\n"
        "  dpcurate discover patients.parquet --schema patients.toml --epsilon 1 --at 0.8 --direction 0.6\n"
        "  dpcurate discover --from-answers patients.ledger --order 'sex, age | *' -o result2\n"
        "  dpcurate discover public.parquet --schema public.toml --method curate-pc --variant published --not-private"
    )
    line = "find the causal graph of a table's columns, within a privacy budget"
    parser = _command(commands, "discover", line, "discover:run", more=more)
    table, schema = _table(parser), _described(parser)
    _answers(parser, "recompute from answers stored by an earlier run (default: latest); free", table, schema)
    epsilon = "the most this run may spend; with an existing ledger, the default is all that is left"
    _privacy(parser, epsilon, required=False)
    parser.add_argument("--method", default="auto", metavar="M", help="see 'dpcurate methods' (default: auto)")
    _variant(
        parser,
        ": NOT PRIVATE, and --epsilon is what its authors would claim: for the whole run of curate-pc, noleaks and "
        "curate-score, for EACH STEP of em-pc, svt-pc and priv-pc",
    )
    line = "set a parameter of the method, such as threshold=0.01; 'dpcurate methods METHOD' lists them"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=line)
    line = "run a method without a guarantee: if everybody may know every row of the table"
    parser.add_argument("--not-private", action="store_true", help=line)
    _record(parser)
    line = "background knowledge: required and forbidden edges, tiers (TOML)"
    parser.add_argument("--knowledge", metavar="FILE", help=line)
    _order(parser)
    line = "allow latent confounders: draw a PAG, whose edges claim less (see the README)"
    parser.add_argument("--latent", action="store_true", help=line)
    line = "draw edges of at least this probability (default: 0.5), or 'best-f1' for the highest expected F1"
    parser.add_argument("--at", type=_threshold, metavar="P", help=line)
    line = "draw an arrow if one direction has at least this probability, else a line (default: 0.8)"
    parser.add_argument("--direction", type=_number, metavar="P", help=line)
    line = "reserve this part of the budget, such as 0.5, to fit a model of the discovered graph"
    parser.add_argument("--quantify", type=_number, metavar="PART", help=line)
    line = "with --quantify, or from answers of such a run: draw so many rows from the model into synthetic.csv"
    parser.add_argument("--synthetic", type=_whole, metavar="ROWS", help=line)
    files = "report.html, report.json, graph.json, graph.dot, graph.graphml and edges.csv"
    _output(parser, f"write {files} to this folder, and the files of a model", metavar="DIR")
    line = "a rough public number of rows, to estimate what the run will find (default: `rows` in the schema)"
    parser.add_argument("--rows", type=_whole, metavar="N", help=line)
    line = "do not ask for confirmation when a run is unlikely to find anything"
    parser.add_argument("--yes", action="store_true", help=line)
    _insecure_seed(parser)


def _ask(commands: _Parsers) -> None:
    more = (
        "The answer goes to standard output, everything else to standard error. Its cost is announced before the\n"
        "first row is read. With a ledger it is a run of the log, and the same command resumes it if stopped.\n\n"
        "examples:\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --counts age,sex --epsilon 0.1\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --mean income --epsilon 0.1\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --epsilon 0.2 \\\n"
        "    --quantiles income 0.25,0.5,0.75 --purpose 'table 1' -o quartiles.csv\n"
        "  dpcurate ask --from-answers patients.ledger"
    )
    line = "release counts, means or quantiles, within the same privacy budget"
    parser = _command(commands, "ask", line, "ask:run", more=more)
    table, schema = _table(parser), _described(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    line = "how many rows have each combination of levels of these columns, such as age,sex"
    what.add_argument("--counts", metavar="COLUMNS", help=line)
    what.add_argument("--mean", "--means", metavar="COLUMNS", help="the means of these columns of numbers")
    line = "quantiles of a column of numbers, such as --quantiles income 0.25,0.5,0.75, each with an interval"
    what.add_argument("--quantiles", nargs=2, metavar=("COLUMN", "P,P"), help=line)
    epsilon = _privacy(parser, "what the answer may cost, out of the ledger's budget if there is one", required=True)
    line = "show the answer stored by an earlier run of 'ask' (default: latest); free"
    _answers(parser, line, table, schema, what, epsilon)  # type: ignore[arg-type]
    _record(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print the answer as CSV, with all digits")
    form.add_argument("--json", action="store_true", help="print the answer as JSON, with its cost and who asked")
    _output(parser, "also write the answer to this file: .csv, .json or .txt")
    _insecure_seed(parser)


def _diff(commands: _Parsers) -> None:
    line = "compare two results: edges that appeared, vanished or turned, and how their probabilities changed"
    more = (
        "A result is a report.json, the folder of 'discover -o' that holds it, or a graph in a file (.json, .csv,\n"
        ".dot, .graphml, ...). Both are public already, so comparing them is free.\n\n"
        "example:\n  dpcurate diff result1 result2"
    )
    parser = _command(commands, "diff", line, "public:diff", more=more)
    parser.add_argument("first", metavar="A", help="a result")
    parser.add_argument("second", metavar="B", help="another result")


def _plan(commands: _Parsers) -> None:
    line = "see what accuracy to expect before spending anything; touches no private data"
    more = (
        "The estimate for the default method is immediate. With --worlds 8, or for other methods, random networks are\n"
        "simulated as well: they show what exact PC and, up to 20 columns, an exact score search reach without\n"
        "privacy.\n\n"
        "example:\n  dpcurate plan --schema patients.toml --rows 50000 --accuracy 0.8 -o plan.html"
    )
    parser = _command(commands, "plan", line, "public:plan", more=more)
    _described(parser)
    _order(parser)
    line = "roughly how many rows the table has, from public knowledge"
    parser.add_argument("--rows", type=_whole, required=True, metavar="N", help=line)
    line = "the skeleton F1 you want (0 to 1); also report which epsilon reaches it"
    parser.add_argument("--accuracy", type=_number, metavar="F", help=line)
    line = "values of epsilon to try (default: 0.03 0.1 0.3 1 3 10)"
    parser.add_argument("--epsilons", type=_number, nargs="+", metavar="E", help=line)
    line = f"probability that the epsilon bound fails (default: {DELTA:g})"
    parser.add_argument("--delta", type=_number, default=DELTA, metavar="D", help=line)
    parser.add_argument("--neighbours", default="add-remove", metavar="N", help="add-remove (default) or replace")
    parser.add_argument("--methods", nargs="+", metavar="M", help="methods to try (default: auto)")
    line = "how many random networks to simulate (default: none for the default method, 8 for others)"
    parser.add_argument("--worlds", type=_whole, metavar="N", help=line)
    _seed(parser, "simulations")
    _output(parser, "write the plan as a page (.html), as data (.json) or as text (.txt)")


def _schema(commands: _Parsers) -> None:
    group = _group(commands, "schema", "write and check the public description of a table (for its owner)")
    line = "write a first schema from a table; LOOKS AT THE DATA, so check every line before anyone uses it"
    more = "example:\n  dpcurate schema draft patients.csv -o patients.toml"
    draft = _command(group, "draft", line, "owner:draft", more=more)
    _table(draft)
    found = "(default: detected, and written into the schema)"
    line = f"what separates the cells of a text file, such as ';' or tab {found}"
    draft.add_argument("--separator", type=_separator, metavar="S", help=line)
    draft.add_argument("--encoding", metavar="E", help=f"encoding of a text file, such as windows-1252 {found}")
    draft.add_argument("--decimal", metavar="D", help=f"decimal mark of a text file, '.' or ',' {found}")
    draft.add_argument("--skip", type=_whole, metavar="N", help=f"lines before the header of a text file {found}")
    _output(draft, "where to write the schema (default: standard output)")
    line = "report how well the rows fit a schema; LOOKS AT THE DATA, for the owner's eyes only"
    more = (
        "Shows how full levels and bins are, what share of the rows a rule drops, and what to look at. These are\n"
        "exact numbers of the table: NOT PRIVATE, never to be published, and printed to a terminal only.\n\n"
        "example:\n  dpcurate schema check patients.csv --schema patients.toml"
    )
    check = _command(group, "check", line, "owner:check", more=more)
    _table(check)
    _described(check)
    check.add_argument("--yes", action="store_true", help="print it even if standard output is not a terminal")
    _schema_csvw(group)


def _schema_csvw(group: _Parsers) -> None:
    more = "example:\n  dpcurate schema export patients.toml --url patients.csv -o patients.csv-metadata.json"
    line = "write a schema as CSVW-EO, the W3C's table metadata with privacy terms; touches no private data"
    export = _command(group, "export", line, "owner:export_csvw", more=more)
    export.add_argument("schema", metavar="SCHEMA", help="a schema file (TOML)")
    export.add_argument("--csvw", action="store_true", help="the format, which is the only one so far")
    line = "where the table is, relative to the file that is written; W3C tools need it"
    export.add_argument("--url", metavar="URL", help=line)
    line = "a public upper bound on the number of rows, which some tools need (default: none is written)"
    export.add_argument("--max-rows", type=_whole, metavar="N", help=line)
    _output(export, "where to write the metadata (default: standard output)")
    more = "example:\n  dpcurate schema import patients.csv-metadata.json -o patients.toml"
    line = "write a schema from CSVW or CSVW-EO metadata; touches no private data"
    given = _command(group, "import", line, "owner:import_csvw", more=more)
    given.add_argument("metadata", metavar="METADATA", help="a CSVW file (JSON) that describes one table")
    _output(given, "where to write the schema (default: standard output)")


def _ledger(commands: _Parsers) -> None:
    group = _group(commands, "ledger", "keep one privacy budget per table, across runs and people")
    more = (
        "The budget belongs to the people in the table: a second ledger is not a second budget.\n\n"
        "example:\n  dpcurate ledger init patients.ledger --table patients --schema patients.toml --epsilon 3"
    )
    init = _command(group, "init", "create the ledger of a table, once", "owner:init", more=more)
    init.add_argument("path", metavar="PATH", help="file to create; an existing file is never touched")
    init.add_argument("--table", required=True, metavar="NAME", help="a name for the table")
    _described(init)
    _privacy(init, "the most that may ever be spent on this table", required=True)
    show = _command(group, "show", "show where the budget went, and what is left", "owner:report")
    show.add_argument("path", metavar="PATH", help="the ledger")
    line = "also show what other composition rules would report"
    show.add_argument("--composition", action="store_true", help=line)
    log = _command(group, "log", "list the runs: when, who, what for, their cost and their outcome", "owner:log")
    log.add_argument("path", metavar="PATH", help="the ledger")
    more = (
        "A ledger works only at its own path: an interrupted payment is repaired from the file PATH-journal in the\n"
        "same folder, which is found by the ledger's name. Use this command only after the file has been moved for\n"
        "good, with no run under way. It refuses while a -journal, or the ledger itself, is still at the old path; if\n"
        "that path cannot be seen from here, check it yourself. A copy is not a move: used together with the\n"
        "original it is a second budget, which cannot be detected across machines.\n"
        "In containers, mount the folder, not the file, at the same path everywhere.\n\n"
        "example:\n  mv patients.ledger archive/ && dpcurate ledger moved archive/patients.ledger"
    )
    moved = _command(group, "moved", "adopt a ledger whose file was moved", "owner:moved", more=more)
    moved.add_argument("path", metavar="PATH", help="where the ledger is now")
    _record_of_deployment(group)


def _record_of_deployment(group: _Parsers) -> None:
    more = (
        "The record (JSON, which is YAML too) follows the schema of registry.opendp.org. What the ledger knows is\n"
        "filled in; what is left empty is listed. It reads stored answers alone, and is free.\n\n"
        "example:\n  dpcurate ledger record patients.ledger --curator 'Cancer Registry' --curator-type Government \\\n"
        "    --region Norway --sector Healthcare -o patients.registry.json"
    )
    line = "describe a published result for the registry of differential privacy deployments"
    record = _command(group, "record", line, "owner:record", more=more)
    record.add_argument("path", metavar="PATH", help="the ledger, or a copy")
    line = "the number of a run that found a graph (default: the latest)"
    record.add_argument("run", nargs="?", type=_whole, metavar="RUN", help=line)
    for option, line in (
        ("name", "name of the data product (default: the table's name)"),
        ("curator", "who publishes it"),
        ("curator-type", "Government, Industry or Nonprofit"),
        ("description", "what it is, in a sentence (default: a sentence about the graph)"),
        ("intended-use", "what it is for (default: the run's purpose)"),
        ("region", "the region that the data describe"),
        ("sector", "Technology, Healthcare, Education, Government, Energy or Finance"),
        ("justification", "why this epsilon, unit and method were chosen"),
    ):
        record.add_argument(f"--{option}", default="", metavar="TEXT", help=line)
    line = "author of the record; may be repeated (default: who made the run)"
    record.add_argument("--author", action="append", default=[], metavar="NAME", help=line)
    _output(record, "where to write the record (default: standard output)")


def _methods(commands: _Parsers) -> None:
    more = "With a name, the parameters that 'discover --set NAME=VALUE' takes are listed, with their defaults."
    line = "list the discovery methods and their parameters"
    parser = _command(commands, "methods", line, "public:list_methods", more=more)
    parser.add_argument("name", nargs="?", metavar="METHOD", help="list the parameters of this method")
    _variant(parser)


def _network(commands: _Parsers) -> None:
    group = _group(commands, "network", "benchmark networks: public data to practise on")
    _command(group, "list", "list the networks and their sizes", "public:list_networks")
    more = "example:\n  dpcurate network sample asia --rows 100000 --seed 1 -o asia.parquet --schema asia.toml"
    sample = _command(group, "sample", "draw rows from a network into a file", "public:sample", more=more)
    sample.add_argument("name", metavar="NAME", help="a name from 'dpcurate network list', or a .bif file")
    sample.add_argument("--rows", type=_whole, required=True, metavar="N", help="how many rows to draw")
    _seed(sample, "rows")
    _output(sample, "file to write, .parquet or .csv", required=True)
    sample.add_argument("--schema", metavar="FILE", help="also write the network's public schema to this file")


def _audit(commands: _Parsers) -> None:
    line = "try to tell two neighbouring tables apart by what a method releases; touches no private data"
    more = "examples:\n  dpcurate audit curate-pc --runs 1000\n  dpcurate audit curate-pc --variant published"
    parser = _command(commands, "audit", line, "public:audit", more=more)
    parser.add_argument("method", nargs="?", metavar="METHOD", help="a name from 'dpcurate methods'")
    _variant(parser)
    line = "budget of each run (default: 20; a smaller one shows little)"
    parser.add_argument("--epsilon", type=_number, default=20.0, metavar="E", help=line)
    line = "runs on each of the two tables (default: 1000)"
    parser.add_argument("--runs", type=_whole, default=1000, metavar="N", help=line)
    _seed(parser, "audit")
    line = "audit every statistic, mechanism, method and control instead; takes about 10 minutes"
    parser.add_argument("--long", action="store_true", help=line)


def _reproduce(commands: _Parsers) -> None:
    line = "rerun the tables and figures of the CURATE paper, as published and as proved"
    parser = _command(commands, "reproduce", line, "public:reproduce")
    line = "only a few runs and no verdicts, in under 180 seconds; all of it takes about 40 minutes"
    parser.add_argument("--quick", action="store_true", help=line)
    parser.add_argument("--fresh", action="store_true", help="start over instead of resuming an interrupted run")
    parser.add_argument("--workers", type=_whole, default=2, metavar="N", help="number of processes (default: 2)")
    parser.add_argument("-o", "--output", default="paper", metavar="DIR", help="folder to write to (default: paper)")


def _demo(commands: _Parsers) -> None:
    line = "try it out: draw 100,000 rows of the Asia network and find its graph with epsilon = 1"
    parser = _command(commands, "demo", line, "public:demo")
    parser.add_argument("-o", "--output", default="demo", metavar="DIR", help="folder to write to (default: demo)")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
