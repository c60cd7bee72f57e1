"""The one set of constants of the default method, chosen on random worlds (docs/constants.md)."""

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
    """Two causes together do no more than this share of what the weaker of them does alone (`log_linear.py`)."""
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
    patience: int = 1
    """A search over orders ends when so many climbs in a row from equivalent graphs gain nothing."""
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
    """From so many columns on pairs too noisy for triples are measured around margins: in fewer, rare rows matter."""
    planned_triples: float = 0.3
    """Weight of a triple in a single planned release, in which a pair has 1."""
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

    def expected_neighbours(self, columns: int) -> float:
        """Of a column: more in a wider table, by a power of its width."""
        wider = max(1.0, (columns - 1) / (FEW_COLUMNS - 1))
        return min(self.most_degree, self.degree * exp(GROWTH * log(wider)))


@dataclass(frozen=True, slots=True)
class FeatureConstants:
    """How the default buys features and what it believes of them, chosen on random worlds (docs/constants.md)."""

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


# Releases of levels.

LEAST_WEIGHT = 0.1
"""Of the count and of a margin in the first release; a pair has 1."""
UNSURE = 0.1
"""A pair is in doubt if its P(linked) lies between this and 1 minus this."""
EVEN = 3.0
"""A collider is in doubt if its log odds are nearer to 0 than this."""
LARGEST = 5
"""Columns in a contrast: a family of four parents."""
ROWS_A_CELL = 50.0
"""A contrast of more cells than rows / this says little that sampling does not drown, and costs time."""
UNSETTLED = -2.0
"""From this log evidence on a pair that lacks terms may be taken for an edge."""
LEAST_KEPT = 0.1
"""No level is taken to lose more than all but this share of its rows' weight."""
MOST_INDUCED = 0.3
"""The squared correlation that weighting may induce, as a multiple of the noise variance of a pair."""
KEPT = 0.01
"""Relative error of the mean weight of a row."""
TILT = 0.3
"""How far, relative to it, a level's weight may lie from its column's before noise is seen."""
DIFFERS = 0.001
"""A copy may differ in this share of the rows that lack the most common level."""
DEVIATIONS = 3.0
"""Of the noise in that share, which come on top."""
MOST_DIFFERENT = 0.15
"""With a larger share than this in all nothing is called a copy."""

# Features of columns and their release.

MOST_LEVELS = 32
"""Blocks of two columns have (r - 1)^2 coordinates; beyond this their covariances fill the memory."""
FAR_OFF = 5.0
"""A histogram whose chi-squared lies so many deviations above its mean is not that of a normal column."""
FURTHEST = 2.5
"""Normal scores end here: a few rows far out would lengthen every row that is kept whole."""
MOST_GROUPS = 64
"""Levels that keep an indicator of their own, in wide tables fewer; the rarest of a longer list share one."""
WHITENING = 0.25
"""Directions are divided by their spread to the power of twice this: 0.5 makes all variances equal, 0 none."""
WAVES = 4
"""Where noise is small a score comes with so many waves over the ranks: links may bend, turn round or be products."""
RARE = 1e-4
"""A place with less than this share is none of its own: the waves of few places are as many as tell these apart."""
LEAST_SPREAD = 0.1
"""A column that hardly varies is not blown up beyond this."""
LONGEST = 3.0
"""The mean squared length of a column's features at most; a number's is 1."""
BINS = 240
"""Bins of the histogram of squared norms, up to LONGEST_ROW times the mean."""
LONGEST_ROW = 6.0
SHORTEST = 1e-3
"""The mean squared length of a column's features counts as at least this."""
MEANS, MEANS_IF_NOISY = 0.05, 0.3
"""What the means of features get, as a share of what their products get: of distributions little known means lie
far from zero, and their noise would tie columns to each other."""
NOISY_FROM = 4.0
"""Noise over sampling variance of a product from which on means get the larger share."""
MOST_NORM_NOISE = 0.1
"""Norms are bought if the noise of how many rows are shorter than the mean is at most this share of the rows."""

# Evidence of contrasts.

FEWEST_OF_LEVEL = 2.0
"""No level is taken to be rarer than so many rows, however its noise fell."""
LEAST_CELL = 1e-3
"""A cell of a denoised table is at least this share of what independence would give."""
LEAST_DIRECTION = 1e-4
"""A direction of less than this share of the largest variance is inverted as if it had that."""
JITTER = 1e-12
"""Of a null's trace, added to every direction of it: one may have no variance at all."""
MOST_CELLS = 20_000
"""Of the table of a conditioning set: more than four columns of eleven levels have."""
DETERMINED = 0.05
"""A column of whose variance a set leaves less than this share is determined: it is separated from everything."""
MATTERS = 0.1
"""A product whose variance may be more than this share of the noise is worth a log-linear fit."""

# Evidence of features.

