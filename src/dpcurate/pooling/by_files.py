"""A study without servers: a file goes to every site, every site's answer comes back, until there is a result.

The method runs on the answers that are there. When it asks for what nobody has answered yet, that becomes the next
round's file. Sites answer all rounds of a file at once; what they have answered before they read from their ledgers,
free, so no file is ever lost for good.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from dpcurate._messages import how_many, shown
from dpcurate.accounting import DELTA, Budget
from dpcurate.accounting.budget import SharedNoise
from dpcurate.errors import (
    BudgetExceeded,
    DecodeError,
    DpcurateError,
    FormatError,
    NotPrivate,
    QueryError,
    RefusedError,
    SchemaError,
)
from dpcurate.graphs.knowledge import GivenOrder, Knowledge
from dpcurate.learn import methods
from dpcurate.learn.methods import MeasureOnce, Method
from dpcurate.pooling.codebook import Codebook
from dpcurate.pooling.pooled import Pool, check_method, pooled_schema
from dpcurate.pooling.received import Received, ReceivedSets, same_numbers
from dpcurate.pooling.shared_noise import OwnedSite, SharedRounds
from dpcurate.pooling.site_owner import OWNERS_ALONE, SiteOwner, owner_of, study_of
from dpcurate.pooling.sites import Site, differences
from dpcurate.pooling.slices import Joint, SiteNetwork, joint, price_of
from dpcurate.pooling.study_file import MOST_ROUNDS, Request, SiteAnswer, StudyFile, loaded
from dpcurate.private import shared_round
from dpcurate.private.curator import Curator
from dpcurate.private.ledger import Ledger, LoggedRun, RunFacts
from dpcurate.private.ledger import path as ledger_path
from dpcurate.private.masking import Masked, Round, key_beside
from dpcurate.private.preview import describe
from dpcurate.queries import Answer, Query, Release, T, encoding
from dpcurate.result.discovery import Discovery
from dpcurate.schema import Neighbours, Schema
from dpcurate.schema.column_order import parsed_order
from dpcurate.study.run_budget import STUDY_RUN, login
from dpcurate.study.run_keeper import keeper_of
from dpcurate.study.study import Study

A = TypeVar("A")
ROUNDS: Mapping[str, int] = {"auto": 4, "measure-once": 4, "notears-moments": 2}
"""How often each method asks at most; others ask too often for files."""
HASH_DIGITS = 40
"""Of the hash of a study's keys: so many that nobody finds two lists of keys with one hash, 2^80 steps."""
_COMMAND = re.compile(r"[0-9a-f]{64}\Z")
"""A command of the owner; that of an analyst begins with the analyst's name."""
_LOGGED = re.compile(r"round (\d+) of study ([0-9a-f]{32}) as (.*)\Z", re.DOTALL)


# --- the coordinator: the first file ----------------------------------------------------------------------------------


