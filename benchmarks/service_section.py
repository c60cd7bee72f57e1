"""Sections of docs/reliability.md that have commands of their own; `make chaos`, which writes the page, keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FIRST = "\n<!-- sections with commands of their own -->\n"


def kept(page: str) -> str:
    """These sections, with what divides them from the rest."""
    _, divider, after = page.partition(FIRST)
    return divider + after


def write_section(path: Path, head: str, lines: Iterable[str]) -> None:
    """Put a section at the end of a page, or in place of the one with the same heading."""
    page, _, own = path.read_text(encoding="utf-8").partition(FIRST)
    sections = dict(_sections(own))
    sections[head] = "\n".join(lines).strip("\n")
    text = "\n\n".join(f"{name}\n\n{body}" for name, body in sections.items())
    path.write_text(f"{page.rstrip()}\n{FIRST}\n{text}\n", encoding="utf-8")


def _sections(text: str) -> list[tuple[str, str]]:
    parts = [part for part in f"\n{text}".split("\n## ") if part.strip()]
    return [(f"## {name}", body.strip("\n")) for name, _, body in (part.partition("\n") for part in parts)]
