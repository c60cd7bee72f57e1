"""CSV edge list with the columns from, to, edge.

    ,,cpdag          the kind of graph
    smoke,,node      a node (this keeps the order, and nodes without edges)
    smoke,lung,arrow
    lung,xray,line
    smoke,fibre,o->  in a PAG: also <->, o-o and o--

With two columns more, linked and direction, where it is known how sure the edges are, and four more for the marks
of a PAG: tail_from, head_from, tail_to, head_to; then effect, effect_low, effect_high and effect_in_words, where it is
known what setting the first column does to the second, which are not read. Reports write the edges alone, as one clean
table (`write_table`): its kind is then inferred, and nodes without edges are gone. A plain file with the columns
from,to (or source,target) is read as arrows. A name that a spreadsheet would run as a formula is written behind an
apostrophe, and read without it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from dpcurate._tables import csv_text
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.graph_draft import (
    EDGE_NUMBERS,
    EFFECT_COLUMNS,
    MARK_NUMBERS,
    MEANING_COLUMN,
    NO_PROBABILITIES,
    EdgeProbabilities,
    EdgeProbability,
    GraphDraft,
    names_in,
)
from dpcurate.graphs.graph import Graph, ordered_edges
from dpcurate.graphs.pag import SIGNS

PLAIN_HEADS = (["from", "to"], ["source", "target"])
NUMBER_COLUMNS = (*EDGE_NUMBERS, *MARK_NUMBERS)
EDGE_WORDS = {sign: sign for sign in SIGNS} | {"->": "arrow", "--": "line"}
SIGN_OF_WORD = {word: sign for sign, word in EDGE_WORDS.items()}
# OWASP's list for CSV injection, with the full-width forms some locales accept.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def guard(name: str) -> str:
    """Put an apostrophe before what would be a formula, or would look like a guarded name."""
    return "'" + name if name.startswith(FORMULA_STARTS) or _guarded(name) else name


def unguard(cell: str) -> str:
    """The text of a cell without what guards it from spreadsheets."""
    return cell[1:] if _guarded(cell) else cell


def _guarded(cell: str) -> bool:
    return cell.startswith("'") and cell[1:].startswith((*FORMULA_STARTS, "'"))


def write(graph: Graph, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """A graph as a CSV file of edges."""
    heads, *rows = edge_rows(graph, probabilities)
    blank = [""] * (len(heads) - 3)
    nodes = [[guard(name), "", "node", *blank] for name in graph.nodes]
    return csv_text([heads, ["", "", graph.kind, *blank], *nodes, *rows], csv.QUOTE_ALL)


def write_table(graph: Graph, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """One row for each edge and nothing else, for other programs; read again, it has no nodes without edges."""
    return csv_text(edge_rows(graph, probabilities), csv.QUOTE_ALL)


def edge_rows(graph: Graph, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> Iterator[list[str]]:
    """The names of the columns, then a row for each edge."""
    told = EFFECT_COLUMNS if any(probability.effect for probability in probabilities.values()) else ()
    worded = (MEANING_COLUMN,) if any(probability.meaning for probability in probabilities.values()) else ()
    more = (*names_in(probabilities), *worded, *told)
    yield ["from", "to", "edge", *more]
    for a, mark, b in ordered_edges(graph):
        probability = probabilities.get((a, b), EdgeProbability())
        known = dict((*probability.items(), (MEANING_COLUMN, probability.meaning), *probability.effect))
        known |= {name: guard(known[name]) for name in (MEANING_COLUMN, *EFFECT_COLUMNS[-1:]) if name in known}
        yield [guard(a), guard(b), EDGE_WORDS[mark], *(known.get(name, "") for name in more)]


def read(text: str) -> GraphDraft:
    """A graph from a CSV file of edges."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    draft = GraphDraft()
    names: list[str] = []
    start = 1
    try:
        for row in reader:
            # line_num is where the row ends; a quoted name may hold newlines.
            if names:
                _read_row(draft, [*row, "arrow"] if len(names) == 2 else row, names, start)
            elif row:
                names = _columns(row, start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise FormatError(f"not CSV: {error}", line=reader.line_num) from None
    if not names:
        raise FormatError("empty; the first row must be from,to,edge", line=1)
    return draft


def _columns(row: list[str], line: int) -> list[str]:
    names = [cell.strip().lower() for cell in row]
    numbers = names[3 : -len(EFFECT_COLUMNS)] if tuple(names[-len(EFFECT_COLUMNS) :]) == EFFECT_COLUMNS else names[3:]
    numbers = numbers[:-1] if numbers[-1:] == [MEANING_COLUMN] else numbers
    if (
        names[:2] not in PLAIN_HEADS
        or names[2:3] not in ([], ["edge"])
        or tuple(numbers) not in ((), EDGE_NUMBERS, NUMBER_COLUMNS)
    ):
        raise FormatError(f"the first row must be from,to,edge or from,to, not {','.join(row)}", line=line)
    return names


def _read_row(draft: GraphDraft, row: list[str], names: list[str], line: int) -> None:
    width = len(names)
    if row in ([], ["arrow"]):
        return
    if len(row) != max(width, 3):
        given = len(row) - (width == 2)
        raise FormatError(f"{given} cells where the first row has {width}", line=line)
    a, b, word = unguard(row[0]), unguard(row[1]), row[2]
    if word in SIGN_OF_WORD:
        draft.mention(a, line)
        draft.mention(b, line)
        draft.edge(a, SIGN_OF_WORD[word], b, line, word)
        draft.sure(a, b, dict(zip(names[3:], row[3:], strict=False)), line)
    elif word == "node" and not b:
        draft.declare(a, line)
    elif a or b:
        raise FormatError(f"the third cell must be arrow, line or node, not {word!r}", line=line)
    else:
        draft.say_kind(word, line)