def new_study(
    schema: Schema | str | Path | Mapping[str, Any],
    *,
    sites: Sequence[str],
    epsilon: float,
    delta: float = DELTA,
    method: str = "auto",
    settings: Sequence[str] = (),
    latent: bool = False,
    knowledge: Knowledge | str | Path | None = None,
    order: GivenOrder = None,
    column: str | None = "site",
    purpose: str = "",
    rounds: int | None = None,
    deadline: str = "",
    noise: str = "own",
    keys: Mapping[str, str] | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    colluding: int = 1,
    sites_per_person: int = 1,
) -> StudyFile:
    """The file of a new study, with the questions of its first round; reads no table and spends nothing.

    Args:
        schema: the public description that every site's table has.
        sites: a name for each site.
        epsilon: the most that the study may spend at each site.
        delta: the delta of that epsilon.
        method: a method made of few releases of sums; see `ROUNDS`.
        settings: settings of the method, such as "threshold=0.01".
        latent: whether common causes may be missing from the table.
        knowledge: forbidden and required edges, or the path of a file that lists them.
        order: what comes first, such as ``"sex, age | smoker | *"``, in place of the schema's order.
        column: the name of a column that says which site a row is from, at no cost; None leaves it out.
        purpose: what the study is for, for every site's log.
        rounds: how often sites are asked at most; 1 plans one release that serves as well as it can.
        deadline: the last day on which sites answer, as 2026-12-31 (UTC).
        noise: "own" (every site adds its own noise) or "shared" (each site adds a part of it, and only the sum of all
            sites can be read).
        keys: with shared noise, the public key of every site (`site_public_key`).
        neighbours: with shared noise, the relation of all sites; else each has its own.
        colluding: with shared noise, how many sites may pool what they know.
        sites_per_person: with shared noise, at how many sites one person may have rows.

    Returns:
        The file; `save` writes it.
    """
    from dpcurate import __version__

    facts = Schema.of(schema)
    if order is not None:
        facts = replace(facts, order=parsed_order(order) if isinstance(order, str) else order)  # type: ignore[arg-type]
    known = Knowledge.load(knowledge) if isinstance(knowledge, (str, Path)) else knowledge
    file = StudyFile(
        id=secrets.token_hex(16), schema=facts, sites=tuple(sites), epsilon=float(epsilon), delta=float(delta),
        method=method, settings=tuple(settings), latent=latent, knowledge="" if known is None else known.dumps(),
        column=column or "", purpose=purpose, rounds=_rounds(method, rounds), deadline=deadline, noise=noise,
        keys=tuple(sorted((keys or {}).items())), version=__version__, neighbours=Neighbours.of(neighbours),
        colluding=colluding, sites_per_person=sites_per_person,
    )  # fmt: skip
    asked = _continued(file, dict.fromkeys(file.sites))
    assert isinstance(asked, StudyFile)
    return asked


def _rounds(method: str, rounds: int | None) -> int:
    """As many as the method may need, or one: what a method asks in between cannot be known."""
    check_method(method)
    if method not in ROUNDS:
        raise QueryError(
            f"{method} asks too often to be answered by files; these can be: {', '.join(ROUNDS)}. Or pool servers "
            "(dpcurate.connect)"
        )
    needed = ROUNDS[method]
    if rounds is None:
        return needed
    if rounds != 1 and not needed <= rounds <= MOST_ROUNDS:
        raise QueryError(f"{method} takes up to {needed} rounds: give rounds={needed}, or 1 for one planned release")
    return rounds


def _recipe(file: StudyFile) -> str | Method:
    """The study's method: its name where nothing is set."""
    recipe: Any = methods.with_settings(methods.get(file.method, latent=file.latent), file.settings)
    if file.rounds == 1 and isinstance(recipe, MeasureOnce):
        recipe = replace(recipe, releases="planned")
    return file.method if recipe == methods.get(file.method) else recipe


class _NextRound(DpcurateError):
    """The method asks for what nobody has answered yet."""

    def __init__(self, request: Request) -> None:
        super().__init__("this round is not answered yet")
        self.request = request


class _FileRounds(SharedRounds):
    """Rounds of shared noise that sites have answered in files."""

    answers: Mapping[str, SiteAnswer | None]
    file: StudyFile

    @classmethod
    def of_file(cls, file: StudyFile, sites: tuple[Site, ...], answers: Mapping[str, SiteAnswer | None]) -> _FileRounds:
        column = file.column or None
        schema = pooled_schema(file.schema, [file.schema] * len(sites), file.sites, column)
        trust = SharedNoise(len(sites), file.colluding, file.sites_per_person)
        found = cls(sites, schema, column, file.neighbours, trust)
        found.file, found.answers = file, answers
        found.begin(None)
        return found

    def begin(self, study: str | None) -> None:
        super().begin(self.file.terms)

    def _keys(self) -> Sequence[str]:
        keys = dict(self.file.keys)
        return [keys[name] for name in self.file.sites]

    def _said(self, shared: Sequence[Release], turn: Round) -> list[Masked]:
        events = [part.event for part in shared_round.parts_of(shared, self.schema, self.neighbours)]
        said = []
        for site in self.sites:
            answer = self.answers[site.name]
            assert answer is not None
            with _named(site.name):
                said.append(answer.masked[turn.number])
                if said[-1].place != len(said) - 1:
                    raise DecodeError("this is another site's part of the round")
            assert isinstance(site.queryable, Received)
            site.queryable.charge(events)
        return said


