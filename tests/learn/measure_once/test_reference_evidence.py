"""The evidence of one pair, written in plain NumPy from docs/methods.md alone, against the one in use.

Symbols are those of the page. Nothing of the method is imported here but what is compared and its constants.
"""

from __future__ import annotations

import math
from itertools import chain, combinations, product

import numpy as np
import pytest

import dpcurate
from dpcurate import networks
from dpcurate.learn.measure_once.central_moments import CentralMoments
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence


def helmert(r):
    h = np.zeros((r, r - 1))
    for j in range(1, r):
        h[:j, j - 1], h[j, j - 1] = 1, -j
        h[:, j - 1] /= math.sqrt(j * (j + 1))
    return h


def subsets(s, least=1):
    return list(chain.from_iterable(combinations(s, k) for k in range(least, len(s) + 1)))


class Reference:
    """Sections *Moments* and *The evidence of one pair* of docs/methods.md."""

    def __init__(self, levels, sums, variances, constants):
        self.r, self.constants = levels, constants
        self.n = n = max(float(sums[()]), 1.0)
        self.v = {u: s / n**2 for u, s in variances.items()}
        self.H = [helmert(r) for r in levels]
        self.p, self.m, self.C, self.axes = [], [], [], []
        for a, r in enumerate(levels):
            p = np.maximum(1 / r + self.H[a] @ sums[a,] / n, 2 / n)
            p /= p.sum()
            m = self.H[a].T @ p
            self.p.append(p)
            self.m.append(m)
            self.C.append(self.H[a].T @ np.diag(p) @ self.H[a] - np.outer(m, m))
            self.axes.append(np.linalg.eigh(self.C[a]))
        self.M, self.D = {}, {}
        for u in sorted((u for u in sums if len(u) >= 2), key=len):
            self.M[u] = sums[u] / n - self.implied(u)
            self.D[u] = self.denoised(u)

    def implied(self, u):
        """What smaller sets make of the moment of u."""
        total = np.zeros([self.r[a] - 1 for a in u])
        for some in [(), *subsets(u, least=2)[:-1]]:
            if some and some not in self.D:
                continue
            moment, order = (self.D[some], list(some)) if some else (np.array(1.0), [])
            for a in u:
                if a not in some:
                    moment = np.multiply.outer(moment, self.m[a])
                    order.append(a)
            total = total + np.transpose(moment, [order.index(a) for a in u])
        return total

    def denoised(self, u):
        z, scale = self.M[u], np.ones(())
        for a in u:
            lengths, turn = self.axes[a]
            z = np.tensordot(z, turn, axes=(0, 0))  # the first axis moves to the end
            scale = np.multiply.outer(scale, np.sqrt(lengths))
        z, error, t = z / scale, self.v[u] / scale**2 + 1 / self.n, 0.0
        for _ in range(8):
            w = (error + t) ** -2.0
            t = max(0.0, float((w * (z**2 - error)).sum() / w.sum()))
        z = z * t / (t + error) * scale
        for a in u:
            z = np.tensordot(z, self.axes[a][1].T, axes=(0, 0))
        return z

    def moment(self, table, a, t):
        """The moment of {a} and t as a matrix, column a first."""
        u = tuple(sorted((a, *t)))
        return np.transpose(table[u], [u.index(x) for x in (a, *t)]).reshape(self.r[a] - 1, -1)

    def evidence(self, a, b, S):
        sizes, H, m, v = self.r, self.H, self.m, self.v
        terms = [t for t in subsets(S) if all(tuple(sorted((x, *t))) in self.D for x in (a, b))]
        cells = list(product(*(range(sizes[s]) for s in S)))
        q = np.array([self.weight(S, c) for c in cells])
        q /= q.sum()
        f = np.array([self.features(S, terms, c) for c in cells])
        f = f - q @ f
        W, within, mean_within, mu = {}, {}, {}, {}
        values, vectors = np.linalg.eigh(f.T @ (q[:, None] * f)) if terms else (np.ones(0), np.ones((0, 0)))
        inverse = vectors @ np.diag(1 / np.maximum(values, 1e-4 * values.max(initial=0))) @ vectors.T
        places, start = {}, 0
        for t in terms:
            width = math.prod(sizes[s] - 1 for s in t)
            places[t], start = slice(start, start + width), start + width
        for x in (a, b):
            D = np.hstack([self.moment(self.D, x, t) for t in terms]) if terms else np.zeros((sizes[x] - 1, 0))
            W[x] = D @ inverse
            within[x] = [self.covariance(x, W[x] @ row) for row in f]
            mean_within[x] = sum(weight * some for weight, some in zip(q, within[x], strict=True))
            mu[x] = m[x] - sum((W[x][:, places[s,]] @ m[s] for s in S), np.zeros(sizes[x] - 1))
        D_a = np.hstack([self.moment(self.D, a, t) for t in terms]) if terms else np.zeros((sizes[a] - 1, 0))
        R = self.moment(self.M, a, (b,)) - D_a @ W[b].T
        of = {(x, t): W[x][:, places[t]] for x in (a, b) for t in terms}
        one_a, one_b = np.eye(sizes[a] - 1), np.eye(sizes[b] - 1)
        K = sum(w / self.n * np.kron(x, y) for w, x, y in zip(q, within[a], within[b], strict=True))
        K = K + v[tuple(sorted((a, b)))] * np.kron(one_a, one_b)
        for t in terms:
            K = K + v[tuple(sorted((b, *t)))] * np.kron(of[a, t] @ of[a, t].T, one_b)
            K = K + v[tuple(sorted((a, *t)))] * np.kron(one_a, of[b, t] @ of[b, t].T)
        K = K + v[b,] * np.kron(np.outer(mu[a], mu[a]), one_b) + v[a,] * np.kron(one_a, np.outer(mu[b], mu[b]))
        J = np.outer(mu[a], mu[b]) + sum(of[a, (s,)] @ of[b, (s,)].T / sizes[s] for s in S)
        K = K + v[()] * np.outer(J.ravel(), J.ravel())
        for s in S:
            Wa, Wb = of[a, (s,)], of[b, (s,)]
            for j in range(sizes[s] - 1):
                third = Wa @ H[s].T @ np.diag(H[s][:, j]) @ H[s] @ Wb.T
                J = np.outer(mu[a], Wb[:, j]) + np.outer(Wa[:, j], mu[b]) + third
                K = K + v[s,] * np.outer(J.ravel(), J.ravel())
        for s, u in combinations(S, 2):
            for j, k in product(range(sizes[s] - 1), range(sizes[u] - 1)):
                J = np.outer(of[a, (s,)][:, j], of[b, (u,)][:, k]) + np.outer(of[a, (u,)][:, k], of[b, (s,)][:, j])
                K = K + v.get((s, u), 0.0) * np.outer(J.ravel(), J.ravel())
        E = np.kron(mean_within[a], mean_within[b])
        K = K + self.missed(a, b, S, terms, of, mean_within) * E
        K = K + 1e-12 * np.trace(K) * np.eye(len(K))
        ratios = [normal(R.ravel(), K + size**2 * E) - normal(R.ravel(), K) for size in self.constants.effect_sizes]
        return float(np.logaddexp.reduce(ratios) - math.log(len(ratios)))

    def weight(self, S, c):
        independent = math.prod(self.p[s][level] for s, level in zip(S, c, strict=True))
        more, at = 1.0, dict(zip(S, c, strict=True))
        for u in subsets(S, least=2):
            if u in self.D:
                part = self.D[u]
                for s in u:
                    part = np.tensordot(part, self.H[s][at[s]] / self.p[s][at[s]], axes=(0, 0))
                more += float(part)
        return independent * max(more, 1e-3)

    def features(self, S, terms, c):
        at = dict(zip(S, c, strict=True))
        found = []
        for t in terms:
            part = np.array(1.0)
            for s in t:
                part = np.multiply.outer(part, self.H[s][at[s]] - self.m[s])
            found += part.ravel().tolist()
        return found

    def covariance(self, x, shift):
        p = np.maximum(self.p[x] + self.H[x] @ shift, 1e-3 * self.p[x])
        p /= p.sum()
        mean = self.H[x].T @ p
        return self.H[x].T @ np.diag(p) @ self.H[x] - np.outer(mean, mean)

    def missed(self, a, b, S, terms, of, within):
        def effect(x, s):
            own = np.diag(of[x, (s,)] @ self.C[s] @ of[x, (s,)].T) / np.diag(within[x])
            return min(self.constants.most_effect, float(own.sum()))

        worst = 0.0
        for s, u in combinations(S, 2):
            sizes = [len(t) for t in subsets(S, least=2) if s in t and u in t and t not in terms]
            if sizes:
                both = min(effect(a, s), effect(a, u)) * min(effect(b, s), effect(b, u))
                worst = max(worst, both * self.constants.interaction ** (2 * (min(sizes) - 1)))
        return worst


