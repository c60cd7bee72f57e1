"""How strongly noised contrasts speak for a dependence: a Bayes factor that knows its noise.

The block of a and b left after regression on S is compared with its covariance K under
independence, K = sampling part + privacy noise, and with K plus an effect of plausible size.
Without power the factor is near 1: an edge is not given up for lack of evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpcurate.learn.contrasts import Array, Columns, Released, subsets


def table(ev: Released, s: Columns) -> Array:
    """Denoised joint distribution of the columns s, flat."""
    return ev.remember(("table", s), lambda: _table(ev, s))


def _table(ev: Released, s: Columns) -> Array:
    t: Array = np.array(0.0)
    for w in ((), *subsets(s)):
        if len(w) != 1:  # a single central moment is zero
            t = t + spread(ev, s, w)
    base: Array = np.array(1.0)
    for a in s:
        base = np.multiply.outer(base, ev.p[a])
    t = np.maximum(t, 1e-3 * base).ravel()
    return np.asarray(t / t.sum())


def spread(ev: Released, s: Columns, w: Columns) -> Array:
    """Part of the table of s that comes from the central moment of w."""
    x = ev.central(w) if w else np.array(1.0)
    for a in w:
        x = np.tensordot(x, ev.h[a], (0, 1))
    rest = [a for a in s if a not in w]
    for a in rest:
        x = np.multiply.outer(x, ev.p[a])
    return np.moveaxis(x, range(len(s)), [s.index(a) for a in (*w, *rest)])


Features = tuple[Array, Array, list[slice]]


def features(ev: Released, s: Columns, us: tuple[Columns, ...]) -> Features:
    """Centred indicator products at every cell of the table of s, their inverse covariance, and block slices."""
    return ev.remember(("features", s, us), lambda: _features(ev, s, us))


def _features(ev: Released, s: Columns, us: tuple[Columns, ...]) -> Features:
    cells = np.indices([ev.levels[a] for a in s]).reshape(len(s), -1)
    columns = []
    for u in us:
        x = np.ones((cells.shape[1], 1))
        for a in u:
            x = (x[:, :, None] * (ev.h[a] - ev.m[a])[cells[s.index(a)]][:, None, :]).reshape(len(x), -1)
        columns.append(x)
    psi, p = np.hstack(columns), table(ev, s)
    psi = psi - p @ psi
    return psi, soft_inverse(psi.T @ (p[:, None] * psi)), features_cuts(ev, us)


def soft_inverse(g: Array) -> Array:
    """An inverse that does not blow up directions that hardly occur."""
    sizes, q = np.linalg.eigh(g)
    sizes = np.maximum(sizes, 1e-4 * sizes[-1])
    return np.asarray((q / sizes) @ q.T)


@dataclass
class Fit:
    """Regression of g columns of k coordinates each on the features of s (first axis: the column)."""

    pred: Array  # (g, features, k) covariance
    coef: Array  # (g, features, k)
    cond: Array  # (g, cells, k, k) conditional covariance at every cell of s
    mean: Array  # (g, k, k) its average
    u: Array  # (g, k) m_a - W' m_s over the single features
    square: Array  # per feature block W'W, (blocks, g, k, k)


def fit(ev: Released, cols: Sequence[int], s: Columns, us: tuple[Columns, ...]) -> Fit:
    """All of cols must have the same number of levels."""
    psi, inv, cuts = features(ev, s, us)
    h = ev.h[cols[0]]
    pred = np.stack([ev.stacked(a, us)[0] for a in cols])
    coef = inv @ pred
    p = np.stack([ev.p[a] for a in cols])[:, None]
    q = np.maximum(p + (psi @ coef) @ h.T, 1e-3 * p)
    q /= q.sum(2, keepdims=True)
    mu = q @ h
    cond = (h.T * q[:, :, None, :]) @ h - mu[..., :, None] * mu[..., None, :]
    u = np.stack([ev.m[a] for a in cols])
    for x, c in zip(us, cuts, strict=True):
        if len(x) == 1:
            u = u - ev.m[x[0]] @ coef[:, c]
    square = np.stack([coef[:, c].swapaxes(1, 2) @ coef[:, c] for c in cuts])
    mean = (table(ev, s) @ cond.reshape(*cond.shape[:2], -1)).reshape(len(cols), *cond.shape[2:])
    return Fit(pred, coef, cond, mean, u, square)


def fit_one(ev: Released, a: int, s: Columns, us: tuple[Columns, ...]) -> Fit:
    """The same for one column, remembered."""
    return ev.remember(("fit", a, s, us), lambda: fit(ev, [a], s, us))


def shared(ev: Released, a: int, b: int, s: Columns) -> tuple[tuple[Columns, ...], int]:
    """Feature blocks measured with both columns, and the size of the smallest block that is missing (0: none)."""
    every = subsets(s)
    both = ev.measured(a, s) & ev.measured(b, s)
    us = tuple(u for u in every if u in both)
    return us, min(len(u) for u in every if u not in both) if len(us) < len(every) else 0


def order_zero(ev: Released, a: int, b: int) -> tuple[Array, Array, Array]:
    """Block of (a, b), its covariance K under independence, and the effect scale G."""
    ma, mb = ev.m[a], ev.m[b]
    g = kron(ev.cov[a], ev.cov[b])
    x = kron(ma, mb)
    k = kron(ev.noise[a, b] * np.eye(len(ma)) + ev.v1[b] * np.outer(ma, ma), np.eye(len(mb)))
    k += ev.v1[a] * kron(np.eye(len(ma)), np.outer(mb, mb)) + ev.v0 * np.outer(x, x)
    return ev.block[a, b], k + g / ev.n, g


def given(
    ev: Released, cols: Sequence[int], b: int, s: Columns, us: tuple[Columns, ...], gap: int
) -> tuple[Array, Array, Array]:
    """The same for every column of cols against b given s, regressed on the feature blocks us."""
    fa, fb = fit(ev, cols, s, us), fit_one(ev, b, s, us)
    r = np.stack([ev.pair(a, b) for a in cols]) - np.swapaxes(fa.pred, 1, 2) @ fb.coef[0]
    g = kron(fa.mean, fb.mean)
    k = noise_cov(ev, cols, b, us, fa, fb) + sampling(fa, fb, table(ev, s)) / ev.n
    if gap:  # an additive regression may miss something; the more so the lower the missing order
        k = k + g * (ev.c.misfit / (gap - 1)) ** 2
    return r.reshape(len(cols), -1), k, g


def sampling(fa: Fit, fb: Fit, p: Array) -> Array:
    """N times the sampling covariance: average over the cells of s of the product of conditional covariances."""
    n, c, ka, _ = fa.cond.shape
    kb = fb.cond.shape[2]
    x = (fa.cond * p[:, None, None]).reshape(n, c, -1).swapaxes(1, 2) @ fb.cond[0].reshape(c, -1)
    return np.asarray(x.reshape(n, ka, ka, kb, kb).transpose(0, 1, 3, 2, 4).reshape(n, ka * kb, -1))


def noise_cov(ev: Released, cols: Sequence[int], b: int, us: tuple[Columns, ...], fa: Fit, fb: Fit) -> Array:
    """Privacy noise of the residual blocks: pair, regressions, margins, count, and the main second-order term."""
    ia, ib = np.eye(fa.u.shape[1]), np.eye(fb.u.shape[1])
    singles = [u[0] for u in us if len(u) == 1]
    own = np.array([ev.noise[min(a, b), max(a, b)] for a in cols])
    for s in singles:
        own += np.array([ev.slack[s, a] for a in cols]) @ ev.slack[s, b]
    left = own[:, None, None] * ia + ev.v1[b] * fa.u[:, :, None] * fa.u[:, None, :]
    right = np.array([ev.v1[a] for a in cols])[:, None, None] * np.outer(fb.u[0], fb.u[0])
    left = left + (ev.stacked(b, us)[1] @ fa.square.reshape(len(us), -1)).reshape(left.shape)
    noises = np.array([ev.stacked(a, us)[1] for a in cols])
    right = right + (noises @ fb.square.reshape(len(us), -1)).reshape(right.shape)
    x = (fa.u[:, :, None] * fb.u[:, None, :]).reshape(len(cols), -1)
    k = kron(left, ib[None]) + kron(ia[None], right) + ev.v0 * x[:, :, None] * x[:, None, :]
    return k + gram_noise(ev, us, fa, fb)


def gram_noise(ev: Released, us: tuple[Columns, ...], fa: Fit, fb: Fit) -> Array:
    """What the noise in the covariance and margins of the conditioning columns does to the residual blocks."""
    k, cuts = np.array(0.0), features_cuts(ev, us)
    singles = [i for i, u in enumerate(us) if len(u) == 1]
    for i in singles:
        s = us[i][0]
        known = ev.fellows(s)
        others = [(ev.noise[min(s, us[j][0]), max(s, us[j][0])], j) for j in singles if us[j][0] in known]
        if others:
            k = k + kron(fa.square[i], sum(v * fb.square[j] for v, j in others))
        slope = margin_slope(ev.h[s], fa.coef[:, cuts[i]], fb.coef[0, cuts[i]], fa.u, fb.u[0])
        k = k + ev.v1[s] * slope @ slope.swapaxes(1, 2)
    return k


def features_cuts(ev: Released, us: tuple[Columns, ...]) -> list[slice]:
    """Where each feature block stands."""

    def make() -> list[slice]:
        ends = np.cumsum([0] + [math.prod(len(ev.m[a]) for a in u) for u in us])
        return [slice(i, j) for i, j in pairwise(ends)]

    return ev.remember(("cuts", us), make)


def margin_slope(h: Array, wa: Array, wb: Array, ua: Array, ub: Array) -> Array:
    """Derivative of the residual blocks by the margin of a conditioning column."""
    at = wa.swapaxes(1, 2)
    x = ua[:, :, None, None] * wb.T + at[:, :, None, :] * ub[:, None]
    x = x + ((h @ wa).swapaxes(1, 2)[:, :, None, :] * (h @ wb).T) @ h
    return x.reshape(len(ua), ua.shape[1] * len(ub), -1)


def kron(a: Array, b: Array) -> Array:
    """Kronecker product of two vectors, two matrices, or two stacks of matrices."""
    if a.ndim == 1:
        return (a[:, None] * b).ravel()
    x = a[..., :, None, :, None] * b[..., None, :, None, :]
    return x.reshape(*x.shape[:-4], x.shape[-4] * x.shape[-3], -1)


def log_bf(r: Array, k: Array, g: Array, taus: Array) -> Array:
    """Log of mean over tau of N(r; 0, k + tau^2 g) / N(r; 0, k), for a stack of blocks."""
    if r.shape[1] == 1:
        gg, z2 = g[:, 0] / k[:, 0], r**2 / k[:, 0]
    else:
        dim = np.eye(r.shape[1])
        inv = np.linalg.inv(np.linalg.cholesky(k + 1e-12 * np.trace(k, axis1=1, axis2=2)[:, None, None] * dim))
        gg, q = np.linalg.eigh(inv @ g @ inv.swapaxes(1, 2))
        z2 = (q.swapaxes(1, 2) @ (inv @ r[:, :, None]))[:, :, 0] ** 2
    t = taus[:, None, None] ** 2 * np.maximum(gg, 0)
    x = (0.5 * z2 * t / (1 + t) - 0.5 * np.log1p(t)).sum(2)
    top = x.max(0)
    return np.asarray(top + np.log(np.exp(x - top).mean(0)))


def alone(ev: Released, a: int, b: int) -> float:
    """Log Bayes factor of dependence of a < b with nothing given."""
    r, k, g = order_zero(ev, a, b)
    return float(log_bf(r.reshape(1, -1), k[None], g[None], np.array(ev.c.taus))[0])


def evidence(ev: Released, cols: Sequence[int], b: int, s: Columns) -> Array:
    """Log Bayes factors of dependence of every column of cols with b given s."""
    groups: dict[tuple[int, Columns, tuple[Columns, ...], int], list[int]] = {}
    for i, a in enumerate(cols):
        known = ev.fellows(a)
        t = s if known.issuperset(s) else tuple(x for x in s if x in known)  # a forbidden pair was never measured
        groups.setdefault((ev.levels[a], t, *shared(ev, a, b, t)), []).append(i)
    out = np.zeros(len(cols))
    for (_, t, us, gap), idx in groups.items():
        some = [cols[i] for i in idx]
        if t:
            out[idx] = log_bf(*given(ev, some, b, t, us, gap), np.array(ev.c.taus))
        else:
            out[idx] = [alone(ev, min(a, b), max(a, b)) for a in some]
    return out