class _Rounds(Pool):
    """Sites that have answered in files: rounds are given again in order, and the first new one is held up."""

    def __init__(self, file: StudyFile, sites: Sequence[Site], answers: Mapping[str, SiteAnswer | None]) -> None:
        super().__init__(sites, file.column or None)
        self._waiting = list(file.requests)
        if file.noise == "shared":
            self._rounds = _FileRounds.of_file(file, self.sites, answers)

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        asked = tuple(queries)
        if not self._waiting:
            for query in asked:
                joint(query, self._network) if self._rounds is None else self._rounds.check(query)
            raise _NextRound(asked)  # type: ignore[arg-type]
        if asked != self._waiting.pop(0):
            raise QueryError(
                "the method now asks for something else than it did when this round was asked for: combine the answers "
                "with the version of dpcurate that made the study, on one kind of machine"
            )
        return super().ask_all(queries)


class _Remaining(Pool):
    """Sites that have answered in files, without those that went away: what is there is used, nothing new is asked."""

    def __init__(self, file: StudyFile, sites: Sequence[Site]) -> None:
        super().__init__(sites, file.column or None)

    def _asked(self, site: Site, place: int, joints: Sequence[Joint]) -> list[Sequence[Answer]]:
        """Answers that were checked against what they were asked, which is not what is asked now."""
        with site.named():
            return [site.queryable.ask_all(list(one.asked(place))) for one in joints]


def _ended(file: StudyFile, answers: Mapping[str, SiteAnswer]) -> Discovery:
    """The method on what the sites that are left have answered."""
    sites = []
    for name, answer in answers.items():
        with _named(name):
            sites.append(Site(name, ReceivedSets(file, answer), Codebook()))
    keeper = _Remaining(file, sites)
    study = Study.over(keeper)
    study.take_context(study.inputs, () if keeper.site is None else (keeper.site,))
    return study.discover(method=_recipe(file), knowledge=file.known, purpose=file.purpose)


def _continued(file: StudyFile, answers: Mapping[str, SiteAnswer | None]) -> StudyFile | Discovery:
    """The method on the answers of all sites: its result, or the file of the next round."""
    sites = []
    for name in file.sites:
        with _named(name):
            sites.append(Site(name, Received(file, answers[name]), Codebook()))
    keeper = _Rounds(file, sites, answers)
    study = Study.over(keeper)
    study.take_context(study.inputs, () if keeper.site is None else (keeper.site,))
    try:
        return study.discover(method=_recipe(file), knowledge=file.known, purpose=file.purpose)
    except _NextRound as held:
        if file.round == file.rounds:
            raise QueryError(
                f"the method asks for more than the {how_many(file.rounds, 'round')} of the study"
            ) from None
        return file.asking(held.request)