def normal(x, K):
    """Log density of N(0, K), without its constant."""
    return -0.5 * (np.linalg.slogdet(K)[1] + x @ np.linalg.solve(K, x))


@pytest.fixture(scope="module", params=["survey", "sachs"])
def released(request):
    """What a run of the default has released of a table, triples among it."""
    net = networks.load(request.param)
    table = net.sample(20_000, seed=31)
    found = dpcurate.discover(table, net.schema, epsilon=2, insecure_seed=31)
    released = found.learned.released
    assert any(len(u) == 3 for u in released.sums)
    return released


@pytest.mark.parametrize("members", [0, 1, 2, 3])
def test_the_evidence_of_a_pair_is_the_one_on_the_page(released, members):
    constants = Constants()
    ours = ContrastEvidence(CentralMoments.of(released), constants)
    page = Reference(released.levels, released.sums, released.variances, constants)
    draw = np.random.default_rng(members)
    compared = 0
    for _ in range(12):
        a, b, *given = (int(x) for x in draw.permutation(len(released.levels))[: members + 2])
        S = tuple(sorted(given))
        theirs = page.evidence(a, b, S)
        assert ours.conditional([a], b, S)[0] == pytest.approx(theirs, rel=1e-9, abs=1e-9), (a, b, S)
        compared += abs(theirs) > 0.1
    assert compared >= 6
