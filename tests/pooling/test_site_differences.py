"""Sites that differ: which mechanisms, where, and when pooling says little."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dpcurate
from dpcurate import Discovery, Study, networks
from dpcurate.networks import Network

NAMES = ("Berlin", "Oslo", "Rome")
CANCER = networks.load("cancer")
OTHER = {
    "Smoker": [[0.7, 0.3]],
    "Cancer": [[0.3, 0.7], [0.2, 0.8], [0.25, 0.75], [0.1, 0.9]],
    "Xray": [[0.5, 0.5], [0.6, 0.4]],
    "Dyspnoea": [[0.2, 0.8], [0.7, 0.3]],
}


def changed(*names: str) -> Network:
    """The network with other mechanisms of these columns."""
    return Network(
        "changed",
        tuple(replace(v, table=np.array(OTHER[v.name])) if v.name in names else v for v in CANCER.variables),
    )


@cache
def found(*names: str) -> Discovery:
    """What three sites find, of which Rome has these mechanisms changed."""
    tables = [(changed(*names) if name == "Rome" else CANCER).sample(20_000, seed=k) for k, name in enumerate(NAMES)]
    sites = {
        name: Study.over(dpcurate.Curator(table, CANCER.schema, budget=dpcurate.Budget(epsilon=3, delta=1e-10)))
        for name, table in zip(NAMES, tables, strict=True)
    }
    return dpcurate.pool(sites).discover()


def test_mechanisms_that_differ_are_named_with_the_site() -> None:
    result = found("Smoker", "Xray")
    differences = result.site_differences
    assert differences is not None
    assert {one.column: one.most for one in differences.differing} == {"Smoker": "Rome", "Xray": "Rome"}
    assert not differences.too_many
    assert "sites: 2 mechanisms of 5 differ between them: " in str(result)
    assert "most at Rome" in str(result)
    told = result.to_dict()["site_differences"]
    assert told["site"] == "site"
    assert [one["column"] for one in told["columns"] if one["differs"]] == ["Smoker", "Xray"]
    page = result.report_text("x.html")
    assert "2 mechanisms of 5 differ between them" in page
    assert "Site Berlin" in page


def test_edges_are_oriented_by_sites_that_differ() -> None:
    """Alone the edge Smoker - Cancer has no direction; that Smoker alone differs between sites gives it one."""
    arrows = found("Smoker", "Xray").graph.arrows
    assert ("site", "Smoker") in arrows
    assert ("Cancer", "Xray") in arrows


def test_sites_that_are_alike_have_nothing_to_tell() -> None:
    result = found()
    assert result.site_differences is not None
    assert result.site_differences.differing == ()
    assert "no mechanism is seen to differ" in str(result)


def test_sites_that_disagree_too_much_are_warned_of() -> None:
    result = found(*OTHER)
    assert result.site_differences is not None
    assert result.site_differences.too_many
    assert "warning: so many mechanisms differ" in str(result)
    assert "Sites disagree too much" in result.report_text("x.html")
    assert result.to_dict()["site_differences"]["too_many"] is True


@pytest.mark.parametrize("site", [None, "hospital"])
def test_the_column_of_the_sites_is_known_by_its_levels(site: str | None) -> None:
    tables = {name: CANCER.sample(300, seed=k) for k, name in enumerate(NAMES)}
    sites = {name: dpcurate.open(table, CANCER.schema, epsilon=1) for name, table in tables.items()}
    result = dpcurate.pool(sites, site=site).discover()
    told = result.site_differences
    assert (None if told is None else told.site) == site
    assert dpcurate.discover(tables["Oslo"], CANCER.schema, epsilon=1).site_differences is None
