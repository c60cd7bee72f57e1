"""A round of shared noise at one site, and the sum of all sites. Proof: docs/proofs/shared-noise.md.

At a site the order is the usual one, and masking is its last step: validate, charge, read, add the site's share of
noise, mask. What leaves the room is masked; integers with a single site's share never do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcurate._typing import IntArray
from dpcurate.accounting import Event
from dpcurate.errors import DecodeError, QueryError
from dpcurate.private import masking
from dpcurate.private.masking import Masked, Round
from dpcurate.private.mechanisms import GaussianShareNoise, build
from dpcurate.private.noise import Randomness
from dpcurate.private.preview import describe, named, scales_of
from dpcurate.private.row_sums import no_rows
from dpcurate.private.statistics.registry import check_kind, sensitivity, transformation
from dpcurate.private.statistics.transformation import Transformation
from dpcurate.queries import Answer, GaussianShare, PairStatistic, Query, Release
from dpcurate.queries.encoding import MOST_NUMBERS, name
from dpcurate.schema import Categorical, Neighbours, Schema

MARK = b"\xff" * 8 + b"a masked part of a round"
"""What stored parts of rounds begin with, and stored answers never do."""


@dataclass(frozen=True, slots=True)
class Part:
    """One release of a round: its integers, their noise, and what they cost."""

    release: Release
    computed: Transformation
    mechanism: GaussianShareNoise
    shapes: tuple[tuple[int, ...], ...]
    event: Event
    """What is charged, by the object that makes the noise."""

    @property
    def size(self) -> int:
        """How many integers it has."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def noised(self, integers: Sequence[IntArray], randomness: Randomness) -> IntArray:
        """The integers on their refined grids with this site's share of noise, as one row."""
        found = []
        for part, unit in zip(integers, self.computed.units, strict=True):
            parts = self.mechanism.refinement(unit)
            noise = self.mechanism.draw(unit * parts, part.size, randomness)
            found.append(part.reshape(-1) * np.int64(parts) + noise)
        return np.concatenate(found)

    def answer(self, integers: IntArray) -> Answer:
        """The sum over all sites in natural units, with the standard deviation of all sites' noise."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        pieces = np.split(integers, ends[:-1])
        found = [
            piece.reshape(shape) / self.mechanism.refinement(unit)
            for piece, shape, unit in zip(pieces, self.shapes, self.computed.units, strict=True)
        ]
        return Answer(self.computed.natural(tuple(found)), scales_of(self.mechanism, self.computed))  # type: ignore[arg-type]


def parts_of(queries: Sequence[Query[Any]], schema: Schema, neighbours: Neighbours) -> list[Part]:
    """What a round asks, from public facts; whatever could not be answered in one is refused."""
    made = {query: _part(query, schema, neighbours) for query in dict.fromkeys(map(_checked, queries))}
    found = [made[query] for query in map(_checked, queries)]
    if not found:
        raise QueryError("a round asks for one release or more")
    if sum(part.size for part in found) > MOST_NUMBERS:
        raise QueryError(f"a round has at most {MOST_NUMBERS:,} numbers: ask for fewer at a time")
    return found


def _checked(query: Query[Any]) -> Release:
    if type(query) is not Release or type(query.noise) is not GaussianShare:
        raise QueryError("a round is asked releases with shares of Gaussian noise (GaussianShare), and nothing else")
    check_kind(query.statistic)
    return query


def _part(query: Release, schema: Schema, neighbours: Neighbours) -> Part:
    computed = transformation(query.statistic, schema)
    if not computed.proved or isinstance(query.statistic, PairStatistic):
        raise QueryError(
            f"{type(query.statistic).__name__} of all rows is not the sum of that of each site's rows: ask for sums"
        )
    mechanism = build(query.noise, sensitivity(computed, schema, neighbours))
    assert isinstance(mechanism, GaussianShareNoise)
    for unit in set(computed.units):
        mechanism.check(unit)
    scales_of(mechanism, computed)
    event = Event(mechanism.name, describe(query.statistic), mechanism.cost, mechanism.multiplier)
    return Part(query, computed, mechanism, _shapes(computed), event)


def _shapes(computed: Transformation) -> tuple[tuple[int, ...], ...]:
    """The shapes of a statistic's integers, which are those of a table without rows."""
    nobody = no_rows(computed.schema)
    blank = computed.integers(tuple(row_sum.apply(nobody) for row_sum in computed.row_sums))
    return tuple(part.shape for part in blank)


