"""Several sites as one queryable that keeps runs, so that a `Study` works on them as on one table."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Literal, cast

from dpcurate._files import Inputs
from dpcurate._messages import shown
from dpcurate.accounting import Budget, Privacy
from dpcurate.accounting.budget import SitePrivacy
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError, NotPrivate, QueryError
from dpcurate.learn import methods
from dpcurate.pooling.codebook import Codebook
from dpcurate.pooling.received import Received
from dpcurate.pooling.shared_noise import SharedRounds, rounds
from dpcurate.pooling.site_owner import SiteOwner, owner_of
from dpcurate.pooling.sites import Site, check_alike, opened, smallest
from dpcurate.pooling.slices import Joint, SiteNetwork, joint, price_of
from dpcurate.private.ledger import LoggedRun, RunFacts
from dpcurate.private.origin import TableOrigin
from dpcurate.private.preview import named
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import Answer, Gate, Laplace, Query, Release, Statistic, T
from dpcurate.schema import Categorical, Neighbours, Person, Schema
from dpcurate.study.study import Study


def pool(
    studies: Sequence[Study | SiteOwner] | Mapping[str, Study] | Mapping[str, SiteOwner],
    *,
    site: str | None = "site",
    maps: Mapping[str, Codebook] | None = None,
    noise: Literal["own", "shared"] = "own",
    colluding: int = 1,
    sites_per_person: int = 1,
) -> Study:
    """Several sites as one study: noised answers are added up, and no row leaves a site.

    Each site's ledger is charged before it reads, and its promise is its own. A run that is stopped anywhere is resumed
    by the same call, which never pays twice: ledgers in files store the answers.

    Args:
        studies: one for each site, of a table here (`open`), on a server, or of stored answers (`reopen`); a mapping
            names the sites. Their schemas must agree. With shared noise, each is a `SiteOwner`.
        site: the name of a column that says which site a row is from. It comes before all others, costs nothing, and
            its edges say what differs between sites. None leaves it out.
        maps: what sites call the study's columns, by site.
        noise: "own" (every site adds its own noise, and trusts nobody) or "shared" (every site adds a part of the noise
            and a mask, and only the sum of all sites is seen, with as much noise as one table's).
        colluding: with shared noise, how many sites may pool what they know with whoever asks.
        sites_per_person: with shared noise, at how many of the sites one person may have rows.

    Returns:
        A study; `remaining` is the smallest of the sites'. Methods made of releases of sums work on it.

    Raises:
        SchemaError: the sites' schemas differ; the message names every difference.
        QueryError: shared noise of fewer than 3 sites, of studies that are not in their owners' hands, or of sites that
            do not protect the same.

    Example:
        >>> sites = {name: dpcurate.open(table, schema, epsilon=1) for name, table in tables.items()}
        >>> found = dpcurate.pool(sites).discover()
    """
    if noise not in ("own", "shared"):
        raise QueryError(f"noise must be 'own' or 'shared', got {shown(noise)}")
    owners: list[SiteOwner] = []
    if noise == "shared":
        given = studies.values() if isinstance(studies, Mapping) else studies
        owners = [owner_of(one) for one in given]
    sites, members = opened(studies, maps)
    keeper = Pool(sites, site if len(sites) > 1 else None)
    if noise == "shared":
        keeper.share_noise(owners, colluding=colluding, sites_per_person=sites_per_person)
    study = Study.over(keeper)
    inputs = tuple(one for member in members for one in member.inputs.files)
    study.take_context(Inputs(inputs), () if keeper.site is None else (keeper.site,))
    return study


class Pool:
    """Sites as one queryable: one query to all, their answers as one. Made by `pool`."""

    def __init__(self, sites: Sequence[Site], site: str | None) -> None:
        self.sites = tuple(sites)
        schema = check_alike(self.sites)
        if site in schema.names:
            raise QueryError(
                f"the column {shown(site)} is in the tables already: give the column that names the site another name, "
                "such as site='hospital', or none (site=None)"
            )
        self.site = site
        self._budget = smallest(self.sites)
        names = [one.name for one in self.sites]
        self._schema = pooled_schema(schema, [one.queryable.schema for one in self.sites], names, site)
        self._network = SiteNetwork(self._schema, site, len(self.sites))
        self._running: int | None = None
        self._rounds: SharedRounds | None = None

    def share_noise(self, owners: Sequence[SiteOwner], *, colluding: int, sites_per_person: int) -> None:
        """From now on the sites of these owners share the noise of what they are asked."""
        self._rounds = rounds(
            self.sites, owners, self._schema, self.site, colluding=colluding, sites_per_person=sites_per_person
        )

    @property
    def schema(self) -> Schema:
        """The sites' schema, with the site column."""
        return self._schema

    @property
    def neighbours(self) -> Neighbours:
        """The relation of every site, or add-remove where they differ; each site's promise names its own."""
        relations = {one.queryable.neighbours for one in self.sites}
        return relations.pop() if len(relations) == 1 else Neighbours.ADD_REMOVE

    @property
    def budget(self) -> Budget:
        """The smallest of the sites' ceilings."""
        return self._budget

    @property
    def remaining(self) -> float:
        """The smallest of what the sites have left."""
        return min(site.remaining for site in self.sites)

    # --- questions ----------------------------------------------------------------------------------------------------

    def ask(self, query: Query[T]) -> T:
        """The pooled answer to a release."""
        return self.ask_all([query])[0]

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """Pooled answers: checked at every site, then asked of one after the other."""
        if self._rounds is not None:
            shared = [self._rounds.check(query) for query in queries]
            self._check_price(shared)
            return cast(list[T], self._rounds.ask_all(queries))
        joints = [joint(query, self._network) for query in queries]
        releases = [query for query in queries if isinstance(query, Release)]
        self._check(releases, joints)
        answers = [self._asked(site, place, joints) for place, site in enumerate(self.sites)]
        found = [one.joined([of_site[i] for of_site in answers]) for i, one in enumerate(joints)]
        return [named(query, answer, self._schema) for query, answer in zip(queries, found, strict=True)]

    def _check(self, releases: Sequence[Release], joints: Sequence[Joint]) -> None:
        """Refuse, before any site pays, what one of them would refuse."""
        for place, site in enumerate(self.sites):
            for one in joints:
                for release in one.asked(place):
                    site.check(release)
        self._check_price(releases)

    def _check_price(self, releases: Sequence[Release]) -> None:
        price = math.fsum(price_of(release, pure=self.budget.pure) for release in releases)
        for site in self.sites:
            if price > site.remaining * (1 + 1e-9):
                raise BudgetExceeded(
                    f"site {site.name!r} has {self.budget.currency} = {site.remaining:.4g} left, and this costs "
                    f"{price:.4g} at every site; no site was asked"
                )

    def _asked(self, site: Site, place: int, joints: Sequence[Joint]) -> list[Sequence[Answer]]:
        """One site's answers, by query."""
        groups = [one.asked(place) for one in joints]
        answers = iter(site.ask_all([release for group in groups for release in group]))
        return [[next(answers) for _ in group] for group in groups]

    def offered(self, sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Those of the sets that every site can be asked for: of a table all, of stored answers what is stored."""
        own = {one: tuple(name for name in one if name != self.site) for one in sets}
        return [one for one in sets if all(site.offers(own[one]) for site in self.sites)]

    def open(self, gate: Gate[T]) -> T:
        """Refused: a gate's secret is one table's."""
        raise QueryError(
            f"{type(gate).__name__} is an open mechanism on the rows of one table, which several sites cannot share: "
            "use a method made of releases, such as 'auto'"
        )

    def reserve(self, amount: float) -> AbstractContextManager[object]:
        """Set the amount aside at every site."""
        with ExitStack() as entered:
            for site in self.sites:
                with site.named():
                    entered.enter_context((site.replayed or site.queryable).reserve(amount))
            return entered.pop_all()

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic (L1), at the site where that is most."""
        if self._rounds is not None:
            return self._rounds.sensitivity(statistic)
        one = joint(Release(statistic, Laplace(epsilon=1.0)), self._network)
        return max(
            site.queryable.sensitivity(site.codebook.to_site(release).statistic)
            for place, site in enumerate(self.sites)
            for release in one.asked(place)
        )

    def draw(self) -> float:
        """A fresh public random number in [0, 1)."""
        return secrets.randbelow(1 << 53) / (1 << 53)

    def privacy(self) -> Privacy:
        """Every site's own promise; in the first line the weakest of them."""
        stated = [SitePrivacy(site.name, _ledger(site), site.queryable.privacy()) for site in self.sites]
        weakest = max((one.privacy for one in stated), key=lambda p: (not p.private, float(p.budget.epsilon or 0)))
        runs = [one.privacy.run for one in stated if one.privacy.run is not None]
        relations = {one.privacy.neighbours for one in stated}
        return replace(
            weakest,
            neighbours=weakest.neighbours if len(relations) == 1 else " or ".join(sorted(relations)),
            private=all(one.privacy.private for one in stated),
            run=max(runs, default=None),
            sites=tuple(stated),
            shared=None if self._rounds is None else self._rounds.trust,
        )

    # --- runs: study/run_keeper.py ------------------------------------------------------------------------------------

    @property
    def keeps_runs(self) -> bool:
        """Always: where a site keeps none, its part of a run is reserved and no more."""
        return True

    @property
    def running(self) -> int | None:
        """The number of the run under way, as the first site that keeps runs counts it."""
        return self._running

    @property
    def table(self) -> str:
        """The names of the sites."""
        return " + ".join(site.name for site in self.sites)

    @property
    def analyst(self) -> str | None:
        """Who asks is said by the caller; a server logs the owner of the token."""
        return None

    @property
    def origin(self) -> TableOrigin:
        """Of no one table."""
        return TableOrigin()

    @property
    def passes(self) -> int:
        """How often the site that was read most was read."""
        return max((site.keeper.passes for site in self.sites if site.keeper is not None), default=0)

    def log(self) -> tuple[LoggedRun, ...]:
        """The runs of all sites, site by site."""
        return tuple(run for site in self.sites if site.keeper is not None for run in site.keeper.log())

    def stopped(self, command: str) -> LoggedRun | None:
        """A site's stopped run that the same command would resume."""
        generation = self._generation(command)
        for site in self.sites:
            if site.keeper is not None:
                known = site.keeper.stopped(site.command(command, generation))
                if known is not None:
                    return known
        return None

    def stored(self, run: int | None = None, *, passing_over: tuple[str, ...] = ()) -> StoredAnswers:
        """Refused: each site has its own; pool them with `reopen`."""
        raise LedgerError(
            "the answers of a pool are stored at its sites: dpcurate.pool([dpcurate.reopen(ledger), ...]) reads them "
            "again, free"
        )

    @contextmanager
    def run(self, facts: RunFacts, *, share: float | None = None) -> Iterator[None]:
        """A run at every site, of one allowance; those that were stopped are resumed, those finished are read again."""
        check_method(facts.method)
        generation = self._generation(facts.command)
        allowance = self._allowance(facts.command, generation, share)
        with ExitStack() as stack:
            for site in self.sites:
                stack.enter_context(site.begun(facts, generation, allowance))
            numbers = [site.keeper.running for site in self.sites if site.keeper is not None and not site.replayed]
            if self._rounds is not None:
                durable = all(site.keeper is not None for site in self.sites)
                told = hashlib.sha256(f"{facts.command} {generation}".encode()).hexdigest()
                self._rounds.begin(told if durable else None)
            self._running = next((number for number in numbers if number is not None), None)
            try:
                yield
            finally:
                self._running = None
                if self._rounds is not None:
                    self._rounds.begin(None)

    def _generation(self, command: str) -> int:
        """How often all sites have finished this command: so a run that some have finished and some not goes on."""
        keeping = [site for site in self.sites if site.keeper is not None]
        generation = 0
        while keeping and all(any(r.finished for r in site.runs(command, generation)) for site in keeping):
            generation += 1
        return generation

    def _allowance(self, command: str, generation: int, share: float | None) -> float:
        """What the run may spend at every site: what it was allowed when it began, or the share, if all have it."""
        for site in self.sites:
            begun = [run.allowed for run in site.runs(command, generation) if run.allowed is not None and run.answers]
            if begun:
                return begun[-1]
        left = self.remaining
        if left <= 0:
            (empty, *_) = (site.name for site in self.sites if site.remaining <= 0)
            raise BudgetExceeded(f"nothing is left of the budget of site {empty!r}; no site was asked")
        if share is None:
            return left
        if not share > 0:
            raise BudgetError(f"a run's share must be an amount above 0, got {shown(share)}")
        return min(share, left)


def check_method(name: str) -> None:
    """Refuse a method that several sites cannot answer together, before any of them is asked."""
    known = methods.listed()
    entry = known.get(name) or next((e for e in known.values() if type(e.recipe).__name__ == name), None)
    if entry is None or entry.asks == "sums":
        return
    able = ", ".join(one for one, e in known.items() if e.asks == "sums")
    if not entry.private:
        raise NotPrivate(
            f"{entry.name} needs exact releases, which no site of a pool gives; these can be pooled: {able}"
        )
    raise QueryError(
        f"{entry.name} {ASKS[entry.asks]}, which several sites cannot answer together; no site was asked. These can be "
        f"pooled: {able}"
    )


ASKS = {
    "ranks": "counts pairs of rows, and rows of two sites make no pair at either",
    "choices": "has one table choose by private scores",
    "gates": "opens a gate on one table, whose secret several tables cannot share",
}
"""What else methods ask for than sums over rows, and why it does not add up."""


def _ledger(site: Site) -> str:
    """Where a site keeps its books, as far as that is public."""
    keeper = site.keeper
    if isinstance(site.queryable, Received):
        return site.queryable.table
    if keeper is None:
        return "stored answers" if isinstance(site.queryable, StoredAnswers) else "in memory"
    return keeper.table


def pooled_schema(schema: Schema, schemas: Sequence[Schema], names: Sequence[str], site: str | None) -> Schema:
    """The schema of all rows: the number of rows of all sites, and first the site column."""
    rows = [one.rows for one in schemas]
    total = sum(number for number in rows if number is not None) if None not in rows else None
    persons = [one.person for one in schemas if one.person is not None]
    person: Person | None = max(persons, key=lambda one: one.rows, default=None)
    whole = replace(schema, rows=total, person=person)
    if site is None:
        return whole
    return replace(whole, columns=(Categorical(site, tuple(names)), *schema.columns))
