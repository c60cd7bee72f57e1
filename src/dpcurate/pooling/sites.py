"""The sites of a pool: who they are, what they are asked, and whether their tables can be one study's."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

from dpcurate._messages import shown
from dpcurate.accounting import Budget
from dpcurate.errors import DecodeError, DpcurateError, QueryError, SchemaError
from dpcurate.pooling.codebook import Codebook
from dpcurate.pooling.site_owner import SiteOwner, study_of
from dpcurate.private.ledger import LoggedRun, RunFacts
from dpcurate.private.preview import check_answer
from dpcurate.queries import Answer, Offering, Queryable, Release, Statistic
from dpcurate.queries.query import MOST_SITES
from dpcurate.schema import OWN, Categorical, Column, Numeric, Schema
from dpcurate.study.run_keeper import RunKeeper, keeper_of
from dpcurate.study.study import Study


@dataclass
class Site:
    """One site: its name, what answers there, and how it calls the study's columns."""

    name: str
    queryable: Queryable
    codebook: Codebook
    replayed: Queryable | None = None
    """Stored answers, in place of a run that this site has finished already."""
    _known: set[Statistic] = field(default_factory=set)

    @property
    def keeper(self) -> RunKeeper | None:
        """What keeps its runs, if something does."""
        keeper = keeper_of(self.queryable)
        return keeper if keeper is not None and keeper.keeps_runs else None

    @property
    def schema(self) -> Schema:
        """Its schema with the study's names."""
        return self.codebook.to_study(self.queryable.schema)

    @property
    def remaining(self) -> float:
        """What the site has left."""
        return (self.replayed or self.queryable).remaining

    def check(self, release: Release) -> None:
        """Refuse what the site would refuse; free, and remembered."""
        if release.statistic not in self._known:
            with self.named():
                self.queryable.sensitivity(self.codebook.to_site(release).statistic)
            if len(self._known) < 10_000:
                self._known.add(release.statistic)

    def ask_all(self, releases: Sequence[Release]) -> list[Answer]:
        """Its answers, each of the shape and the noise that the release has at this site."""
        asked = [self.codebook.to_site(one) for one in releases]
        with self.named():
            found = (self.replayed or self.queryable).ask_all(asked)
            if len(found) != len(asked):
                raise DecodeError(f"{len(asked)} questions got {len(found)} answers")
            for query, answer in zip(asked, found, strict=True):
                check_answer(query, answer, self.queryable.schema, self.queryable.neighbours)
        return found

    def offers(self, columns: tuple[str, ...]) -> bool:
        """Whether the site can be asked for this set of columns; it can, unless it has stored answers alone."""
        own = tuple(map(self.codebook.name_of, columns))
        return not isinstance(self.queryable, Offering) or bool(self.queryable.offered([own]))

    @contextmanager
    def named(self) -> Iterator[None]:
        """An error of the site says which site it is."""
        try:
            yield
        except DpcurateError as error:
            error.args = (f"site {self.name!r}: {error}", *error.args[1:])
            raise

    # --- runs ---------------------------------------------------------------------------------------------------------

    def command(self, command: str, generation: int) -> str:
        """The pool's command at this site; each time that all sites have finished it, the next run is another one."""
        return hashlib.sha256(f"{command} {generation} {self.name}".encode()).hexdigest()

    def runs(self, command: str, generation: int) -> list[LoggedRun]:
        """Its runs of this command, the oldest first; none where runs are not kept."""
        known = self.command(command, generation)
        return [run for run in self.keeper.log() if run.facts.command == known] if self.keeper else []

    def begun(self, facts: RunFacts, generation: int, share: float) -> AbstractContextManager[object]:
        """The site's part of a run: begun, resumed, or read again if the site has finished it."""
        if self.keeper is None:
            return _nothing() if isinstance(self.queryable, Offering) else self.queryable.reserve(share)
        finished = [run for run in self.runs(facts.command, generation) if run.finished]
        if finished:
            return self._again(finished[-1])
        own = replace(facts, command=self.command(facts.command, generation), schema=self.queryable.schema.hash)
        return self._checked(self.keeper.run(own, share=share))

    @contextmanager
    def _checked(self, run: AbstractContextManager[object]) -> Iterator[None]:
        with self.named():
            run.__enter__()
        try:
            yield
        except BaseException as error:
            run.__exit__(type(error), error, error.__traceback__)
            raise
        run.__exit__(None, None, None)

    @contextmanager
    def _again(self, run: LoggedRun) -> Iterator[None]:
        assert self.keeper is not None
        with self.named():
            self.replayed = self.keeper.stored(run.number)
        try:
            yield
        finally:
            self.replayed = None


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def opened(
    members: Sequence[Study | SiteOwner] | Mapping[str, Study] | Mapping[str, SiteOwner],
    maps: Mapping[str, Codebook] | None,
) -> tuple[tuple[Site, ...], tuple[Study, ...]]:
    """The sites of these studies, whose tables are opened now, and the studies."""
    given = members.items() if isinstance(members, Mapping) else [("", one) for one in members]
    listed = [(name, study_of(one)) for name, one in given]
    if not 1 <= len(listed) <= MOST_SITES:
        raise QueryError(f"a pool has 1 to {MOST_SITES} sites, got {len(listed)}")
    for _, study in listed:
        if not isinstance(study, Study):
            raise QueryError(f"a pool is made of studies (dpcurate.open, dpcurate.connect), got {shown(study)}")
    queryables = [study.opened() for _, study in listed]
    names = _names([name for name, _ in listed], queryables)
    unknown = sorted(set(maps or {}) - set(names))
    if unknown:
        raise QueryError(f"maps= names {shown(unknown[0])}, which is no site; the sites are {', '.join(names)}")
    books = [(maps or {}).get(name, Codebook()) for name in names]
    sites = tuple(Site(*one) for one in zip(names, queryables, books, strict=True))
    _check_apart(sites)
    return sites, tuple(study for _, study in listed)


