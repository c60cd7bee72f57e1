"""Masks that cancel in a sum: what a site says in a round of shared noise, and the secret it needs for that.

Two sites share a secret (X25519, HKDF-SHA256), and from it, for every round, a stream of 64-bit numbers (ChaCha20) that
one of them adds and the other subtracts. Whoever lacks one honest site's masked vector learns nothing of the others'.
Proof and threat model: docs/proofs/shared-noise.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcurate._messages import shown
from dpcurate._typing import IntArray
from dpcurate.errors import LedgerError, QueryError, RefusedError
from dpcurate.private.process import Unique
from dpcurate.queries.query import MOST_SITES

Words = NDArray[np.uint64]

KEY_BYTES = 32
"""Bytes of a seed, of a public key, and of the key of a stream."""
LONGEST_NAME = 200
SUFFIX = "-site-key"
"""What follows the ledger's name in the name of the file that holds a site's secret."""
_FIELD = 2**255 - 19
"""Public keys are numbers below it; curve 25519 takes larger texts for other ways to write one of them."""
_LABEL = b"dpcurate shared noise, version 1: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round: which sites take part, and what tells it from every other round. All of it is public.

    Every site gives one masked vector to a round, once. Whatever is different makes it another round: other sites or
    keys, another study or number, other questions (`asked`, a hash of them).
    """

    study: str
    number: int
    keys: tuple[str, ...]
    """The sites' public keys, in the order of the sites."""
    asked: str
    shares: tuple[float, ...]
    """The scale of a share of noise, by question, in the question's natural units."""
    site: str | None = None
    """The name of the column that says which site a row is from, if there is one."""
    names: tuple[str, ...] = ()
    """The sites' names, in their order."""

    def __post_init__(self) -> None:
        texts = (self.study, self.asked, *self.names, *(() if self.site is None else (self.site,)))
        if any(type(text) is not str or len(text) > LONGEST_NAME for text in texts):
            raise QueryError(f"names of a round are text of at most {LONGEST_NAME} characters")
        if type(self.number) is not int or not 0 <= self.number < 1 << 32:
            raise QueryError(f"rounds are numbered from 0, got {shown(self.number)}")
        if type(self.keys) is not tuple:
            raise QueryError("the keys of a round are a tuple")
        check_keys(self.keys)
        if type(self.shares) is not tuple or any(type(one) is not float or not one > 0 for one in self.shares):
            raise QueryError("a round says how large each share of noise is")
        if type(self.names) is not tuple or len(self.names) != len(self.keys):
            raise QueryError("a round has a name for every site")

    @property
    def sites(self) -> int:
        """How many sites take part."""
        return len(self.keys)

    @property
    def identity(self) -> str:
        """A hash of all that makes it this round."""
        facts = [self.study, self.number, list(self.keys), self.asked, list(self.shares), self.site, list(self.names)]
        return hashlib.sha256(_LABEL + json.dumps(facts).encode()).hexdigest()


def check_keys(keys: Sequence[str]) -> None:
    """Refuse public keys that no round has: too few or too many, one twice, or one that no site makes."""
    if not 3 <= len(keys) <= MOST_SITES:
        raise QueryError(f"a round of shared noise has 3 to {MOST_SITES} sites")
    for key in keys:
        check_public(key)
    if len(set(keys)) < len(keys):
        raise QueryError("two sites of a round have one public key, so one of them could be left out: refuse it")


def check_public(key: object) -> bytes:
    """The bytes of a public key, which is written as 64 hexadecimal digits, in one way."""
    digits = isinstance(key, str) and len(key) == 2 * KEY_BYTES and set(key) <= set("0123456789abcdef")
    if not digits:
        raise QueryError(f"a site's public key is {2 * KEY_BYTES} hexadecimal digits, got {shown(key)}")
    assert isinstance(key, str)
    found = bytes.fromhex(key)
    if int.from_bytes(found, "little") >= _FIELD:
        raise QueryError("a site's public key is not written as a site writes it: it may be another site's once more")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """What one site says in a round: its noised integers plus its masks, modulo 2^64. Safe to send."""

    round: str
    place: int
    words: Words

    def to_bytes(self) -> bytes:
        """For a file or a connection."""
        return bytes.fromhex(self.round) + self.place.to_bytes(4, "little") + self.words.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, body: bytes) -> Masked:
        """As it was written; whatever else is refused."""
        if len(body) < 44 or (len(body) - 36) % 8:
            raise QueryError("these bytes are not a site's part of a round")
        words = np.frombuffer(body, dtype="<u8", offset=36).astype(np.uint64)
        return cls(body[:32].hex(), int.from_bytes(body[32:36], "little"), words)