LEAST_EIGENVALUE = 0.02
"""A noised correlation matrix need not be one: its eigenvalues are raised to this."""
LEAST_RESIDUAL = 1e-3
"""What is left of a column after regression, as a share of it: a column that others determine has little."""
MOST_DECORRELATED = 8
"""Features of a column whose noise is made uncorrelated."""
MISSED_AT_LEAST = 0.01
"""Of a correlation: so much a regression on scores misses where the graph is right."""
CLOSEST = 0.98
"""A squared partial correlation above this is noise in what is left of a column."""
WEAK_CORRELATION = 0.3
"""Two columns that are products of the same two, with noise of their own, rarely correlate by more."""
NORMAL_SPREAD = 0.8
"""Spreads of two normal columns have the square of their correlation, cut off at both ends somewhat less."""

# Search.

SPARE = 1
"""So many parents more than a column may have are held while it is not yet clear which make the others needless."""
EXCHANGED = 2
"""So many columns left out are tried in exchange for parents."""
FLIPS = 4
"""Arrows tried for turning, for each arrow of the graph."""
SEARCHED = 2
"""The order of an earlier search counts as so many starts."""
LEAST_THRESHOLD = 0.05
"""Edges less likely than this are not kept, however little there is to find."""
IN_PLACE = 0.5
"""The least P(edge) of a pair that is joined in place of another one."""

# Separating sets.

MOST_GIVEN = 3
"""Columns in a separating set that is tried."""
MOST_NEIGHBOURS = 7
"""Sets are drawn from so many neighbours of an end, those that depend most on the other end."""
INDEPENDENT = -2.0
"""Log evidence below which two columns count as independent; without power it stays near 0."""

# P(edge).

WEIGHTS = (-0.3, 0.58, 0.46)
"""Always, of the log odds given the other parents of the later column, of the least ones given neighbours."""
BOUND = 4.0
"""No log odds count more than this."""
MOST_IF_WEAK = 0.88
"""P(edge) of two numbers whose correlation may be all that products of other columns leave."""
UNLIKELY = 0.02
"""Below this P(edge) of the search a pair is not looked at again."""

# P(direction).

MOST_LOG_ODDS = 5.0
"""No triple is surer than this: its odds know noise and sampling, not whether its edges are right."""
WRONG_TRIPLES = 0.03
"""Share of the directions that say nothing after all, as an edge of their triples is wrong."""
POWERS = (1.0, 0.6, 0.35, 0.2)
"""Of the odds, one for each walk: the lower, the easier columns pass others that the colliders hold in place."""
WARMING, DRAWS, SWEEPS = 20, 75, 2
"""Draws that are thrown away, draws that count, and how often every column may move from one to the next."""
ARROW = 0.7
"""The mean of both from which on an edge of the best-f1 graph is an arrow."""
SETS = 0.5
"""What separating sets count in that mean."""

# Whether directions can be read.

SEEN = 0.5
"""Log evidence from which on a pair counts as dependent: less than that is common among independent ones."""
WEAK_EFFECT = 0.02
"""A size of effects that no search looks for: hidden causes of many columns leave it behind."""
DENSE = 2.0
CROWDED, FEWEST = 0.65, 6
"""Nor if a graph has so many edges a column, or of FEWEST columns and more an edge for so many of its pairs: then the
edges themselves are what hidden causes leave behind."""
NOISY = 0.12
"""Where no smaller correlation than this can be seen, nothing shows whether directions can be read."""
STRAIGHT = 4
"""Directions rest on so many coordinates of a pair at most: curved features are for links that bend."""

# Hidden causes.

SLOPE = 0.4
SHIFT = 0.6
MOST_COLLIDER = 3.0
"""The log odds of a collider are SLOPE times the log evidence plus SHIFT, at most MOST_COLLIDER either way: fitted on
random worlds. Evidence knows noise and sampling, not whether its edges are right, and a collider may leave nothing to
see of the dependence it makes."""
MORE = 1.2
"""Log odds of an edge beside those of a search for a DAG: a hidden cause joins all its children."""
LEAST_TO_JOIN = 0.3
"""Log evidence below which nothing is joined, however likely edges are in a small table."""
CROWD = 2
OF_CROWD = 2.0
"""Of two columns with more common neighbours than CROWD each further one is worth so much log evidence of an edge: a
hidden cause joins all its children."""
WEAKEST = 0.01
"""Size of an effect that joins two columns, if all terms were released: a search for a DAG forgives as much."""
LACKING = -1.4
"""Log evidence of a collider, at the least, if its causes do not depend on each other in another way at other levels
of it: causes that only add up leave nothing of that to see."""
ENOUGH = 5.0
"""Log evidence of a dependence on average above which no other way to depend is looked for: that costs time."""
DRAWS_OF_MARKS = 40
RIGHT = 0.95
OPEN = 0.4
"""How often a mark that the rules give is right, and how much of the draws that leave a circle either mark gets: fitted
on random worlds."""
