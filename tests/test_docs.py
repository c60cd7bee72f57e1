"""The documents tell the truth: their code runs, their links lead somewhere."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import dpcurate
from dpcurate import Knowledge
from dpcurate.cli import main
from dpcurate.graphs.formats import load
from dpcurate.graphs.knowledge import KEYS
from dpcurate.learn.measure_once import constants
from dpcurate.learn.measure_once.constants import Constants, FeatureConstants
from dpcurate.schema import Schema, toml
from pages import ROOT, TOOLS, blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNING = [p for p in PAGES if "```python" in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", RUNNING, ids=lambda p: p.name)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in (block for block in blocks(page) if not block.startswith(TOOLS)):
        exec(compile(block, page.name, "exec"), names)


def commands(page="README.md"):
    """The command lines of a page, without their remarks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [shlex.split(line, comments=True) for line in re.findall(r"^    (dpcurate .*)$", text, flags=re.MULTILINE)]


def test_the_readmes_commands_run_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["network", "sample", "cancer", "--rows", "20000", "-o", "patients.parquet"]) == 0
    assert [words[1] for words in commands()] == ["schema", "plan", "ledger", "discover", "ask", "discover"]
    for words in commands():
        assert main([*words[1:], *(["--worlds", "1"] if words[1] == "plan" else [])]) == 0, words
    assert Path("result/report.html").exists()
    assert Path("again/report.html").exists()


def test_the_case_study_runs_as_printed(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "docs" / "data", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for words in commands("docs/case-study.md"):
        assert main([*words[1:], *(["--worlds", "1"] if words[1] == "plan" else [])]) == 0, words
    said = capsys.readouterr()
    assert "nothing left" in said.out
    first, second = (load(Path(f"{name}/graph.json")) for name in ("first", "second"))
    plans, health = ("lncoins", "idp", "lpi", "fmde"), ("physlm", "disea", "hlthg", "hlthf", "hlthp")
    impossible = {frozenset((plan, measure)) for plan in plans for measure in health}
    assert not impossible & second.edges
    assert ("vanished" in said.out) == bool(first.edges - second.edges)
    assert {(driver, "mdvis") for driver in plans + health} & second.arrows
    assert all(b == "mdvis" for a, b in second.arrows if "mdvis" in (a, b))
    assert "the case study" in Path("second/report.html").read_text(encoding="utf-8")


def test_what_comes_with_the_case_study_is_small():
    assert sum(path.stat().st_size for path in (ROOT / "docs" / "data").iterdir()) < 200_000


def test_every_example_of_a_knowledge_file_is_one():
    text = (ROOT / "docs" / "knowledge-file.md").read_text(encoding="utf-8")
    examples = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)]
    for block in re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL):
        assert Knowledge.loads(block).names()
    assert {key for example in examples for key in example} == set(KEYS)
    assert all(f"## `{key}`" in text for key in KEYS)


SCHEMAS = [
    (page.name, block)
    for page in (ROOT / "README.md", ROOT / "docs" / "schema-file.md")
    for block in re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
]


@pytest.mark.parametrize(("page", "block"), SCHEMAS, ids=str)
def test_schemas_in_the_documents_are_schemas(page, block):
    schema = Schema.loads(block)
    assert Schema.loads(schema.dumps()) == schema


def test_the_page_on_schema_files_has_every_key_and_an_example_of_it():
    text = (ROOT / "docs" / "schema-file.md").read_text(encoding="utf-8")
    examples = "\n".join(block for page, block in SCHEMAS if page == "schema-file.md")
    keys = {"rows", "order", "kind", "column", *toml.FILE}
    for kind, (_, needed, optional) in toml.KINDS.items():
        keys |= {*needed, *optional}
        assert f'kind = "{kind}"' in examples
    for key in keys:
        assert re.search(rf"^\|.*`{key}`.*\|", text, re.MULTILINE), key
        assert re.search(rf"^{key} = |\[columns\.\w+\.{key}\]", examples, re.MULTILINE), key


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_page_of_constants_prints_every_constant_of_the_default_method():
    text = (ROOT / "docs" / "constants.md").read_text(encoding="utf-8")
    printed = dict(re.findall(r"^\|`(.+?)`\|`(.+?)`\|", text, re.MULTILINE))
    coded = {f.name: str(getattr(Constants(), f.name)) for f in fields(Constants)}
    coded |= {f"features: {f.name}": str(getattr(FeatureConstants(), f.name)) for f in fields(FeatureConstants)}
    coded |= {name: str(value) for name, value in vars(constants).items() if name.isupper()}
    assert printed == coded


def test_the_page_on_the_default_method_names_constants_that_exist():
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    known = {f.name for kind in (Constants, FeatureConstants) for f in fields(kind)} | vars(constants).keys()
    named = set(re.findall(r"`([A-Z_]{3,}|[a-z]+_[a-z_]+)`", text))
    assert len(named) > 20
    assert named <= known


def test_the_documents_speak_of_the_project_alone():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "/work/" not in text, page.name
        assert "/tmp/" not in text, page.name


def test_the_reference_has_every_public_name_with_its_parameters():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)(\(.*?\))?` \|", text, re.MULTILINE))
    assert set(dpcurate.__all__) <= rows.keys()
    for name in dpcurate.__all__:
        if rows[name] not in ("", "(...)"):
            parameters = set(inspect.signature(getattr(dpcurate, name)).parameters)
            assert set(re.findall(r"\w+", rows[name])) <= parameters, name


def test_the_map_for_contributors_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "dpcurate"
    for name in re.findall(r"`([\w./-]+(?:\.py|\.md|/))`", text):
        assert any((home / name).exists() for home in (package, ROOT)), name
    for folder in (path.parent.name for path in package.glob("*/__init__.py")):
        assert f"`{folder}/`" in text, folder