class SiteKey(Unique):
    """A site's secret: what it adds to its vectors cannot be computed without it, and is never told.

    Made from a file beside the site's ledger that only its owner can read, or for a session without a file.
    """

    def __init__(self, seed: bytes) -> None:
        super().__init__()
        self._private = _primitives().x25519(_derived(seed, b"private key"))
        public: bytes = self._private.public_key().public_bytes_raw()
        self._public = public.hex()

    @property
    def public(self) -> str:
        """The public key, which goes into the study that all sites approve."""
        return self._public

    def place_in(self, keys: Sequence[str]) -> int:
        """Which of the sites with these keys this is."""
        if self._public not in keys:
            raise QueryError(
                f"this site's public key, {self._public[:16]}..., is not among those of the round's sites: the "
                "study was made with another key or another ledger. Nothing was read and nothing was spent"
            )
        return keys.index(self._public)

    def check(self, keys: Sequence[str]) -> None:
        """Refuse, before anything is charged, keys of rounds whose masks this site could not make."""
        mine = self.place_in(keys)
        for place, key in enumerate(keys):
            if place != mine:
                _primitives().exchange(self._private, check_public(key))

    def masked(self, turn: Round, integers: IntArray) -> Masked:
        """Noised integers with this site's masks of the round added; the masks of all sites add up to 0."""
        mine = self.place_in(turn.keys)
        words: Words = integers.astype(np.int64).view(np.uint64).copy()
        for place, key in enumerate(turn.keys):
            if place != mine:
                mask = self._stream(turn, key, len(words))
                words = words + mask if mine < place else words - mask
        return Masked(turn.identity, mine, words)

    def _stream(self, turn: Round, key: str, size: int) -> Words:
        """The numbers that this site and the one with this key share in this round."""
        other = check_public(key)
        mine = bytes.fromhex(self._public)
        shared = _primitives().exchange(self._private, other)
        pair = b"".join(sorted((mine, other)))
        return stream(_derived(shared, b"mask", pair, bytes.fromhex(turn.identity)), size)


def fresh_key() -> SiteKey:
    """For a session whose budget is kept in memory: it ends with it."""
    return SiteKey(secrets.token_bytes(KEY_BYTES))


def key_beside(ledger: Path, identity: str | None = None) -> SiteKey:
    """The secret of the ledger at this path, made if there is none.

    It is for the first ledger whose `identity` was given with it, and no other: one that lacks the rounds that were
    answered would answer them again. Without an identity it is the key of a ledger that is there, or will be.
    """
    file = Path(f"{ledger}{SUFFIX}")
    seed, owner = _kept(file)
    if identity is not None and owner != identity:
        if owner:
            raise LedgerError(
                f"{file} is the secret of another ledger that was here, and answered rounds that this one does not "
                "know. Remove it for a new one, and join studies with the new key"
            )
        _write(file, seed, identity, new=False)
    return SiteKey(seed)


def stream(key: bytes, size: int) -> Words:
    """So many 64-bit numbers from ChaCha20; the key is used for nothing else, so the nonce may be 0."""
    found: bytes = _primitives().chacha(key, bytes(8 * size))
    return np.frombuffer(found, dtype="<u8").astype(np.uint64)


