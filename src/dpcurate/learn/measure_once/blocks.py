"""Coordinates of columns, and the linear algebra of blocks in them.

A column of r levels is written in an orthonormal basis of the vectors that sum to zero: r - 1
coordinates, in which a noised contrast has one noise variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import combinations
from math import inf, sqrt
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from dpcurate._typing import BoolArray, FloatArray

Columns = tuple[int, ...]
"""A set of columns by their positions, in rising order."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Remembered(dict[Key, Value]):
    """What a function says of a key, computed once; of large values all are forgotten when there are too many."""

    def __init__(self, compute: Callable[[Key], Value], most: float = inf) -> None:
        super().__init__()
        self._compute, self._most = compute, most

    def __missing__(self, key: Key) -> Value:
        value = self._compute(key)
        if len(self) >= self._most:
            self.clear()
        self[key] = value
        return value


@cache
def helmert(levels: int) -> FloatArray:
    """Orthonormal basis (levels, levels - 1) of the vectors that sum to zero; made once, and read-only."""
    basis = np.zeros((levels, levels - 1))
    for j in range(1, levels):
        basis[:j, j - 1], basis[j, j - 1] = 1, -j
        basis[:, j - 1] /= sqrt(j * (j + 1))
    basis.setflags(write=False)
    return basis


@cache
def identity(size: int) -> FloatArray:
    """The identity; made once, and read-only."""
    eye = np.eye(size)
    eye.setflags(write=False)
    return eye


def rotate(table: FloatArray, bases: Sequence[FloatArray]) -> FloatArray:
    """A table in the bases of its columns."""
    for basis in bases:  # each pass eats the first axis and appends its image
        table = np.tensordot(table, basis, (0, 0))
    return table


@cache
def subsets(columns: Columns) -> tuple[Columns, ...]:
    """All subsets but the empty one, smallest first."""
    return tuple(u for size in range(1, len(columns) + 1) for u in combinations(columns, size))


def sorted_set(*columns: int) -> Columns:
    """A set of columns in rising order."""
    return tuple(sorted(columns))


def bits(columns: Iterable[int]) -> int:
    """A set of columns as the bits of a number: sets are then compared, joined and remembered at once."""
    return sum(1 << x for x in set(columns))


def bits_of(members: BoolArray) -> int:
    """The same of a vector that says which columns are members."""
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")


def members_of(bits: int, columns: int) -> BoolArray:
    """Which of so many columns are in a set of bits."""
    flat = np.frombuffer(bits.to_bytes(columns // 8 + 1, "little"), dtype=np.uint8)
    return np.unpackbits(flat, count=columns, bitorder="little").view(np.bool_)


def kron(left: FloatArray, right: FloatArray) -> FloatArray:
    """Kronecker product of two vectors, two matrices, or two stacks of matrices."""
    if left.ndim == 1:
        return (left[:, None] * right).ravel()
    product = left[..., :, None, :, None] * right[..., None, :, None, :]
    return product.reshape(*product.shape[:-4], product.shape[-4] * product.shape[-3], -1)


def outer(left: FloatArray, right: FloatArray) -> FloatArray:
    """Outer products of two stacks of vectors."""
    return left[..., :, None] * right[..., None, :]


def products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products of the rows of two stacks of matrices, each with each."""
    return left[..., :, None, :] * right[..., None, :, :]


def flat(stack: FloatArray) -> FloatArray:
    """A stack of matrices as one of vectors."""
    return stack.reshape(*stack.shape[:-2], stack.shape[-2] * stack.shape[-1])


def kron_sum(left: FloatArray, right: FloatArray) -> FloatArray:
    """The sum over m of the Kronecker products of left[s, i, :, :, m] and right[s, :, :, m], by one product for s."""
    (sets, pairs, size, _, terms), other = left.shape, right.shape[1]
    product = left.reshape(sets, pairs * size * size, terms) @ right.reshape(sets, other * other, terms).swapaxes(1, 2)
    product = product.reshape(sets, pairs, size, size, other, other).transpose(0, 1, 2, 4, 3, 5)
    return np.asarray(product.reshape(sets, pairs, size * other, -1))


def block_diagonal(blocks: Sequence[FloatArray]) -> FloatArray:
    """Matrices along a diagonal."""
    rows, columns = (sum(block.shape[i] for block in blocks) for i in (0, 1))
    matrix, row, column = np.zeros((rows, columns)), 0, 0
    for block in blocks:
        (height, width) = block.shape
        matrix[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return matrix


def one_thread() -> AbstractContextManager[object, None]:
    """Linear algebra in one thread: a small matrix is done before a second thread has woken up to help."""
    limits: AbstractContextManager[object, None] = threadpool_limits(limits=1, user_api="blas")
    return limits