class _named:
    """An error about a site says which site it is."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, DpcurateError):
            error.args = (f"site {self._name!r}: {error}", *error.args[1:])


# --- a site: what it is asked, what that costs, and its answer --------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPreview:
    """What answering a file will spend and release at a site; printed in words."""

    file: StudyFile
    site: str
    stored: int
    """How many rounds the site has answered, or at least paid for, before: these are free."""
    asked: tuple[tuple[Release, ...], ...]
    """What it is asked in each round."""
    cost: float
    """In the budget's currency."""
    left: float
    """What the site's ledger has left."""
    budget: Budget

    @property
    def epsilon(self) -> float:
        """What it costs, by itself, at the delta of the site's ledger."""
        return self.budget.as_epsilon(self.cost)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        file, currency = self.file, self.budget.currency
        yield f"study {file.id[:12]}, round {file.round} of at most {file.rounds}, for site {shown(self.site)}"
        yield f"  purpose {file.purpose or '-'}"
        yield f"  method  {file.method}, by {how_many(len(file.sites), 'site')}: {', '.join(map(shown, file.sites))}"
        if file.noise == "shared":
            yield f"  noise   {SharedNoise(len(file.sites), file.colluding, file.sites_per_person)}"
            yield f"  keys    {_keys_hash(file)}: compare this with the other sites before you answer"
        for number, releases in enumerate(self.asked, 1):
            what = "; ".join(dict.fromkeys(describe(one.statistic) for one in releases))
            cost = self.budget.as_epsilon(_cost(releases, self.budget))
            paid = "answered before, free" if number <= self.stored else f"costs epsilon = {cost:.4g}"
            how = "masked, so that only the sum of all sites can be read" if file.noise == "shared" else "noised"
            yield f"  round {number} releases {what}, {how}: {paid}"
        yield f"  spends  epsilon = {self.epsilon:.4g} ({currency} = {self.cost:.4g} of the {self.left:.4g} left)"
        yield f"  in all the study may spend epsilon = {file.epsilon:g} at delta = {file.delta:.3g} here"


def preview_answer(
    file: StudyFile, site: str, study: Study | SiteOwner, *, codebook: Codebook | None = None
) -> AnswerPreview:
    """What answering will spend and release, before a row is read; whatever can be refused is refused here.

    Raises:
        RefusedError: it is too late, the file was altered, or the ledger has answered as another site.
        BudgetExceeded: the site's ledger has less left than the round costs.
        SchemaError: the site's table is described differently.
    """
    study = study_of(study)
    if site not in file.sites:
        raise QueryError(f"{shown(site)} is no site of this study; its sites are {', '.join(map(shown, file.sites))}")
    told = list(differences(file.schema, (codebook or Codebook()).to_study(study.schema)))
    if told:
        raise SchemaError(f"the study (first) and this table (second) are described differently: {'; '.join(told)}")
    budget, keeps = _budget(study, file)
    if not keeps:
        raise RefusedError(
            "a study is answered with a ledger in a file, which stores the answers: asked again, they have to be the "
            "same. Nothing was read or spent"
        )
    if budget.pure != file.budget.pure:
        raise QueryError(f"the study counts in {file.budget.currency}, and this ledger in {budget.currency}")
    if file.noise == "shared":
        _check_shared(file, site, study)
    asked, commands = _asked(file, site), _commands(file, site)
    stored = _stored(file, site, commands, study.log)
    if file.late and stored < file.round:
        raise RefusedError(f"the study ended on {file.deadline}; nothing was read or spent")
    if _cost([one for releases in asked for one in releases], budget) > float(file.budget.ceiling) * (1 + 1e-9):
        raise RefusedError(
            f"this file asks for more than the epsilon = {file.epsilon:g} that it states; nothing was read or spent"
        )
    cost = _cost([one for releases in asked[stored:] for one in releases], budget)
    if cost > study.remaining * (1 + 1e-9):
        raise BudgetExceeded(
            f"round {file.round} costs {budget.currency} = {cost:.4g}, and {study.remaining:.4g} is left; nothing was "
            "read or spent"
        )
    return AnswerPreview(
        file=file, site=site, stored=stored, asked=asked, cost=cost, left=study.remaining, budget=budget
    )


