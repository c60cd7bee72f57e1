"""Checks of a recipe's options, made when it is built: what would be ignored or is no choice is refused."""

from __future__ import annotations

from dpcurate.errors import QueryError


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise QueryError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_threshold(threshold: float) -> None:
    if not 0 < threshold < 0.5:
        raise QueryError(f"threshold is a one-sided p-value between 0 and 0.5, got {threshold!r}")
