"""The one set of constants of the default method, chosen on random worlds (docs/methods.md)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log

FEW_COLUMNS, GROWTH = 5, 0.3
"""From so many columns on expected neighbours grow with this power of the other columns."""


@dataclass(frozen=True, slots=True)
class Constants:
    """What the default method believes before it sees anything, and how hard it looks."""

    skew: float = 0.4
    """Assumed squared length of a centred margin, as a share of the largest possible."""
    effect_sizes: tuple[float, ...] = (0.05, 0.12, 0.3)
    """Effect sizes of the prior, on the scale of canonical correlations."""
    misfit: float = 0.01
    """Size of what regressions without triples miss: privacy noise above it hides what they would explain."""
    interaction: float = 0.5
    """Two causes together do no more than this share of what the weaker of them does alone (`misfit.py`)."""
    most_effect: float = 0.3
    """An effect on the way to an interaction counts as a variance of no more than this, in units of what is left."""
    misfit_bounds: tuple[float, float] = (0.0, inf)
    """No less and no more than this is taken for the misfit of a regression that lacks terms."""
    log_linear: bool = False
    """Whether the effects of a conditioning set may add up on the log scale, where that matters (`log_linear.py`)."""
    degree: float = 1.2
    """Expected neighbours of a column in a table of five; sets the prior odds of an edge."""
    most_degree: float = 2.4
    """Expected neighbours in a wide table: what is known of an area by experts has 2.4 to 4 from 20 columns on."""
    max_parents: int = 4
    """Of a column, however many levels they have."""
    max_parents_if_small: int = 6
    """Of a column, while the table of the parents is small."""
    small_table: int = 256
    """Cells of a small table: as many as four columns of four levels have."""
    least_counted: float = -4.0
    """Evidence counts no less than this in the score of an order: what is surely independent is worth no more."""
    most_counted: float = 10.0
    """Nor more than this: far beyond it an additive regression that is wrong is likelier than an edge."""
    edge_cost: float = 2.0
    """What an edge costs in the score of an order beside its prior odds: of orders with the same evidence one with
    fewer edges is nearer to the truth."""
    hopeless: float = 10.0
    """A column slides no further in an order where the score has fallen by so much: it hardly ever comes back."""
    patience: int = 3
    """A search over orders ends when so many climbs in a row from equivalent graphs gain nothing."""
    patience_later: int = 1
    """The same in a wide table for a search that goes on from an earlier one."""
    share_later: float = 0.5
    """Share of the budget kept for a second look."""
    share_doubts: float = 0.3
    """Of that, the share kept for what the second look leaves in doubt."""
    share_families: float = 0.5
    """The same for the contrasts of whole families where noise is small."""
    later_from: float = 1.0
    """Triples are bought if the noise variance of pairs is below this multiple of what it would have to hide: sampling
    error, or what regressions without triples miss, whichever is larger."""
    wide: int = 10
    """From so many columns on pairs too noisy for triples are measured around margins (in fewer, rare rows matter),
    and a search goes on from an earlier one instead of starting afresh."""
    share_margins: float = 0.05
    """Share of the budget with which margins are bought before pairs in a wide table."""
    share_norms: float = 0.02
    """Share of what pairs then cost with which the norms of rows are bought."""
    clip_quantiles: tuple[float, ...] = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
    """Rows longer than a quantile are shrunk: the first of these whose induced dependence noise hides."""
    families_from: float = 0.03
    """Contrasts of whole families are bought if the noise variance of pairs is below this multiple."""
    effort: int = 40
    """Starts of the order search: effort / columns, between 2 and 8."""
    maybe: float = 0.2
    """P(edge) from which a pair counts as a possible link when triples are chosen."""
    open_from: float = 0.02
    """A pair whose P(edge) lies between this and 1 minus this is looked at again."""
    again: float = 0.7
    """Weight with which other pairs that depend on each other are bought again: all that separates is made of them."""
    again_if_noisy: float = 1.0
    """The same in a wide table as long as the noise of pairs exceeds their sampling error."""
    walk: int = 300
    """Steps of the walk over orders behind P(edge)."""

    def expected_neighbours(self, columns: int) -> float:
        """Of a column: more in a wider table, by a power of its width."""
        wider = max(1.0, (columns - 1) / (FEW_COLUMNS - 1))
        return min(self.most_degree, self.degree * exp(GROWTH * log(wider)))


@dataclass(frozen=True, slots=True)
class FeatureConstants:
    """How the default buys features and what it believes of them, chosen on random worlds (docs/methods.md)."""

    share_histograms: float = 0.15
    share_norms: float = 0.02
    quantiles: tuple[tuple[float, float], ...] = ((0.95, 4.0), (0.99, 1.0), (0.999, 0.05))
    """Rows longer than a quantile are shrunk: .9, or one of these if noise over sampling is below its figure then."""
    loud_quantile: float = 0.5
    """What rows are shrunk to where there is too much noise to see how long they are."""
    curved_below: float = 8e-4
    """Scores come with waves if the noise variance of a mean product of two features is below this with them."""
    misfit: float = 0.03
    """Size of what a regression on features may miss of a pair, spread over its coordinates, if the features of what is
    given do not tell all its places apart."""
    bends: float = 0.1
    """The same as a share of what both columns owe to one that is given."""
    products: float = 0.3
    """Two columns together do no more than this share of what the weaker of them does alone to a level or to a curved
    feature."""
    products_of_scores: float = 0.1
    """The same of the score of a number: sums of causes are nearly sums of scores."""
    most_effect: float = 0.3
    """An effect on the way to what is missed counts as a variance of no more than this, in units of what is left."""