def answer_study(
    file: StudyFile, site: str, study: Study | SiteOwner, *, codebook: Codebook | None = None, by: str | None = None
) -> SiteAnswer:
    """A site's answer to all rounds of a file; rounds that it has answered before are read from its ledger, free.

    Args:
        file: the study's newest file.
        site: which of its sites this is.
        study: this site's table, opened with a ledger in a file: a `Study`, or with shared noise the `SiteOwner`
            who has compared the file's keys with the other sites.
        codebook: what this site calls the study's columns and levels.
        by: who answers, for the log (default: the login name).

    Raises:
        RefusedError: see `preview_answer`; nothing was read and nothing was spent.
    """
    owner = owner_of(study) if file.noise == "shared" else None
    preview = preview_answer(file, site, study, codebook=codebook)
    asked = preview.asked
    own = Site(site, study_of(study).opened(), codebook or Codebook())
    keeper = own.queryable
    if not isinstance(keeper, Curator):
        raise QueryError("a study is answered from a table here (dpcurate.open with ledger=)")
    turns, owned = _turns(file), None
    if owner is not None:
        owned = OwnedSite(own, owner.opened())
        owned.approve([dict(file.keys)[name] for name in file.sites])
        for releases, turn in list(zip(asked, turns, strict=True))[preview.stored :]:
            owned.ready(releases, turn)
    else:
        for release in (release for releases in asked for release in releases):
            own.check(release)
    bodies = []
    for number, (releases, command) in enumerate(zip(asked, _commands(file, site), strict=True), 1):
        facts = RunFacts(
            command=command, method=STUDY_RUN, schema=own.queryable.schema.hash, by=login() if by is None else by,
            purpose=file.purpose, result=f"round {number} of study {file.id} as {site}",
        )  # fmt: skip
        if owned is None:
            bodies.append(encoding.encode(releases, _in_run(own, keeper, facts, partial(own.ask_all, releases))))
        else:
            part = _in_run(own, keeper, facts, partial(owned.masked, releases, turns[number - 1]))
            bodies.append(shared_round.stored(part))
    privacy = own.queryable.privacy()
    return SiteAnswer(
        study=file.id, file=file.hash, site=site, table=keeper.table, neighbours=own.queryable.neighbours,
        budget=privacy.budget, spent=privacy.spent, bodies=tuple(bodies),
    )  # fmt: skip


def site_public_key(ledger: str | Path) -> str:
    """The public key of the site whose ledger is at this path, or will be; its secret is made if there is none.

    Returns:
        64 hexadecimal digits, for `new_study(..., noise="shared", keys=...)`. The secret stays in the file
        `LEDGER-site-key`, which only its owner may read.
    """
    path = ledger_path.real(ledger)
    return key_beside(path).public


def _turns(file: StudyFile) -> list[Round]:
    """The rounds of a study with shared noise; none where every site adds its own."""
    if file.noise != "shared":
        return []
    rounds = _FileRounds.of_file(file, _named_sites(file), {})
    return [rounds.turn(list(map(rounds.shared, request)), number) for number, request in enumerate(file.requests)]


def _named_sites(file: StudyFile) -> tuple[Site, ...]:
    return tuple(Site(name, Received(file, None), Codebook()) for name in file.sites)


def _in_run(own: Site, keeper: Curator, facts: RunFacts, ask: Callable[[], A]) -> A:
    """One round, as a run of its own: read again if it has finished, resumed if it was stopped."""
    finished = [run for run in keeper.log() if run.facts.command == facts.command and run.finished and run.answers]
    if finished:
        own.replayed = keeper.stored(finished[-1].number)
        try:
            return ask()
        finally:
            own.replayed = None
    with keeper.run(facts):
        _check_alone(keeper, facts.command)
        return ask()


def _check_alone(keeper: Curator, command: str) -> None:
    """Refuse while another process answers the same round, or has since: it would be paid twice."""
    mine = keeper.running
    assert mine is not None
    for run in keeper.log():
        if run.facts.command == command and run.number < mine and (run.units or keeper.ledger.alive(run.number)):
            raise RefusedError("another process answers this round: wait for it, and use the same command again")


def _asked(file: StudyFile, site: str) -> tuple[tuple[Release, ...], ...]:
    """What a site is asked in each round."""
    names, place = file.sites, file.sites.index(site)
    column = file.column or None
    if file.noise == "shared":
        rounds = _FileRounds.of_file(file, _named_sites(file), {})
        return tuple(tuple(map(rounds.shared, request)) for request in file.requests)
    network = SiteNetwork(pooled_schema(file.schema, [file.schema] * len(names), names, column), column, len(names))
    return tuple(
        tuple(release for query in request for release in joint(query, network).asked(place))
        for request in file.requests
    )


