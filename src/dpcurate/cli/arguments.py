"""What several commands have in common: their parsers, kinds of values, and arguments."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from dpcurate.accounting import DELTA

if TYPE_CHECKING:
    Parsers: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001
HELP = argparse.RawDescriptionHelpFormatter


class Parser(argparse.ArgumentParser):
    """Suggests the command or choice that was probably meant.

    A command with `verbs` takes one of them in place of its first argument: `serve TABLE`, `serve log`.
    """

    verbs: Parser | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What was typed as values, and what was not understood."""
        if self.verbs is not None and args and args[0] in self.verbs.commands:
            return self.verbs.parse_known_args(args, namespace)
        return super().parse_known_args(args, namespace)

    @property
    def commands(self) -> tuple[str, ...]:
        """The names of its commands."""
        groups = [action for action in self._actions if isinstance(action.choices, dict)]
        return tuple(name for action in groups for name in action.choices or ())

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        from dpcurate import messages

        if action.choices is not None and value not in action.choices:
            what = "command" if isinstance(action.choices, dict) else "choice"
            known = list(action.choices)
            raise argparse.ArgumentError(action, f"there is no {what} {value!r}{messages.did_you_mean(value, known)}")


def add_command(commands: Parsers, name: str, line: str, to: str, *, more: str = "") -> argparse.ArgumentParser:
    """A command that runs `module:function` of this package."""
    parser = _new_parser(commands, name, line, more)
    module, _, function = to.partition(":")
    parser.set_defaults(module=module, function=function)
    return parser


def add_verbs(parser: argparse.ArgumentParser) -> Parsers:
    """Commands that may stand in place of a command's first argument."""
    assert isinstance(parser, Parser)
    parser.verbs = Parser(prog=parser.prog)
    verbs: argparse.ArgumentParser = parser.verbs
    return verbs.add_subparsers(metavar="COMMAND")


def add_group(commands: Parsers, name: str, line: str) -> Parsers:
    """A command of several verbs."""
    return _new_parser(commands, name, line).add_subparsers(metavar="COMMAND", required=True)


def _new_parser(commands: Parsers, name: str, line: str, more: str = "") -> argparse.ArgumentParser:
    description = f"{line[0].upper()}{line[1:]}."
    return commands.add_parser(name, help=line, description=description, epilog=more or None, formatter_class=HELP)


# --- kinds of values ----------------------------------------------------------------------------------------


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def threshold(text: str) -> float | str:
    """A number, or a word that the library knows or refuses."""
    try:
        return float(text)
    except ValueError:
        return text


def whole_number(text: str) -> int:
    """A whole number, perhaps with separators: 100,000 or 100_000."""
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def separator(text: str) -> str:
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


class _Server(argparse.Action):
    """Takes the address of a service; a table and its schema are then the service's."""

    needless: tuple[argparse.Action, ...] = ()

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        for action in self.needless:
            action.required = False
        namespace.server = values


# --- arguments of several commands --------------------------------------------------------------------------


def add_table(parser: argparse.ArgumentParser) -> argparse.Action:
    """The table, wherever it is."""
    kinds = (
        "a CSV, Parquet, Excel, Stata, SPSS or SAS file, a folder of Parquet files, FILE.duckdb#TABLE or "
        "postgresql://USER@HOST/DATABASE#TABLE"
    )
    return parser.add_argument("table", metavar="TABLE", help=kinds)


def add_schema(parser: argparse.ArgumentParser) -> argparse.Action:
    """The schema file."""
    line = "public description of the table (TOML); see 'dpcurate schema draft'"
    return parser.add_argument("--schema", required=True, metavar="FILE", help=line)


def add_answers(parser: argparse.ArgumentParser, line: str, *needless: argparse.Action) -> None:
    """`--from-answers`, which makes arguments needless."""
    again = parser.add_argument("--from-answers", nargs="+", metavar=("LEDGER", "RUN"), action=_FromAnswers, help=line)
    again.needless = needless  # type: ignore[attr-defined]


def add_server(parser: argparse.ArgumentParser, *needless: argparse.Action) -> None:
    """A table on a server in place of one here."""
    line = "ask a table on a server ('dpcurate serve') in place of TABLE and --schema; the token is in DPCURATE_TOKEN"
    server = parser.add_argument("--server", metavar="URL", action=_Server, help=line)
    server.needless = needless  # type: ignore[attr-defined]
    line = "read the token for --server from this file"
    parser.add_argument("--token-file", metavar="FILE", help=line)
    line = "with --server: work on made-up rows of the table's schema, which costs nothing"
    parser.add_argument("--dummy", action="store_true", help=line)


def add_output(parser: argparse.ArgumentParser, line: str, *, metavar: str = "FILE", required: bool = False) -> None:
    """Where to write."""
    parser.add_argument("-o", "--output", required=required, metavar=metavar, help=line)
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """A seed of something that is not private anyway."""
    line = f"the same seed gives the same {what} (default: 0)"
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help=line)


def add_insecure_seed(parser: argparse.ArgumentParser) -> None:
    """A seed of the noise."""
    line = "repeatable noise, for simulations: NOT PRIVATE"
    parser.add_argument("--insecure-seed", type=whole_number, metavar="N", help=line)


def add_variant(parser: argparse.ArgumentParser, more: str = "") -> None:
    """As proved or as published."""
    line = f"the form with a proof (default), or the one in the paper{more}"
    parser.add_argument("--variant", choices=("proved", "published"), default="proved", help=line)


def add_privacy(parser: argparse.ArgumentParser, epsilon: str, *, required: bool) -> argparse.Action:
    """Epsilon, delta and neighbours; the action of the epsilon."""
    action = parser.add_argument("--epsilon", type=number, required=required, metavar="E", help=epsilon)
    delta = f"probability that the epsilon bound fails; 0 for pure differential privacy (default: {DELTA:g})"
    parser.add_argument("--delta", type=number, metavar="D", help=delta)
    line = "add-remove: tables differ by one added or removed row or person (default); replace: by one changed"
    parser.add_argument("--neighbours", metavar="N", help=line)
    return action


def add_order(parser: argparse.ArgumentParser) -> None:
    """Which columns come first."""
    line = "which columns come first, such as 'sex, age | smoker | *': no arrow points back (default: the schema's)"
    parser.add_argument("--order", metavar="ORDER", help=line)


def add_record(parser: argparse.ArgumentParser) -> None:
    """What a ledger records of a run."""
    line = "file that records what all runs on this table have spent; created if it does not exist"
    parser.add_argument("--ledger", metavar="FILE", help=line)
    line = "the table's name in its ledger (default: its file name); refused if the ledger has another"
    parser.add_argument("--table", "--name", dest="name", metavar="NAME", help=line)
    parser.add_argument("--purpose", metavar="TEXT", help="what the run is for, for the log and the report")
    parser.add_argument("--by", metavar="WHO", help="who runs it, for the log and the report (default: the login name)")
