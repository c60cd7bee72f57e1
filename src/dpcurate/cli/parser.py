"""What can be typed. Little of the library is imported here, so that help appears at once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dpcurate import __version__
from dpcurate.accounting import DELTA
from dpcurate.cli.arguments import (
    HELP,
    Parser,
    add_answers,
    add_command,
    add_group,
    add_insecure_seed,
    add_order,
    add_output,
    add_privacy,
    add_record,
    add_schema,
    add_seed,
    add_server,
    add_table,
    add_variant,
    add_verbs,
    number,
    separator,
    threshold,
    whole_number,
)

if TYPE_CHECKING:
    from dpcurate.cli.arguments import Parsers

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


def build() -> argparse.ArgumentParser:
    """The parser of all commands."""
    root: argparse.ArgumentParser = Parser(
        prog="dpcurate",
        description=_DESCRIPTION,
        epilog=f"{_FIRST_STEPS}\n"
        "exit codes: 0 done, 1 refused or failed (with an explanation), 2 wrong usage, 130 stopped by Ctrl-C",
        formatter_class=HELP,
    )
    root.add_argument("--version", action="version", version=f"dpcurate {__version__}")
    commands = root.add_subparsers(metavar="COMMAND")
    for add in (
        _discover,
        _ask,
        _diff,
        _plan,
        _schema,
        _ledger,
        _study,
        _studio,
        _serve,
        _methods,
        _network,
        _audit,
        _benchmark,
        _reproduce,
        _demo,
    ):
        add(commands)
    return root


# --- commands -----------------------------------------------------------------------------------------------


def _discover(commands: Parsers) -> None:
    more = (
        "Edges go to standard output, everything else to standard error. What the run may spend is announced before\n"
        "the first row is read.\n\n"
        "examples:\n  dpcurate discover patients.parquet --schema patients.toml --epsilon 1 \\\n"
        "    --ledger patients.ledger -o result\n"
        "  dpcurate discover patients.parquet --schema patients.toml --epsilon 1 --at 0.8 --direction 0.6\n"
        "  dpcurate discover --from-answers patients.ledger --order 'sex, age | *' -o result2\n"
        "  dpcurate discover --server https://stats.example.org --epsilon 0.2 -o result\n"
        "  dpcurate discover public.parquet --schema public.toml --method curate-pc --variant published --not-private"
    )
    line = "find the causal graph of a table's columns, within a privacy budget"
    parser = add_command(commands, "discover", line, "discover:run", more=more)
    table, schema = add_table(parser), add_schema(parser)
    add_answers(parser, "recompute from answers stored by an earlier run (default: latest); free", table, schema)
    add_server(parser, table, schema)
    epsilon = "the most this run may spend; with an existing ledger, the default is all that is left"
    add_privacy(parser, epsilon, required=False)
    parser.add_argument("--method", default="auto", metavar="M", help="see 'dpcurate methods' (default: auto)")
    add_variant(
        parser,
        ": NOT PRIVATE, and --epsilon is what its authors would claim: for the whole run of curate-pc, noleaks and "
        "curate-score, for EACH STEP of em-pc, svt-pc and priv-pc",
    )
    line = "set a parameter of the method, such as threshold=0.01; 'dpcurate methods METHOD' lists them"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=line)
    line = "allow a method without a guarantee; only for tables whose rows anyone may know"
    parser.add_argument("--not-private", action="store_true", help=line)
    add_record(parser)
    line = "background knowledge: required and forbidden edges, tiers (TOML)"
    parser.add_argument("--knowledge", metavar="FILE", help=line)
    add_order(parser)
    line = "allow latent confounders: draw a PAG, whose edges claim less (see docs/tutorial.md)"
    parser.add_argument("--latent", action="store_true", help=line)
    line = "draw edges of at least this probability (default: 0.5), or 'best-f1' for the highest expected F1"
    parser.add_argument("--at", type=threshold, metavar="P", help=line)
    line = "draw an arrow if one direction has at least this probability, else a line (default: 0.8)"
    parser.add_argument("--direction", type=number, metavar="P", help=line)
    line = "reserve this part of the budget, such as 0.5, to fit a model of the discovered graph"
    parser.add_argument("--quantify", type=number, metavar="PART", help=line)
    line = "with --quantify, or from answers of such a run: draw this many rows from the model into synthetic.csv"
    parser.add_argument("--synthetic", type=whole_number, metavar="ROWS", help=line)
    files = "report.html, report.json, graph.json, graph.dot, graph.graphml and edges.csv"
    add_output(parser, f"write {files} to this folder, and the files of a model", metavar="DIR")
    line = "a rough public number of rows, to estimate what the run will find (default: `rows` in the schema)"
    parser.add_argument("--rows", type=whole_number, metavar="N", help=line)
    line = "do not ask for confirmation when a run is unlikely to find anything"
    parser.add_argument("--yes", action="store_true", help=line)
    add_insecure_seed(parser)


def _ask(commands: Parsers) -> None:
    more = (
        "The answer goes to standard output, everything else to standard error. Its cost is announced before the\n"
        "first row is read. With a ledger it is a run of the log, and the same command resumes it if stopped.\n\n"
        "examples:\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --counts age,sex --epsilon 0.1\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --mean income --epsilon 0.1\n"
        "  dpcurate ask patients.csv --schema patients.toml --ledger patients.ledger --epsilon 0.2 \\\n"
        "    --quantiles income 0.25,0.5,0.75 --purpose 'table 1' -o quartiles.csv\n"
        "  dpcurate ask --from-answers patients.ledger\n"
        "  dpcurate ask --server https://stats.example.org --counts age,sex --epsilon 0.1"
    )
    line = "release counts, means or quantiles, within the same privacy budget"
    parser = add_command(commands, "ask", line, "ask:run", more=more)
    table, schema = add_table(parser), add_schema(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    line = "how many rows have each combination of levels of these columns, such as age,sex"
    what.add_argument("--counts", metavar="COLUMNS", help=line)
    what.add_argument("--mean", "--means", metavar="COLUMNS", help="the means of these columns of numbers")
    line = "quantiles of a column of numbers, such as --quantiles income 0.25,0.5,0.75, each with an interval"
    what.add_argument("--quantiles", nargs=2, metavar=("COLUMN", "P,P"), help=line)
    epsilon = add_privacy(parser, "what the answer may cost, out of the ledger's budget if there is one", required=True)
    line = "show the answer stored by an earlier run of 'ask' (default: latest); free"
    add_answers(parser, line, table, schema, what, epsilon)  # type: ignore[arg-type]
    add_server(parser, table, schema)
    add_record(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print the answer as CSV, with all digits")
    form.add_argument("--json", action="store_true", help="print the answer as JSON, with its cost and who asked")
    add_output(parser, "also write the answer to this file: .csv, .json or .txt")
    add_insecure_seed(parser)


def _diff(commands: Parsers) -> None:
    line = "compare two results: edges that appeared, vanished or turned, and how their probabilities changed"
    more = (
        "A result is a report.json, the folder of 'discover -o' that holds it, or a graph in a file (.json, .csv,\n"
        ".dot, .graphml, ...). Both are public already, so comparing them is free.\n\n"
        "example:\n  dpcurate diff result1 result2"
    )
    parser = add_command(commands, "diff", line, "public:diff", more=more)
    parser.add_argument("first", metavar="A", help="a result")
    parser.add_argument("second", metavar="B", help="another result")


def _plan(commands: Parsers) -> None:
    line = "see what accuracy to expect before spending anything; touches no private data"
    more = (
        "The estimate for the default method is immediate. With --worlds 8, or for other methods, random networks are\n"
        "simulated as well: they show what exact PC and, up to 20 columns, an exact score search reach without\n"
        "privacy.\n\n"
        "example:\n  dpcurate plan --schema patients.toml --rows 50000 --accuracy 0.8 -o plan.html"
    )
    parser = add_command(commands, "plan", line, "public:plan", more=more)
    add_schema(parser)
    add_order(parser)
    line = "roughly how many rows the table has, from public knowledge"
    parser.add_argument("--rows", type=whole_number, required=True, metavar="N", help=line)
    line = "plan for so many sites of --rows rows each: one alone, pooled, and with shared noise"
    parser.add_argument("--sites", type=whole_number, default=1, metavar="K", help=line)
    line = "the skeleton F1 you want (0 to 1); also report which epsilon reaches it"
    parser.add_argument("--accuracy", type=number, metavar="F", help=line)
    line = "values of epsilon to try (default: 0.03 0.1 0.3 1 3 10)"
    parser.add_argument("--epsilons", type=number, nargs="+", metavar="E", help=line)
    line = f"probability that the epsilon bound fails (default: {DELTA:g})"
    parser.add_argument("--delta", type=number, default=DELTA, metavar="D", help=line)
    parser.add_argument("--neighbours", default="add-remove", metavar="N", help="add-remove (default) or replace")
    parser.add_argument("--methods", nargs="+", metavar="M", help="methods to try (default: auto)")
    line = "how many random networks to simulate (default: none for the default method, 8 for others)"
    parser.add_argument("--worlds", type=whole_number, metavar="N", help=line)
    add_seed(parser, "simulations")
    add_output(parser, "write the plan as a page (.html), as data (.json) or as text (.txt)")


def _schema(commands: Parsers) -> None:
    group = add_group(commands, "schema", "write and check the public description of a table (for its owner)")
    line = "write a first schema from a table; LOOKS AT THE DATA, so check every line before anyone uses it"
    more = "example:\n  dpcurate schema draft patients.csv -o patients.toml"
    draft = add_command(group, "draft", line, "owner:draft", more=more)
    add_table(draft)
    found = "(default: detected, and written into the schema)"
    line = f"what separates the cells of a text file, such as ';' or tab {found}"
    draft.add_argument("--separator", type=separator, metavar="S", help=line)
    draft.add_argument("--encoding", metavar="E", help=f"encoding of a text file, such as windows-1252 {found}")
    draft.add_argument("--decimal", metavar="D", help=f"decimal mark of a text file, '.' or ',' {found}")
    draft.add_argument("--skip", type=whole_number, metavar="N", help=f"lines before the header of a text file {found}")
    add_output(draft, "where to write the schema (default: standard output)")
    line = "report how well the rows fit a schema; LOOKS AT THE DATA, for the owner's eyes only"
    more = (
        "Shows how full levels and bins are, what share of the rows a rule drops, and what to look at. These are\n"
        "exact numbers of the table: NOT PRIVATE, never to be published, and printed to a terminal only.\n\n"
        "example:\n  dpcurate schema check patients.csv --schema patients.toml"
    )
    check = add_command(group, "check", line, "owner:check", more=more)
    add_table(check)
    add_schema(check)
    check.add_argument("--yes", action="store_true", help="print it even if standard output is not a terminal")
    _schema_csvw(group)


def _schema_csvw(group: Parsers) -> None:
    more = "example:\n  dpcurate schema export patients.toml --url patients.csv -o patients.csv-metadata.json"
    line = "write a schema as CSVW-EO, the W3C's table metadata with privacy terms; touches no private data"
    export = add_command(group, "export", line, "owner:export_csvw", more=more)
    export.add_argument("schema", metavar="SCHEMA", help="a schema file (TOML)")
    export.add_argument("--csvw", action="store_true", help="write CSVW-EO, the only format so far")
    line = "where the table is, relative to the file that is written; W3C tools need it"
    export.add_argument("--url", metavar="URL", help=line)
    line = "a public upper bound on the number of rows, which some tools need (default: none is written)"
    export.add_argument("--max-rows", type=whole_number, metavar="N", help=line)
    add_output(export, "where to write the metadata (default: standard output)")
    more = "example:\n  dpcurate schema import patients.csv-metadata.json -o patients.toml"
    line = "write a schema from CSVW or CSVW-EO metadata; touches no private data"
    given = add_command(group, "import", line, "owner:import_csvw", more=more)
    given.add_argument("metadata", metavar="METADATA", help="a CSVW file (JSON) that describes one table")
    add_output(given, "where to write the schema (default: standard output)")


def _ledger(commands: Parsers) -> None:
    group = add_group(commands, "ledger", "keep one privacy budget per table, across runs and people")
    more = (
        "The budget protects the people in the table: never make a second ledger for the same table.\n\n"
        "example:\n  dpcurate ledger init patients.ledger --table patients --schema patients.toml --epsilon 3"
    )
    init = add_command(group, "init", "create the ledger of a table, once", "owner:init", more=more)
    init.add_argument("path", metavar="PATH", help="file to create; an existing file is never touched")
    init.add_argument("--table", required=True, metavar="NAME", help="a name for the table")
    add_schema(init)
    add_privacy(init, "the most that may ever be spent on this table", required=True)
    show = add_command(group, "show", "show where the budget went, and what is left", "owner:report")
    show.add_argument("path", metavar="PATH", help="the ledger")
    line = "also show what other composition rules would report"
    show.add_argument("--composition", action="store_true", help=line)
    log = add_command(group, "log", "list the runs: when, who, what for, their cost and their outcome", "owner:log")
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
    moved = add_command(group, "moved", "adopt a ledger whose file was moved", "owner:moved", more=more)
    moved.add_argument("path", metavar="PATH", help="where the ledger is now")
    _record_of_deployment(group)


def _record_of_deployment(group: Parsers) -> None:
    more = (
        "The record (JSON, which is YAML too) follows the schema of registry.opendp.org. What the ledger knows is\n"
        "filled in; what is left empty is listed. It reads stored answers alone, and is free.\n\n"
        "example:\n  dpcurate ledger record patients.ledger --curator 'Cancer Registry' --curator-type Government \\\n"
        "    --region Norway --sector Healthcare -o patients.registry.json"
    )
    line = "describe a published result for the registry of differential privacy deployments"
    record = add_command(group, "record", line, "owner:record", more=more)
    record.add_argument("path", metavar="PATH", help="the ledger, or a copy")
    line = "the number of a run that found a graph (default: the latest)"
    record.add_argument("run", nargs="?", type=whole_number, metavar="RUN", help=line)
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
    add_output(record, "where to write the record (default: standard output)")


def _study(commands: Parsers) -> None:
    group = add_group(commands, "study", "find one graph from several sites' tables by exchanging files, not rows")
    more = (
        "The file says what is computed, how, and what it may cost each site. No table is read.\n\n"
        "example:\n  dpcurate study new --schema asthma.toml --sites Berlin Oslo Rome --epsilon 1 -o study.json"
    )
    new = add_command(group, "new", "write the file of a new study (for its coordinator)", "study_files:new", more=more)
    add_schema(new)
    new.add_argument("--sites", nargs="+", required=True, metavar="NAME", help="a name for each site")
    line = "the most that the study may spend at each site"
    new.add_argument("--epsilon", type=number, required=True, metavar="E", help=line)
    line = f"probability that the epsilon bound fails (default: {DELTA:g})"
    new.add_argument("--delta", type=number, metavar="D", help=line)
    new.add_argument("--method", default="auto", metavar="M", help="a method made of few releases (default: auto)")
    line = "set a parameter of the method; 'dpcurate methods METHOD' lists them"
    new.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=line)
    line = "the most rounds of questions to sites (default: what the method may need); 1 plans a single release"
    new.add_argument("--rounds", type=whole_number, metavar="N", help=line)
    new.add_argument("--deadline", metavar="DAY", help="the last day for answers, such as 2026-12-31 (UTC)")
    new.add_argument("--purpose", metavar="TEXT", help="what the study is for, for every site's log")
    line = "the column that says which site a row is from; it is free (default: site)"
    new.add_argument("--site-column", default="site", metavar="NAME", help=line)
    new.add_argument("--no-site-column", action="store_true", help="pool the sites without that column")
    line = "background knowledge: required and forbidden edges, tiers (TOML)"
    new.add_argument("--knowledge", metavar="FILE", help=line)
    add_order(new)
    new.add_argument("--latent", action="store_true", help="allow latent confounders: draw a PAG")
    _study_noise(new)
    add_output(new, "file to write, .json", required=True)
    more = "example:\n  dpcurate study key --ledger oslo.ledger"
    line = "print a site's public key, for studies with shared noise"
    key = add_command(group, "key", line, "study_files:key", more=more)
    line = "the ledger the site will answer with, which need not exist yet; the secret is kept in LEDGER-site-key"
    key.add_argument("--ledger", required=True, metavar="FILE", help=line)
    _study_answer(group)
    more = "example:\n  dpcurate study combine study.json berlin.json oslo.json rome.json -o round2"
    line = "write the next round's study.json, or the result, from the answers of all sites; free"
    combine = add_command(group, "combine", line, "study_files:combine", more=more)
    combine.add_argument("study", metavar="STUDY", help="the study's newest file")
    combine.add_argument("answers", nargs="+", metavar="ANSWER", help="the answer of each site")
    line = "end the study without these sites, which have dropped out, with what the others have answered so far"
    combine.add_argument("--without", nargs="+", default=[], metavar="NAME", help=line)
    line = "write study.json of the next round, or the files of the result, to this folder"
    add_output(combine, line, metavar="DIR", required=True)
    line = "say what a file of a study asks for or answers"
    show = add_command(group, "show", line, "study_files:show_file")
    show.add_argument("file", metavar="FILE", help="a study, or an answer")


def _study_noise(new: argparse.ArgumentParser) -> None:
    line = "own (every site adds noise; default) or shared (each adds a part, and only the sum of all can be read)"
    new.add_argument("--noise", default="own", metavar="HOW", help=line)
    line = "with shared noise, the public key of a site, once for each; 'dpcurate study key' prints it"
    new.add_argument("--key", action="append", default=[], metavar="SITE=KEY", help=line)
    line = "with shared noise, how many sites may collude (default: 1)"
    new.add_argument("--colluding", type=whole_number, default=1, metavar="N", help=line)
    line = "with shared noise, at how many sites one person may have rows (default: 1)"
    new.add_argument("--sites-per-person", type=whole_number, default=1, metavar="N", help=line)
    line = "with shared noise, the relation of all sites: add-remove (default) or replace"
    new.add_argument("--neighbours", default="add-remove", metavar="N", help=line)


def _study_answer(group: Parsers) -> None:
    more = (
        "The command first shows what will be spent and released, and reads nothing before you agree. The ledger\n"
        "stores the answer: the same command again writes the same file and is free. Another round's question, or an\n"
        "altered file, is refused.\n\n"
        "example:\n  dpcurate study answer study.json oslo.parquet --site Oslo --ledger oslo.ledger -o oslo.json"
    )
    line = "answer a round from this site's table, within its own privacy budget"
    answer = add_command(group, "answer", line, "study_files:answer", more=more)
    answer.add_argument("study", metavar="STUDY", help="the study's newest file")
    add_table(answer)
    answer.add_argument("--site", required=True, metavar="NAME", help="which of the study's sites this is")
    line = "file that keeps this table's budget; one that does not exist is created with the study's epsilon"
    answer.add_argument("--ledger", required=True, metavar="FILE", help=line)
    line = "public description of this table (default: the study's, by the names of --map)"
    answer.add_argument("--schema", metavar="FILE", help=line)
    answer.add_argument("--map", metavar="FILE", help="what this site calls the study's columns and levels (TOML)")
    line = "of a new ledger: add-remove (default) or replace"
    answer.add_argument("--neighbours", metavar="N", help=line)
    line = "the table's name in its ledger (default: its file name)"
    answer.add_argument("--table", "--name", dest="name", metavar="NAME", help=line)
    answer.add_argument("--by", metavar="WHO", help="who answers, for the log (default: the login name)")
    answer.add_argument("--yes", action="store_true", help="do not ask")
    add_output(answer, "file to write, .json", required=True)


def _studio(commands: Parsers) -> None:
    line = "go from a table to a published page in a browser on this machine"
    more = (
        "Choose a table, describe its columns, say what comes first, plan, run and read, all on local pages. What you\n"
        "type is kept in a project folder, with the schema, knowledge and ledger files that other commands take.\n\n"
        "example:\n  dpcurate studio data"
    )
    parser = add_command(commands, "studio", line, "studio:run", more=more)
    line = "where projects are kept, and whose tables are listed (default: the current folder)"
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help=line)
    parser.add_argument("--port", type=whole_number, metavar="N", help="where to listen (default: any free port)")
    parser.add_argument("--no-browser", action="store_true", help="print the link without opening a browser")


def _serve(commands: Parsers) -> None:
    more = (
        "The ledger must exist ('dpcurate ledger init'). The service prints its address, and a link to the page on\n"
        "which you see the budget and approve runs. It stops on Ctrl-C; runs under way can be resumed.\n\n"
        "in place of TABLE (each has its own --help):\n"
        "  token add, token list, token revoke    grant shares of the budget to analysts\n"
        "  approve, deny                          decide on a run that waits for your consent\n"
        "  log                                    what happened; checks that nothing was edited\n\n"
        "examples:\n"
        "  dpcurate serve patients.parquet --schema patients.toml --ledger patients.ledger\n"
        "  dpcurate serve patients.parquet --schema patients.toml --ledger patients.ledger --host 0.0.0.0 \\\n"
        "    --tls-cert stats.pem --tls-key stats.key --url https://stats.example.org:8765"
    )
    line = "answer analysts on other machines, each within a share of the budget (for the table's owner)"
    parser = add_command(commands, "serve", line, "serve:run", more=more)
    add_table(parser)
    add_schema(parser)
    parser.add_argument("--ledger", required=True, metavar="FILE", help="the ledger that keeps the table's budget")
    line = "port to listen on (default: 8765)"
    parser.add_argument("--port", type=whole_number, default=8765, metavar="N", help=line)
    line = "address to listen on (default: 127.0.0.1, which only this machine can reach)"
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help=line)
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain (PEM), to serve HTTPS")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate (PEM)")
    line = "a proxy in front of the service adds HTTPS; needs --url, and nobody else may reach the port"
    parser.add_argument("--behind-proxy", action="store_true", help=line)
    parser.add_argument("--url", metavar="URL", help="the address that analysts use, such as https://stats.example.org")
    line = "header in which the proxy puts the name of an analyst that it has authenticated; needs --behind-proxy"
    parser.add_argument("--user-header", metavar="NAME", help=line)
    parser.add_argument("--approve", action="store_true", help="every run of every analyst waits for your consent")
    parser.add_argument("--team", action="store_true", help="every analyst may read the stored answers of all runs")
    line = "send answers on whole seconds, so that response times reveal less about rows"
    parser.add_argument("--whole-seconds", action="store_true", help=line)
    _serve_verbs(add_verbs(parser))


def _serve_verbs(verbs: Parsers) -> None:
    tokens = add_group(verbs, "token", "grant shares of the budget to analysts")
    more = (
        "The token is printed once; only its hash is kept. Shares are served first come, first served, and may add up\n"
        "to more than the budget; a --reserved share is kept for its analyst.\n\n"
        "example:\n  dpcurate serve token add alice --epsilon 0.4 --purpose 'cohort study' --ledger patients.ledger"
    )
    add = add_command(tokens, "add", "grant a share and print the token that spends it", "serve:add_token", more=more)
    add.add_argument("name", metavar="NAME", help="the analyst: letters, digits, '.', '_', '@' or '-'")
    line = "the most that this analyst may spend, at the delta of the ledger"
    add.add_argument("--epsilon", type=number, required=True, metavar="E", help=line)
    add.add_argument("--purpose", default="", metavar="TEXT", help="what the share is for")
    add.add_argument("--reserved", action="store_true", help="nobody else may spend it")
    add.add_argument("--approve", action="store_true", help="every run of this analyst waits for your consent")
    _add_ledger(add)
    _add_ledger(add_command(tokens, "list", "list the shares: who, how much, what is spent", "serve:list_tokens"))
    revoke = add_command(tokens, "revoke", "end a share and its token; what was spent stays spent", "serve:revoke")
    revoke.add_argument("name", metavar="NAME", help="the analyst")
    _add_ledger(revoke)
    for name, line in (("approve", "let a waiting run begin"), ("deny", "refuse a waiting run; nothing is spent")):
        decide = add_command(verbs, name, line, f"serve:{name}")
        decide.add_argument("request", type=whole_number, metavar="REQUEST", help="its number, from 'serve log'")
        _add_ledger(decide)
    line = "list what happened: who asked for what, at what cost, what was refused; checks the chain of hashes"
    log = add_command(verbs, "log", line, "serve:log")
    log.add_argument("--json", action="store_true", help="one JSON object per line, with the hashes")
    _add_ledger(log)


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ledger", required=True, metavar="FILE", help="the ledger of the service")


def _methods(commands: Parsers) -> None:
    more = "With a name, the parameters that 'discover --set NAME=VALUE' takes are listed, with their defaults."
    line = "list the discovery methods and their parameters"
    parser = add_command(commands, "methods", line, "public:list_methods", more=more)
    parser.add_argument("name", nargs="?", metavar="METHOD", help="list the parameters of this method")
    add_variant(parser)


def _network(commands: Parsers) -> None:
    group = add_group(commands, "network", "benchmark networks: public data to practise on")
    add_command(group, "list", "list the networks and their sizes", "public:list_networks")
    more = "example:\n  dpcurate network sample asia --rows 100000 --seed 1 -o asia.parquet --schema asia.toml"
    sample = add_command(group, "sample", "draw rows from a network into a file", "public:sample", more=more)
    sample.add_argument("name", metavar="NAME", help="a name from 'dpcurate network list', or a .bif file")
    sample.add_argument("--rows", type=whole_number, required=True, metavar="N", help="how many rows to draw")
    add_seed(sample, "rows")
    add_output(sample, "file to write, .parquet or .csv", required=True)
    sample.add_argument("--schema", metavar="FILE", help="also write the network's public schema to this file")


def _audit(commands: Parsers) -> None:
    line = "try to tell two neighbouring tables apart by what a method releases; touches no private data"
    more = "examples:\n  dpcurate audit curate-pc --runs 1000\n  dpcurate audit curate-pc --variant published"
    parser = add_command(commands, "audit", line, "public:audit", more=more)
    parser.add_argument("method", nargs="?", metavar="METHOD", help="a name from 'dpcurate methods'")
    add_variant(parser)
    line = "budget of each run (default: 20; a smaller one shows little)"
    parser.add_argument("--epsilon", type=number, default=20.0, metavar="E", help=line)
    line = "runs on each of the two tables (default: 1000)"
    parser.add_argument("--runs", type=whole_number, default=1000, metavar="N", help=line)
    add_seed(parser, "audit")
    line = "audit every statistic, mechanism, method and control instead; takes about 10 minutes"
    parser.add_argument("--long", action="store_true", help=line)


def _benchmark(commands: Parsers) -> None:
    line = "compare discovery methods on public data: accuracy, spent epsilon, guarantee and time"
    more = (
        "Every method runs on the same tables, drawn from networks whose true graph is known; no private data is\n"
        "touched. Runs are kept in DIR/runs.jsonl: the same command resumes, and more seeds or methods add to it.\n"
        "DIR/benchmark.md has the table.\n\n"
        "A method of your own is a file that registers a recipe, or FILE:NAME (docs/benchmark.md).\n\n"
        "examples:\n"
        "  dpcurate benchmark --worlds asia sachs --epsilons 1 --seeds 5\n"
        "  dpcurate benchmark --methods auto curate-pc curate-pc:published --rows 20000\n"
        "  dpcurate benchmark --methods auto --add my_method.py"
    )
    parser = add_command(commands, "benchmark", line, "public:benchmark", more=more)
    line = (
        "names from 'dpcurate methods', NAME:published for the form in its paper, NAME:SETTING=VALUE for a parameter, "
        "or noised-covariance (default: all of these)"
    )
    parser.add_argument("--methods", nargs="*", metavar="M", help=line)
    line = "also a method of your own: the recipes that FILE registers, or the object NAME in it; may be repeated"
    parser.add_argument("--add", action="append", default=[], metavar="FILE[:NAME]", help=line)
    line = (
        "networks by name or .bif file, random worlds (levels, linear, mixed), or FILE:NAME, a function of your own "
        "(default: the six networks of the CURATE paper)"
    )
    parser.add_argument("--worlds", nargs="+", metavar="W", help=line)
    line = "values of epsilon (default: 0.1 1 10)"
    parser.add_argument("--epsilons", type=number, nargs="+", metavar="E", help=line)
    line = f"probability that the epsilon bound fails (default: {DELTA:g})"
    parser.add_argument("--delta", type=number, default=DELTA, metavar="D", help=line)
    line = "rows of each table (default: 100,000)"
    parser.add_argument("--rows", type=whole_number, default=100_000, metavar="N", help=line)
    line = "tables of each world, with fresh noise (default: 3)"
    parser.add_argument("--seeds", type=whole_number, default=3, metavar="N", help=line)
    line = "most processor seconds of one run (default: 60)"
    parser.add_argument("--limit", type=number, default=60.0, metavar="SECONDS", help=line)
    parser.add_argument("--workers", type=whole_number, default=2, metavar="N", help="number of processes (default: 2)")
    line = "folder to write to (default: benchmark)"
    parser.add_argument("-o", "--output", default="benchmark", metavar="DIR", help=line)


def _reproduce(commands: Parsers) -> None:
    line = "rerun the tables and figures of the CURATE paper, as published and as proved"
    parser = add_command(commands, "reproduce", line, "public:reproduce")
    line = "only a few runs and no verdicts, in under 180 seconds; all of it takes about half an hour"
    parser.add_argument("--quick", action="store_true", help=line)
    parser.add_argument("--fresh", action="store_true", help="start over instead of resuming an interrupted run")
    parser.add_argument("--workers", type=whole_number, default=2, metavar="N", help="number of processes (default: 2)")
    parser.add_argument("-o", "--output", default="paper", metavar="DIR", help="folder to write to (default: paper)")


def _demo(commands: Parsers) -> None:
    line = "try it out: draw 100,000 rows of the Asia network and find its graph with epsilon = 1"
    parser = add_command(commands, "demo", line, "public:demo")
    parser.add_argument("-o", "--output", default="demo", metavar="DIR", help="folder to write to (default: demo)")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