def _cost(releases: Sequence[Release], budget: Budget) -> float:
    return math.fsum(price_of(one, pure=budget.pure) for one in releases)


def _commands(file: StudyFile, site: str) -> list[str]:
    """What makes each round the same again at this site: the terms of the study, and all that was asked up to it."""
    found, chain = [], file.terms
    for request in file.requests:
        plain = [encoding.to_plain(one) for one in request]
        chain = hashlib.sha256(json.dumps([chain, plain], separators=(",", ":")).encode()).hexdigest()
        found.append(hashlib.sha256(f"{chain} {site}".encode()).hexdigest())
    return found


def _stored(file: StudyFile, site: str, commands: Sequence[str], log: Sequence[LoggedRun]) -> int:
    """How many rounds this ledger has paid for; one that has paid for something else in their place refuses."""
    paid: set[int] = set()
    for run in log:
        logged = _LOGGED.match(run.facts.result) if run.facts.method == STUDY_RUN else None
        if logged is None or logged[2] != file.id or not run.units:
            continue
        if not _COMMAND.match(run.facts.command):  # over a service an analyst may give a run any name
            continue
        number, other = int(logged[1]), logged[3]
        if other != site:
            raise RefusedError(
                f"this ledger has answered the study as site {shown(other)}: its rows would be counted twice"
            )
        if number > file.round:
            raise RefusedError(f"this ledger has answered round {number} already: use the study's newest file")
        if run.facts.command != commands[number - 1]:
            raise RefusedError(
                f"this file was altered: round {number} of the study was answered under other terms or to other "
                "questions. Nothing was read or spent"
            )
        paid.add(number)
    return next(n for n in range(file.round + 1) if n + 1 not in paid)


def _budget(study: Study, file: StudyFile) -> tuple[Budget, bool]:
    """The ceiling of the site's ledger, and whether it is kept in a file; a new one has the study's."""
    privacy = study.privacy()
    kept = Ledger.open(study.ledger) if study.ledger is not None and Ledger.exists(study.ledger) else None
    if (privacy is not None and not privacy.private) or (kept is not None and not kept.private):
        raise NotPrivate("exact, unproved or seeded releases took part in this ledger, so its answers promise nothing")
    if privacy is not None:
        keeper = keeper_of(study.opened())
        return privacy.budget, keeper is not None and keeper.keeps_runs
    return (file.budget, study.ledger is not None) if kept is None else (kept.budget, True)


def _check_shared(file: StudyFile, site: str, study: Study) -> None:
    """Refuse what a round of shared noise would refuse, as far as it is known before the table is opened."""
    if study.ledger is None:
        raise QueryError(OWNERS_ALONE)
    if site_public_key(study.ledger) != dict(file.keys)[site]:
        raise RefusedError(
            f"the study has another public key for site {shown(site)} than this ledger's: it was made with another "
            "ledger, or somebody else's key stands under this site's name. Nothing was read or spent"
        )


def _keys_hash(file: StudyFile) -> str:
    """What sites compare with each other before they answer."""
    digits = hashlib.sha256(json.dumps(list(file.keys)).encode()).hexdigest()[:HASH_DIGITS]
    return " ".join(digits[at : at + 8] for at in range(0, HASH_DIGITS, 8))


