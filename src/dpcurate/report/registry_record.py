"""A result as a record for the registry of differential privacy deployments (registry.opendp.org).

The record follows the registry's deployments-schema of 2026, up to its third and fullest tier. Everything that the
run itself knows is filled in; what only the publisher knows is an argument, and stays empty if it is not given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from dpcurate._messages import how_many, shown
from dpcurate.accounting import Event, Privacy
from dpcurate.errors import FormatError, NotPrivate
from dpcurate.schema import Numeric, Schema

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery

CURATOR_TYPES = ("Government", "Industry", "Nonprofit")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
MOST_NAMED = 30
"""Columns that are named; of more the first."""
_NEIGHBOURS = {
    "add-remove": "Two tables are adjacent if one of them is the other with exactly one {unit} added or removed "
    "(symmetric distance). The number of rows is protected.",
    "replace": "Two tables are adjacent if they differ in the data of exactly one {unit}. Since a changed row may be "
    "left out by a rule, every release costs the larger of a changed and a removed {unit}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """What only the publisher knows of a deployment; empty texts are left to fill in."""

    name: str = ""
    curator: str = ""
    curator_type: str = ""
    description: str = ""
    intended_use: str = ""
    region: str = ""
    sector: str = ""
    justification: str = ""
    authors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, known in (("curator_type", CURATOR_TYPES), ("sector", SECTORS)):
            value = getattr(self, field)
            if value and value not in known:
                raise FormatError(f"the registry knows as {field} {', '.join(known)}; got {shown(value)}")
        authors: Any = self.authors
        if isinstance(authors, str) or not isinstance(authors, Sequence):
            raise FormatError(f"authors is a list of names, got {shown(authors)}")
        object.__setattr__(self, "authors", tuple(authors))


def registry_record(found: Discovery, publisher: Publisher) -> dict[str, Any]:
    """The record as plain values; refused for a result that is NOT PRIVATE."""
    if not found.privacy.private:
        raise NotPrivate(
            "this result is NOT PRIVATE: the registry lists deployments of differential privacy, and this is none"
        )
    name = publisher.name or (found.run.table if found.run is not None else "")
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
        "deployment": {
            "basic": _basic(found, publisher, name),
            "dp_variant": _variant(found),
            "privacy_loss": _loss(found),
            "deployment_model": _model(found),
            "implementation": _implementation(found, publisher),
            "administrative": {
                "status": "Draft",
                "registry_authors": list(publisher.authors) or [found.run.by if found.run is not None else ""],
                "tier": 3,
            },
        },
    }


# --- its parts ----------------------------------------------------------------------------------------------


def _basic(found: Discovery, publisher: Publisher, name: str) -> dict[str, Any]:
    made = found.run
    about = f"A causal graph of {how_many(len(found.graph.nodes), 'column')} with probabilities of its edges"
    return {
        "name": name,
        "data_curators": [{"data_curator_name": publisher.curator, "data_curator_type": publisher.curator_type}],
        "description": publisher.description or f"{about}, learnt by the method {found.method} of dpcurate.",
        "intended_use": publisher.intended_use or (made.purpose if made is not None else ""),
        "data_product_type": "Summary statistics" if found.model is None else "Machine learning model",
        "data_product_region": publisher.region,
        "data_product_sector": publisher.sector,
        "publication_date": "" if made is None else made.at[: len("2026-01-01")],
    }


def _variant(found: Discovery) -> dict[str, Any]:
    return {
        "variant_name": "Pure DP" if found.privacy.budget.pure else "Zero-concentrated DP",
        "data_domain": _domain(found.schema),
        "unprotected_quantities": (
            "No statistic of the table is released without noise. Public inputs, which dpcurate requires to be chosen "
            "without looking at the table: the schema (levels, bounds, rules for missing cells, an approximate number "
            "of rows), background knowledge, the method and the budget. The number of passes over the table is public. "
            "The time that a run takes is not protected."
        ),
    }


def _domain(schema: Schema) -> str:
    names = [f"{column.name} ({_values(column)})" for column in schema.columns[:MOST_NAMED]]
    more = len(schema.columns) - len(names)
    return f"All tables with the columns {', '.join(names)}{f' and {more} others' if more else ''}."


def _values(column: Any) -> str:
    return f"{column.low:g} to {column.high:g}" if isinstance(column, Numeric) else how_many(column.size, "level")


def _unit(schema: Schema) -> str:
    return "row" if schema.person is None else "person"


def _loss(found: Discovery) -> dict[str, Any]:
    schema, privacy = found.schema, found.privacy
    unit, person = _unit(schema), schema.person
    who = "" if person is None else f" A person is a value of the column {person.column!r}, with {person.cap}."
    details = _NEIGHBOURS[privacy.neighbours].format(unit=unit)
    units = {"number_of_privacy_units": schema.rows} if person is None and schema.rows is not None else {}
    return {
        "privacy_unit": unit.capitalize(),
        "privacy_unit_details": f"{details}{who} The distance between adjacent tables is 1.",
        **units,
        "privacy_parameters": _parameters(privacy),
        "privacy_parameters_details": _parameters_told(privacy),
    }


def _parameters(privacy: Privacy) -> dict[str, float]:
    """The ceiling, which is the guarantee, in its own currency and as epsilon and delta."""
    budget = privacy.budget
    if budget.pure:
        return {"epsilon": float(budget.ceiling)}
    return {"rho": float(budget.ceiling), "epsilon": float(budget.epsilon or 0), "delta": privacy.delta}


def _parameters_told(privacy: Privacy) -> str:
    mine = f", {privacy.run_epsilon:.4g} of it by this run" if privacy.run_epsilon else ""
    converted = (
        ""
        if privacy.budget.pure
        else " The budget is kept in rho; epsilon is its tight conversion at this delta (Canonne et al. 2020)."
    )
    return (
        "The parameters are the ceiling for everything that is ever released about this table, which is the "
        f"guarantee.{converted} Spent so far: epsilon = {privacy.epsilon:.4g}{mine}; this is bookkeeping, not a "
        "smaller guarantee."
    )


def _model(found: Discovery) -> dict[str, Any]:
    many = found.run is not None and found.run.number is not None
    return {
        "model_name": "Central",
        "trust_assumptions": (
            "The curator who holds the table, the process that reads it and its operating system are trusted. Whoever "
            "reads the result, and the analyst who asks, are not: they may know everything but the protected data, and "
            "may choose each request after reading earlier answers."
        ),
        "actors": "The owner of the table (trusted), analysts (not trusted), readers of the result (not trusted).",
        "release_type": "Many releases" if many else "One release",
        "release_type_details": (
            "All runs on the table draw on one budget, kept in a ledger file. It is never renewed: when it is spent, "
            "every further request is refused."
            if many
            else "The budget was kept in memory and ended with the program."
        ),
        "data_source_type": "Static",
        "access_type": "Non-interactive",
        "access_type_details": "The result is published as it is. All analysts share one budget, so they may collude.",
    }


def _implementation(found: Discovery, publisher: Publisher) -> dict[str, Any]:
    privacy = found.privacy
    verdict = " ".join(line.strip() for line in found.verdict_lines)
    return {
        "preprocessing_and_hyperparameter_tuning": (
            "Cells are mapped to public levels, or clamped to public bounds, by rules of the public schema. Choices "
            "that depend on the data (what to measure next, clipping bounds) are made from released answers or by a "
            "charged mechanism. The constants of the method were set on simulated tables."
        ),
        "mechanisms": "\n".join(_mechanisms(found)),
        "composition": (
            f"A fully adaptive privacy filter in {'pure epsilon' if privacy.budget.pure else 'rho-zCDP'}: every "
            "request is charged, durably if there is a ledger, before a row is read, and is refused if it does not fit "
            "under the ceiling."
        ),
        "post_processing": (
            "The graph, its probabilities, thresholds, effects and verdicts are computed from released answers alone."
        ),
        "justification": publisher.justification,
        **({"utility": verdict} if verdict else {}),
    }


def _mechanisms(found: Discovery) -> Iterator[str]:
    privacy = found.privacy
    groups: dict[str, list[Event]] = {}
    for event in privacy.events:
        groups.setdefault(event.mechanism, []).append(event)
    for mechanism, events in groups.items():
        cost = math.fsum(float(event.cost.within(privacy.budget)) for event in events)
        yield f"- {mechanism}: {how_many(len(events), 'charge')}, {privacy.budget.currency} = {cost:.6g} in all."
    ours = ", ".join(f"{name} {number}" for name, number in found.versions.items())
    yield f"- Software: {ours}; noise from the exact discrete samplers of OpenDP {version('opendp')}."
    yield "- Floating point: statistics are integers on a grid, noise is drawn on integers, costs are rounded up."
    yield "- Timing: not protected. Error messages after the table is opened do not depend on rows."
    yield "- The cost of a release is computed from the object that draws its noise; each sensitivity has a proof."