def total(parts: Sequence[Masked], turn: Round) -> IntArray:
    """The sum of all sites' integers, in which the masks are gone.

    Raises:
        QueryError: a site is missing, is there twice, or took part in another round. Nothing is revealed then.
    """
    if len(parts) != turn.sites or sorted(part.place for part in parts) != list(range(turn.sites)):
        there = {part.place for part in parts}
        missing = [name for place, name in enumerate(turn.names) if place not in there]
        what = f"{', '.join(missing)} is missing" if missing else "a site is there twice"
        raise QueryError(
            f"the round is void: {what}. Without every site, once, nothing can be read; nothing was revealed"
        )
    if any(part.round != turn.identity for part in parts):
        raise QueryError("the parts are of different rounds, whose masks do not cancel; nothing was revealed")
    if len({len(part.words) for part in parts}) > 1:
        raise QueryError("the parts of a round are of different lengths; nothing was revealed")
    added = np.zeros(len(parts[0].words), dtype=np.uint64)
    for part in parts:
        added = added + part.words
    return added.view(np.int64)


# --- the file of the secret --------------------------------------------------------------------------------


def _kept(file: Path) -> tuple[bytes, str]:
    """The seed in this file, which is made if it is not there, for its owner's eyes alone; and whose ledger's it is."""
    with suppress(FileNotFoundError):
        return _read(file)
    seed = secrets.token_bytes(KEY_BYTES)
    try:
        _write(file, seed, "", new=True)
    except FileExistsError:  # somebody was faster
        return _read(file)
    return seed, ""


def _write(file: Path, seed: bytes, owner: str, *, new: bool) -> None:
    """The whole file or nothing, durably."""
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
    try:
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w") as opened:
            opened.write(f"{seed.hex()}\n{owner}\n")
            opened.flush()
            os.fsync(opened.fileno())
        try:
            (os.link if new else os.replace)(draft, file)
        finally:
            draft.unlink(missing_ok=True)
    except FileExistsError:
        raise
    except OSError as problem:
        raise LedgerError(f"{file}, the site's secret, could not be written: {problem.strerror}") from None


def _read(file: Path) -> tuple[bytes, str]:
    try:
        seen = os.stat(file)
        text = file.read_text("ascii")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as problem:
        raise LedgerError(f"{file}, the site's secret, could not be read ({type(problem).__name__})") from None
    if hasattr(os, "getuid") and stat.S_IMODE(seen.st_mode) & 0o077:
        raise LedgerError(
            f"{file} holds the site's secret, and others may read it: with it the site's masks can be undone. If "
            f"nobody has, 'chmod 600 {file}'; otherwise remove it, and join studies with the new key"
        )
    found = re.fullmatch(r"([0-9a-f]{64})\n([0-9a-f]*)\n", text)
    if found is None:
        raise LedgerError(f"{file}, the site's secret, is damaged. Restore it from a copy, or remove it for a new one")
    return bytes.fromhex(found[1]), found[2]


# --- primitives --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Primitives:
    """What is used of `cryptography`, found once."""

    x25519: Any
    exchange: Any
    hkdf: Any
    chacha: Any


@cache
def _primitives() -> _Primitives:
    """Imported when they are needed: an extra, tried before anything is charged."""
    try:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise RefusedError(
            "shared noise needs the package cryptography: pip install 'dpcurate[pooling]'. Nothing was read and "
            "nothing was spent"
        ) from None

    def exchange(private: X25519PrivateKey, public: bytes) -> bytes:
        try:
            return private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # a point of low order, with which the secret would be no secret
            raise QueryError("a site's public key is not one that a site would make: refuse it") from None

    def hkdf(secret: bytes, info: bytes) -> bytes:
        return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)

    def chacha(key: bytes, zeros: bytes) -> bytes:
        return Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(zeros)

    return _Primitives(X25519PrivateKey.from_private_bytes, exchange, hkdf, chacha)


def _derived(secret: bytes, what: bytes, *parts: bytes) -> bytes:
    """A key for one use: `what` says which, and the parts are of fixed or declared length."""
    info = _LABEL + b"".join(len(part).to_bytes(4, "little") + part for part in (what, *parts))
    found: bytes = _primitives().hkdf(secret, info)
    return found