def _names(given: Sequence[str], queryables: Sequence[Queryable]) -> list[str]:
    """As given, or the tables' names in their ledgers, or numbers."""
    if all(isinstance(name, str) and name for name in given):
        return list(given)
    keepers = [keeper_of(queryable) for queryable in queryables]
    tables = ["" if keeper is None else keeper.table for keeper in keepers]
    if all(tables) and len(set(tables)) == len(tables):
        return tables
    return [f"site {number}" for number in range(1, len(queryables) + 1)]


def _check_apart(sites: Sequence[Site]) -> None:
    """Refuse the same table twice, as far as that can be told without looking at rows."""
    for place, one in enumerate(sites):
        for other in sites[:place]:
            if one.queryable is other.queryable:
                raise QueryError(
                    f"sites {other.name!r} and {one.name!r} are one table, whose rows would be counted twice"
                )


def check_alike(sites: Sequence[Site]) -> Schema:
    """The study's schema, that of the first site; every other site must have it, or the difference is told."""
    first, *others = sites
    schema = first.schema
    for other in others:
        told = list(differences(schema, other.schema))
        if told:
            raise SchemaError(
                f"sites {first.name!r} and {other.name!r} describe their tables differently: {'; '.join(told)}. "
                "Use one schema for all sites, or map a site's columns and levels to it (docs/pooling.md)"
            )
    return schema


def differences(ours: Schema, theirs: Schema) -> Iterator[str]:
    """How two schemas differ, column by column; the order of columns and how files are written do not matter."""
    for name in ours.names:
        if name not in theirs.names:
            yield f"{name!r} is missing in the second"
        else:
            why = _differs(ours[name], theirs[name])
            if why:
                yield f"{name!r} {why}"
    for name in theirs.names:
        if name not in ours.names:
            yield f"{name!r} is missing in the first"


def _differs(one: Column, other: Column) -> str:
    if one.kind != other.kind:
        return f"is {one.kind} in the first and {other.kind} in the second"
    if isinstance(one, Numeric) and isinstance(other, Numeric):
        if not math.isclose(one.low, other.low, abs_tol=1e-12) or not math.isclose(one.high, other.high):
            first, second = (f"from {c.low:g} to {c.high:g}" for c in (one, other))
            return f"goes {first} in the first and {second} in the second"
        if one.size != other.size:
            return f"has {one.size} bins in the first and {other.size} in the second"
    if isinstance(one, Categorical) and isinstance(other, Categorical) and one.levels != other.levels:
        return f"has the levels {_listed(one.levels)} in the first and {_listed(other.levels)} in the second"
    if (one.missing == OWN) != (other.missing == OWN):
        return "has missing cells of its own at one site alone"
    return ""


def _listed(levels: Sequence[str]) -> str:
    more = ", ..." if len(levels) > 8 else ""
    return f"{', '.join(levels[:8])}{more}"


def smallest(sites: Sequence[Site]) -> Budget:
    """The budget of a pool: the smallest ceiling, at the smallest delta, in the one currency of all sites."""
    budgets = [site.queryable.budget for site in sites]
    if len({budget.pure for budget in budgets}) > 1:
        told = ", ".join(f"{site.name}: {budget}" for site, budget in zip(sites, budgets, strict=True))
        raise QueryError(f"sites of a pool count in one currency: give all of them a delta, or none ({told})")
    first = budgets[0]
    if all(budget == first for budget in budgets):
        return first
    ceiling = min(float(budget.ceiling) for budget in budgets)
    if first.pure:
        return Budget(epsilon=ceiling, delta=0)
    return Budget(rho=ceiling, delta=min(float(budget.delta or 0) for budget in budgets))
