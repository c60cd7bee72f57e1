"""Masks: they cancel in the sum of all sites, and without one site nothing can be read."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpcurate.errors import LedgerError, QueryError, RefusedError
from dpcurate.private import masking
from dpcurate.private.masking import Masked, Round, SiteKey, fresh_key, key_beside, total

NUMBERS = 20_000
"""Integers in a transcript: 160,000 bytes, 625 of each value."""
ALPHA = 1e-6


def round_of(known: list[SiteKey], number: int = 0, **change: object) -> Round:
    names = tuple(f"site {i}" for i in range(len(known)))
    turn = Round(study="s", number=number, keys=tuple(k.public for k in known), asked="q", shares=(1.0,), names=names)
    return replace(turn, **change)  # type: ignore[arg-type]


def said(keys: list[SiteKey], turn: Round, integers: list[np.ndarray]) -> list[Masked]:
    return [key.masked(turn, some) for key, some in zip(keys, integers, strict=True)]


@pytest.mark.parametrize("sites", [3, 4, 9])
def test_masks_cancel_exactly(sites: int) -> None:
    draw = np.random.default_rng(1)
    keys = [fresh_key() for _ in range(sites)]
    turn = round_of(keys)
    integers = [draw.integers(-(2**55), 2**55, 50) for _ in range(sites)]
    parts = said(keys, turn, integers)
    assert np.array_equal(total(parts, turn), np.sum(integers, axis=0))
    assert np.array_equal(total(parts[::-1], turn), np.sum(integers, axis=0))
    for part, own in zip(parts, integers, strict=True):
        assert not (part.words.view(np.int64) == own).any()


# --- transcripts ---------------------------------------------------------------------------------------------


def p_value(words: np.ndarray) -> float:
    """Chi-square of all bytes against the uniform law, 255 degrees of freedom."""
    seen = np.bincount(np.frombuffer(words.astype("<u8").tobytes(), np.uint8), minlength=256)
    return float(stats.chisquare(seen).pvalue)


def p_by_place(words: np.ndarray) -> float:
    """The least of the eight chi-squares of a byte's place in its number, times eight."""
    table = np.frombuffer(words.astype("<u8").tobytes(), np.uint8).reshape(-1, 8)
    return min(1.0, 8 * min(float(stats.chisquare(np.bincount(t, minlength=256)).pvalue) for t in table.T))


def leaky(words: np.ndarray, part: float, seed: int) -> np.ndarray:
    """The same with so large a part of all numbers not masked, but small integers."""
    draw = np.random.default_rng(seed)
    bare = draw.random(len(words)) < part
    return np.where(bare, draw.integers(0, 1000, len(words)).astype(np.uint64), words)


def test_without_one_site_a_transcript_looks_uniform() -> None:
    """Each vector, and the sums of all but one of them; the integers are zeros, so only masks are seen.

    Power: with 1 in 100 numbers unmasked it accuses (the next test).
    """
    keys = [fresh_key() for _ in range(4)]
    turn = round_of(keys)
    nothing = [np.zeros(NUMBERS, dtype=np.int64)] * len(keys)
    parts = said(keys, turn, nothing)
    assert not total(parts, turn).any()
    for left_out in range(len(keys)):
        rest = [part.words for part in parts if part.place != left_out]
        added = rest[0] + rest[1] + rest[2]
        for words in (*rest, added, rest[0] - rest[1]):
            assert p_value(words) > ALPHA
            assert p_by_place(words) > ALPHA


def test_the_test_of_transcripts_accuses_one_number_in_100_unmasked() -> None:
    """The positive control: 200 zeros where 78 are expected add 200^2 / 78 = 512 to a chi-square of 255."""
    keys = [fresh_key() for _ in range(3)]
    words = keys[0].masked(round_of(keys), np.zeros(NUMBERS, dtype=np.int64)).words
    accused = [p_by_place(leaky(words, 1 / 100, seed)) < ALPHA for seed in range(20)]
    assert all(accused)


def test_masks_of_different_rounds_and_pairs_have_nothing_in_common() -> None:
    keys = [fresh_key() for _ in range(3)]
    nothing = np.zeros(1000, dtype=np.int64)
    turns = [round_of(keys), round_of(keys, 1), round_of(keys, study="t"), round_of(keys, asked="r"),
             round_of(keys, shares=(2.0,)), round_of(keys, site="x"), round_of([*keys[:2], fresh_key()])]  # fmt: skip
    assert len({turn.identity for turn in turns}) == len(turns)
    seen = [keys[0].masked(turn, nothing).words for turn in turns]
    for i, one in enumerate(seen):
        for other in seen[:i]:
            assert not (one == other).any()
            assert p_value(one - other) > ALPHA


# --- rounds that are void ------------------------------------------------------------------------------------


def test_a_round_without_a_site_is_void() -> None:
    keys = [fresh_key() for _ in range(4)]
    turn = round_of(keys)
    parts = said(keys, turn, [np.arange(5)] * 4)
    with pytest.raises(QueryError, match="void: site 2 is missing"):
        total([parts[0], parts[1], parts[3]], turn)
    with pytest.raises(QueryError, match="void: site 0 is missing"):
        total([parts[1], parts[1], parts[2], parts[3]], turn)
    with pytest.raises(QueryError, match="there twice"):
        total([*parts, parts[0]], turn)