def describe_file(path: str | Path) -> Iterator[str]:
    """What a study's file asks for, or a site's file answers, in lines of text."""
    read = loaded(path)
    if isinstance(read, StudyFile):
        yield f"study {read.id}, round {read.round} of at most {read.rounds}"
        yield f"purpose {read.purpose or '-'}"
        yield f"may spend epsilon = {read.epsilon:g} at delta = {read.delta:.3g} at each site; noise: {read.noise}"
        yield f"sites   {', '.join(map(shown, read.sites))}"
        if read.noise == "shared":
            yield f"keys    {_keys_hash(read)}"
        yield f"method  {read.method}; deadline: {read.deadline or 'none'}; hash: {read.hash[:16]}"
        for number, request in enumerate(read.requests, 1):
            for one in request:
                cost = read.budget.as_epsilon(_cost([one], read.budget))
                yield f"round {number} {describe(one.statistic)} at epsilon = {cost:.4g}"
        return
    yield f"answer of site {shown(read.site)} to round {read.round} of study {read.study}"
    yield f"ledger  {shown(read.table)}: {read.budget} ({read.neighbours.value})"
    if read.shares_noise:
        for number, part in enumerate(read.masked, 1):
            yield f"round {number} {how_many(len(part.words), 'masked number')}, which say nothing without all sites"
        return
    for number, answered in enumerate(read.rounds, 1):
        for release, answer in answered:
            numbers = sum(part.size for part in answer.parts)
            noise = f"noise of {min(answer.scales):.4g} to {max(answer.scales):.4g}"
            yield f"round {number} {describe(release.statistic)}: {how_many(numbers, 'noised number')}, {noise}"


# --- the coordinator: the next file, or the result --------------------------------------------------------------------


def combine_study(
    file: StudyFile, answers: Sequence[SiteAnswer], *, without: Sequence[str] = ()
) -> StudyFile | Discovery:
    """The next round's file, or the result, from the answers of all sites; free, and as often as you like.

    Args:
        file: the study's newest file.
        answers: what every site has answered to it.
        without: sites that have gone away. The study then ends: its result is what the others have answered so far.

    Raises:
        FormatError: an answer is missing, of another study, of another round, or of no site.
        DecodeError: an answer is none that any table gives to what was asked; the message names the site.
    """
    found: dict[str, SiteAnswer] = {}
    for one in answers:
        _check_belongs(file, one)
        known = found.setdefault(one.site, one)
        if known != one:
            raise FormatError(f"site {shown(one.site)} has answered twice, and the answers differ: keep the right one")
    missing = [name for name in file.sites if name not in found and name not in without]
    if missing:
        raise FormatError(f"round {file.round} is not answered by {', '.join(map(shown, missing))} yet")
    _check_apart(list(found.values()))
    if not without:
        return _continued(file, found)
    if file.noise == "shared":
        raise FormatError(
            "with shared noise a round without one of its sites is void: nothing of it can be read. Begin a new study "
            "with the sites that are left"
        )
    unknown = sorted(set(without) - set(file.sites))
    if unknown:
        raise FormatError(f"{shown(unknown[0])} is no site of this study")
    left = {name: found[name] for name in file.sites if name not in without}
    if not left:
        raise FormatError("no site is left")
    return _ended(file, left)


def _check_belongs(file: StudyFile, answer: SiteAnswer) -> None:
    if answer.shares_noise is not (file.noise == "shared") and answer.study == file.id:
        raise FormatError(f"the answer of site {shown(answer.site)} has other noise than the study: {file.noise}")
    if answer.study != file.id:
        raise FormatError(f"the answer of site {shown(answer.site)} is of another study")
    if answer.site not in file.sites:
        raise FormatError(f"{shown(answer.site)} is no site of this study")
    if answer.round != file.round:
        raise FormatError(
            f"site {shown(answer.site)} answers round {answer.round}, and this is the file of round {file.round}"
        )
    if answer.file != file.hash:
        raise FormatError(f"site {shown(answer.site)} has answered another file of this study: one of them was altered")


def _check_apart(answers: Sequence[SiteAnswer]) -> None:
    for one in answers:
        with _named(one.site):
            if one.shares_noise:
                _ = one.masked
                continue
            _ = one.rounds
    for place, one in enumerate(answers):
        for other in answers[:place]:
            with _named(one.site):
                if not one.shares_noise and same_numbers(one, other):
                    raise DecodeError(f"it sent the same numbers as site {other.site!r}, which cannot be by chance")
