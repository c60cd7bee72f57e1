"""The words of a BIF file, one at a time, each with its place in the text."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from dpcurate._files import line_at
from dpcurate.errors import FormatError

WORD, QUOTED, MARK, END = "word", "quoted", "mark", "end"

# Possessive (++), so that a text without an end is refused in one pass; but not where a part can fail halfway: Python
# 3.11.2 would go on from there.
_BARE = r'(?:[^\s,{}\[\]();|"/\x00]++|/(?![/*]))+'
_TOKEN = re.compile(rf'(?P<word>{_BARE})|"(?P<quoted>[^"\n\x00]*)"|(?P<mark>[{{}}\[\]();|])|(?P<end>\Z)')
_SOLID = re.compile(r"[^\s,]")  # a comma is a blank in BIF
_PROPERTY = re.compile(r'(?:"[^"]*"|[^";])*+;')
_BARE_NAME = re.compile(_BARE)
_LONGEST = 60


class BifToken(NamedTuple):
    """A word, a quoted name, a mark or the end."""

    kind: str
    text: str
    at: int

    @property
    def is_name(self) -> bool:
        return self.kind in (WORD, QUOTED)

    def is_word(self, text: str) -> bool:
        """Whether it is this keyword, not in quotes."""
        return self.kind == WORD and self.text == text

    def is_mark(self, text: str) -> bool:
        return self.kind == MARK and self.text == text


class Scanner:
    """Reads tokens from left to right; `token` is the next one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._after = 0
        self.token = self._scan()

    def take(self) -> BifToken:
        """The next token; moves on."""
        token = self.token
        if token.kind != END:
            self.token = self._scan()
        return token

    def skip_property(self) -> None:
        """Move past `property ...;`, whose text is free except that quotes hide a semicolon."""
        match = _PROPERTY.match(self._text, self._after)
        if match is None:
            self.fail("this property never ends with ';'", self.token.at)
        self._after = match.end()
        self.token = self._scan()

    def fail(self, message: str, at: int) -> NoReturn:
        raise FormatError(message, line=line_at(self._text, at))

    def _scan(self) -> BifToken:
        at = self._after_blanks()
        match = _TOKEN.match(self._text, at)
        if match is None:
            reasons = {'"': "this quoted name never ends", "/": "this comment never ends"}
            self.fail(reasons.get(self._text[at], f"unexpected character {self._text[at]!r}"), at)
        self._after = match.end()
        kind = str(match.lastgroup)
        return BifToken(kind, match[kind], len(self._text.rstrip()) if kind == END else match.start(kind))

    def _after_blanks(self) -> int:
        """Where the next token begins, past blanks and comments that end."""
        text, at = self._text, self._after
        while True:
            solid = _SOLID.search(text, at)
            at = len(text) if solid is None else solid.start()
            if text.startswith("//", at):
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif text.startswith("/*", at) and (end := text.find("*/", at + 2)) >= 0:
                at = end + 2
            else:
                return at


def quote(name: str) -> str:
    """The name as BIF text, in quotes where it needs them."""
    if _BARE_NAME.fullmatch(name):
        return name
    if any(x in name for x in '"\n\x00'):
        raise FormatError(f"BIF cannot hold the name {show(name)}: it has a quote, a line break or a zero character")
    return f'"{name}"'


def show(name: str) -> str:
    """The name for an error message, never a page long."""
    return repr(name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "...")