def test_parts_of_other_rounds_are_refused() -> None:
    keys = [fresh_key() for _ in range(3)]
    first, second = round_of(keys), round_of(keys, 1)
    old, new = said(keys, first, [np.arange(5)] * 3), said(keys, second, [np.arange(5)] * 3)
    for mixed in ([old[0], *new[1:]], old):
        with pytest.raises(QueryError, match="different rounds"):
            total(mixed, second)
    short = keys[1].masked(second, np.arange(4))
    with pytest.raises(QueryError, match="different lengths"):
        total([new[0], short, new[2]], second)
    assert np.array_equal(total(new, second), 3 * np.arange(5))


@pytest.mark.parametrize("sites", [1, 2])
def test_fewer_than_three_sites_are_no_round(sites: int) -> None:
    with pytest.raises(QueryError, match="3 to"):
        round_of([fresh_key() for _ in range(sites)])


def test_a_site_answers_rounds_of_its_own_key_alone() -> None:
    keys = [fresh_key() for _ in range(4)]
    turn = round_of(keys[:3])
    with pytest.raises(QueryError, match="not among those"):
        keys[3].masked(turn, np.arange(3))
    with pytest.raises(QueryError, match="one public key"):
        round_of([keys[0], keys[1], keys[1]])
    for wrong in ("ab", "G" * 64, keys[0].public.upper(), 7):
        with pytest.raises(QueryError, match="hexadecimal"):
            round_of(keys[:3], keys=(keys[0].public, keys[1].public, wrong))


def test_a_key_whose_secret_everybody_knows_is_refused_before_anything_is_paid() -> None:
    """The point 0 has order 4: every exchange with it gives 0."""
    keys = [fresh_key() for _ in range(2)]
    turn = round_of([*keys, fresh_key()], keys=(keys[0].public, keys[1].public, "00" * 32))
    with pytest.raises(QueryError, match="would make"):
        keys[0].check(turn.keys)


@pytest.mark.parametrize(
    "change",
    [
        {"keys": ["0" * 64] * 3},
        {"number": -1},
        {"number": 1.0},
        {"study": 3},
        {"shares": (0.0,)},
        {"names": ("a",)},
        {"asked": "x" * 999},
    ],
)
def test_rounds_are_checked(change: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        round_of([fresh_key() for _ in range(3)], **change)


def test_a_part_comes_back_from_bytes_as_it_was() -> None:
    keys = [fresh_key() for _ in range(3)]
    part = keys[1].masked(round_of(keys), np.arange(7))
    back = Masked.from_bytes(part.to_bytes())
    assert (back.round, back.place) == (part.round, part.place)
    assert np.array_equal(back.words, part.words)
    for wrong in (b"", part.to_bytes()[:-1], part.to_bytes()[:40]):
        with pytest.raises(QueryError, match="not a site's part"):
            Masked.from_bytes(wrong)


def test_streams_are_those_of_the_standard() -> None:
    """RFC 8439, A.1, test vector 1: the key 0, the nonce 0, the block 0."""
    words = masking.stream(bytes(32), 2)
    assert words.astype("<u8").tobytes().hex() == "76b8e0ada0f13d90405d6ae55386bd28"


# --- the secret ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files are those of POSIX")
def test_the_secret_is_for_its_owner_alone(tmp_path: Path) -> None:
    first = key_beside(tmp_path / "a.ledger")
    file = tmp_path / "a.ledger-site-key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [file.name]
    assert key_beside(tmp_path / "a.ledger", "01").public == first.public
    assert key_beside(tmp_path / "a.ledger", "01").public == key_beside(tmp_path / "a.ledger").public == first.public
    with pytest.raises(LedgerError, match="of another ledger"):
        key_beside(tmp_path / "a.ledger", "02")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first.public not in file.read_text()
    file.chmod(0o644)
    with pytest.raises(LedgerError, match="others may read it"):
        key_beside(tmp_path / "a.ledger")
    file.chmod(0o600)
    for text in ("", "xyz\n", "ab" * 31, "\xff"):
        file.write_text(text, "latin-1")
        with pytest.raises(LedgerError, match="site's secret"):
            key_beside(tmp_path / "a.ledger")
    with pytest.raises(LedgerError, match="could not be written"):
        key_beside(tmp_path / "nowhere" / "a.ledger")


def test_of_two_that_make_the_secret_at_once_both_have_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(draft: Path, file: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        (tmp_path / "other").write_text("ab" * 32 + "\n\n")
        (tmp_path / "other").chmod(0o600)
        os.replace(tmp_path / "other", file)
        link(draft, file)

    monkeypatch.setattr(os, "link", late)
    made = key_beside(tmp_path / "a.ledger")
    assert made.public == SiteKey(bytes.fromhex("ab" * 32)).public
    assert len(list(tmp_path.iterdir())) == 1


def test_a_secret_is_neither_copied_nor_shown() -> None:
    key = fresh_key()
    with pytest.raises(RefusedError):
        key.__reduce__()
    assert "seed" not in vars(key)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    masking._primitives.cache_clear()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    with pytest.raises(RefusedError, match=r"dpcurate\[pooling\]"):
        fresh_key()
    masking._primitives.cache_clear()
