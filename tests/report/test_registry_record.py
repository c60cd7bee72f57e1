"""A result is described in the form of the registry of deployments, without a claim that the run does not support."""

import json
from dataclasses import replace

import pytest

import dpcurate
from dpcurate.cli import main
from dpcurate.errors import FormatError, NotPrivate

# The keys of the registry's deployments-schema (2026), which allows no others, and its choices.
SECTIONS = {
    "basic": {
        "name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
        "data_product_sector", "publication_date",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters",
        "privacy_parameters_details",
    },
    "deployment_model": {
        "model_name", "model_name_details", "trust_assumptions", "actors", "release_type", "release_type_details",
        "data_source_type", "data_source_type_details", "access_type", "access_type_details",
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing", "justification",
        "utility", "additional_information",
    },
    "administrative": {"evidence_sources", "status", "registry_authors", "tier"},
}  # fmt: skip
CHOICES = {
    "data_product_type": {"Summary statistics", "Machine learning model"},
    "variant_name": {"Pure DP", "Zero-concentrated DP"},
    "model_name": {"Central"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static"},
    "access_type": {"Non-interactive"},
    "status": {"Draft"},
}
PUBLISHER = {
    "name": "Chest clinic 2026", "curator": "An office", "curator_type": "Government", "region": "Norway",
    "sector": "Healthcare", "justification": "A first release.", "authors": ["A. Author"],
}  # fmt: skip


@pytest.fixture(scope="module")
def network():
    return dpcurate.networks.load("cancer")


@pytest.fixture(scope="module")
def found(network, tmp_path_factory):
    ledger = tmp_path_factory.mktemp("registry") / "clinic.ledger"
    table = network.sample(5_000, seed=1)
    study = dpcurate.open(table, network.schema, ledger=ledger, epsilon=2)
    return study.discover(epsilon=1, by="me", purpose="planning")


def test_a_record_has_the_registrys_form(found):
    record = found.registry_record(**PUBLISHER)
    assert record.keys() == {"url_slug", "deployment"}
    assert record["url_slug"] == "chest-clinic-2026"
    assert record["deployment"].keys() == SECTIONS.keys()
    for section, keys in SECTIONS.items():
        fields = record["deployment"][section]
        assert fields.keys() <= keys, section
        assert "" not in fields.values(), section
        for key in fields.keys() & CHOICES.keys():
            assert fields[key] in CHOICES[key], key
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["deployment"]["administrative"] == {"status": "Draft", "registry_authors": ["A. Author"], "tier": 3}


def test_the_parameters_are_the_ceiling_and_not_what_was_spent(found):
    loss = found.registry_record()["deployment"]["privacy_loss"]
    ceiling = found.privacy.budget
    assert loss["privacy_parameters"] == {"rho": ceiling.rho, "epsilon": 2.0, "delta": 1e-10}
    assert "1 of it by this run" in loss["privacy_parameters_details"]
    assert "one row added or removed" in loss["privacy_unit_details"]
    assert "number_of_privacy_units" not in loss  # nothing public says how many


def test_every_charge_is_told_with_its_mechanism(found):
    told = found.registry_record()["deployment"]["implementation"]["mechanisms"]
    assert f"gaussian: {len(found.privacy.events)} charges" in told
    assert "OpenDP" in told
    assert dpcurate.__version__ in told


def test_persons_pure_budgets_and_changed_rows_are_told(network):
    table = {**network.sample(2_000, seed=1), "who": [f"p{i // 2}" for i in range(2_000)]}
    schema = replace(network.schema, rows=2_000, person=dpcurate.Person("who", 2))
    pure = dpcurate.open(table, schema, epsilon=1, delta=0, neighbours="replace")
    deployment = pure.discover(method="em-pc").registry_record()["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    loss = deployment["privacy_loss"]
    assert loss["privacy_unit"] == "Person"
    assert "'who', with at most 2 rows each" in loss["privacy_unit_details"]
    assert "differ in the data of exactly one person" in loss["privacy_unit_details"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0}
    assert "number_of_privacy_units" not in loss  # `rows` counts rows, not persons
    assert deployment["deployment_model"]["release_type"] == "One release"


def test_what_is_not_private_is_no_deployment(network):
    curator = dpcurate.Curator(network.sample(1_000, seed=1), network.schema, budget=dpcurate.Budget.unlimited())
    exact = dpcurate.fit(curator, "pc")
    with pytest.raises(NotPrivate, match="this is none"):
        exact.registry_record()


def test_choices_that_the_registry_does_not_know_are_refused(found):
    for wrong in ({"curator_type": "Hospital"}, {"sector": "Health"}, {"authors": "me"}):
        with pytest.raises(FormatError):
            found.registry_record(**wrong)


def test_a_report_of_that_name_is_the_record(found, tmp_path):
    found.report(tmp_path / "clinic.registry.json")
    assert json.loads((tmp_path / "clinic.registry.json").read_text(encoding="utf-8")) == found.registry_record()


def test_the_command_writes_the_record_and_lists_what_is_empty(found, tmp_path, capsys, monkeypatch):
    ledger = next(path for what, path in found.inputs.files if what == "ledger")
    target = tmp_path / "clinic.registry.json"
    assert main(["ledger", "record", ledger, "--curator", "An office", "-o", str(target)]) == 0
    said = capsys.readouterr().err
    assert "left empty" in said
    assert "data_curator_type, data_product_region, data_product_sector, justification" in said
    basic = json.loads(target.read_text(encoding="utf-8"))["deployment"]["basic"]
    assert basic["data_curators"][0]["data_curator_name"] == "An office"
    assert basic["intended_use"] == "planning"
    assert main(["ledger", "record", ledger, "-o", ledger, "--force"]) == 1