def with_site(schema: Schema, turn: Round) -> Schema:
    """A site's schema with the column that says which site a row is from, if the round has one."""
    if turn.site is None:
        return schema
    if turn.site in schema.names:
        raise QueryError(f"the table has a column {turn.site!r}: give the column that names the site another name")
    return replace(schema, columns=(Categorical(turn.site, turn.names), *schema.columns))


def request(queries: Sequence[Query[Any]], turn: Round, schema: Schema, neighbours: Neighbours) -> str:
    """What tells this site's part of the round from every other request."""
    asked = name(queries, schema.hash, neighbours.value)
    return hashlib.sha256(f"round {turn.identity} {asked}".encode()).hexdigest()


def round_of(
    queries: Sequence[Query[Any]],
    schema: Schema,
    neighbours: Neighbours,
    *,
    study: str,
    number: int,
    keys: Sequence[str],
    names: Sequence[str],
    site: str | None = None,
) -> Round:
    """The round in which these are asked of these sites; `schema` is the study's, with its site column."""
    parts = parts_of(queries, schema, neighbours)
    turn = Round(
        study=study, number=number, keys=tuple(keys), asked=name(queries, schema.hash, neighbours.value),
        shares=tuple(float(part.mechanism.share) for part in parts), site=site, names=tuple(names),
    )  # fmt: skip
    check_fits(parts, turn)
    return turn


def check_fits(parts: Sequence[Part], turn: Round) -> None:
    """Refuse a round of other sites or other noise than its questions, as this table's relation and caps have them."""
    for part in parts:
        if part.mechanism.sites != turn.sites:
            raise QueryError(f"the noise is for {part.mechanism.sites} sites, and {turn.sites} take part in the round")
    if turn.shares != tuple(float(part.mechanism.share) for part in parts):
        raise QueryError(
            "the round's shares of noise are not those that this table would add: its relation of neighbours, or the "
            "rows that a person may have, differ from the study's. Nothing was read and nothing was spent"
        )


def combined(
    queries: Sequence[Query[Any]], turn: Round, said: Sequence[Masked], schema: Schema, neighbours: Neighbours
) -> list[Answer]:
    """The answers of a round, from the parts of all sites; `schema` has the site column if the round has one.

    Raises:
        QueryError: a site is missing or there twice, or parts are of different rounds. Nothing is revealed then.
    """
    parts = parts_of(queries, schema, neighbours)
    check_fits(parts, turn)
    if turn.asked != name(queries, schema.hash, neighbours.value):
        raise QueryError("these are not the questions of the round")
    integers = masking.total(said, turn)
    sizes = [part.size for part in parts]
    if len(integers) != sum(sizes):
        raise QueryError("the parts of the round are not as long as its answers; nothing was revealed")
    each = np.split(integers, np.cumsum(sizes)[:-1])
    answers = [part.answer(piece) for part, piece in zip(parts, each, strict=True)]
    return [named(query, answer, schema) for query, answer in zip(queries, answers, strict=True)]


# --- at one site -------------------------------------------------------------------------------------------


def noised(
    parts: Sequence[Part],
    read: Callable[[Sequence[Transformation]], Iterable[tuple[IntArray, ...]]],
    randomness: Randomness,
) -> IntArray:
    """A site's integers with its share of noise: too little for anybody's eyes until they are masked."""
    found = read([part.computed for part in parts])
    return np.concatenate([part.noised(integers, randomness) for part, integers in zip(parts, found, strict=True)])


def stored(said: Masked) -> bytes:
    """A masked part as a ledger stores it."""
    return MARK + said.to_bytes()


def is_part(body: bytes) -> bool:
    """Whether a stored answer is a masked part of a round, which says nothing by itself; a damaged one is refused."""
    return body.startswith(MARK) and part_of(body) is not None


def part_of(body: bytes) -> Masked:
    """A masked part as it was stored."""
    if not body.startswith(MARK):
        raise DecodeError("this is not a part of a round of shared noise")
    return Masked.from_bytes(body[len(MARK) :])


def restored(body: bytes, turn: Round) -> Masked:
    """A masked part that a ledger has stored for this round."""
    said = part_of(body)
    if said.round != turn.identity:
        raise DecodeError("what is stored is a part of another round")
    return said


def check_same(known: str, asked: str) -> None:
    """Refuse other questions under the name of a round that was answered: its mask hides one vector."""
    if known != asked:
        raise QueryError(
            "this round was answered for other questions, or for another schema of the table; a mask is used once. A "
            "new round, with a number of its own, is a new charge"
        )
