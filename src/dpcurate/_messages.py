"""What a message may say of a value: of one from outside never a page, never an error of its own."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from difflib import get_close_matches

LONGEST = 80
_COMPARED = 2000
"""Names that are looked through for a close one; comparing takes the product of two lengths."""


def shown(value: object) -> str:
    """The value as Python writes it, cut where it is long."""
    if type(value) is str:  # a subclass may hold code of its own
        value = value[: LONGEST + 1]
    try:
        text = repr(value)
    except Exception:  # a number of too many digits, a value nested too deeply, a class that is wrong
        text = f"a value of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= LONGEST + 2 else text[:LONGEST] + "..."


def shown_path(path: str) -> str:
    """A path as Python writes it; of a long one the end, which names the file."""
    return repr(path) if len(path) <= LONGEST else repr(f"...{path[-LONGEST:]}")


def printable(text: object) -> str:
    """Names are untrusted: what could steer a terminal is shown as an escape; lines stay."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in str(text))


def one_line(text: object) -> str:
    """The same on one line, so that a name cannot pass for a line of output."""
    return printable(str(text).replace("\n", "\\n"))


def shown_probability(p: float) -> str:
    """A probability in two digits, which never claim a certainty that is none."""
    if p in (0, 1):
        return f"{p:.0f}"
    return ">0.99" if p >= 0.995 else "<0.01" if p < 0.005 else f"{p:.2f}"


def probability(name: str, p: float) -> str:
    """A probability with its name: P(edge) = 0.97, P(edge) > 0.99."""
    text = shown_probability(p)
    return f"{name} {text[0]} {text[1:]}" if text[0] in "<>" else f"{name} = {text}"


def how_many(number: int, one: str, many: str = "") -> str:
    """A number and its noun: 1 edge, 2 edges, 1,000 edges."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def listed(noun: str, names: Sequence[object]) -> str:
    """Names behind their noun: column 'a', columns 'a', 'b'."""
    return f"{noun}{'' if len(names) == 1 else 's'} {', '.join(map(shown, names))}"


def closest(name: object, known: Iterable[str]) -> str | None:
    """The known name most like this one, if any is."""
    short = [one for one in known if len(one) <= LONGEST][:_COMPARED]
    return next(iter(get_close_matches(str(name)[:LONGEST], short, n=1)), None)


def did_you_mean(name: object, known: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the closest known one, else the first few."""
    near = closest(name, known)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; it has {', '.join(map(shown, known[:8]))}{', ...' if len(known) > 8 else ''}"


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Rows as lines of columns of one width, two blanks apart; columns in `right` end at one place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            cells.append(cell.rjust(width) if i in right else cell.ljust(width))
        lines.append("  ".join(cells).rstrip())
    return lines
