"""Who may talk to the studio, and which files it touches."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

import dpcurate
from asgi import Client
from studio_tables import HOSTS, OURS, TOKEN, Visitor, a_clinic


@pytest.fixture
def visitor(tmp_path):
    a_clinic(tmp_path, rows=200)
    return Visitor(tmp_path)


def test_without_the_link_there_is_no_page(visitor):
    for path in ("/", "/p/clinic-studio/describe", "/p/clinic-studio/report"):
        answer = visitor.client.get(path)
        assert answer.status_code == 403
        assert "clinic" not in answer.text
    assert visitor.client.get("/open/" + "x" * 43).status_code == 403
    assert visitor.client.post("/", content="example=asia", headers=OURS).status_code == 403
    cookie = visitor.client.get(f"/open/{TOKEN}").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:9999", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {},
    ],
)
def test_another_origin_changes_nothing(visitor, headers):
    given = {"Cookie": visitor.headers["Cookie"], **headers}
    answer = visitor.client.post("/", content="example=asia", headers=given)
    assert answer.status_code == 403
    assert not visitor.site.workplace.projects()


def test_another_host_name_is_refused(visitor):
    answer = Client(visitor.client._app, "http://evil.example:8000").get("/", headers=visitor.headers)
    assert answer.status_code == 421
    assert HOSTS == ("127.0.0.1:8000",)


def test_the_file_list_stays_in_its_folder(visitor, tmp_path):
    for folder in ("..", "../..", "/etc", "clinic.csv", "nothing"):
        assert visitor.get(f"/?folder={folder}").status_code == 400
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.csv").write_text("a,b\n1,2\n")
    assert "b.csv" in visitor.get("/?folder=inner").text
    (tmp_path / "elsewhere").symlink_to("/etc")
    assert "elsewhere" not in visitor.get("/").text


@pytest.mark.parametrize("name", ["..", "%2e%2e", "clinic.csv", "x/../y", "CLINIC-studio"])
def test_a_project_is_found_by_a_plain_name_alone(visitor, name):
    visitor.chosen("clinic.csv")
    assert visitor.get(f"/p/{name}/choose").status_code in (400, 404)


def test_only_known_files_are_handed_out(visitor):
    project = visitor.chosen("clinic.csv")
    for name in ("studio.json", "..%2Fclinic.csv", "clinic-studio.ledger", "report.exe"):
        assert visitor.get(f"{project}/file/{name}").status_code in (400, 404)


def test_inputs_and_other_projects_are_never_overwritten(visitor, tmp_path):
    before = (tmp_path / "clinic.csv").read_bytes()
    (tmp_path / "clinic-studio").mkdir()
    (tmp_path / "clinic-studio" / "mine.txt").write_text("mine")
    project = visitor.chosen("clinic.csv")
    assert project == "/p/clinic-studio-2"
    assert (tmp_path / "clinic.csv").read_bytes() == before
    assert [path.name for path in (tmp_path / "clinic-studio").iterdir()] == ["mine.txt"]


def test_a_password_is_not_written_down(visitor, tmp_path):
    answer = visitor.post("/", path="postgresql://me:secret@db/clinic#patients")
    assert answer.status_code == 400
    assert "secret" not in answer.text
    assert not visitor.site.workplace.projects()


def test_a_ledger_elsewhere_must_be_one(visitor, tmp_path):
    project = visitor.chosen("clinic.csv")
    refused = visitor.post(f"{project}/choose", ledger_path="clinic.csv", do="next")
    assert refused.status_code == 400
    budget = dpcurate.Budget(epsilon=3, delta=1e-10)
    path = tmp_path / "old.ledger"
    dpcurate.Ledger.create(path, table="clinic", neighbours="add-remove", budget=budget, schema_hash="x")
    assert "epsilon = 3" in visitor.get(f"{project}/choose").text
    visitor.post(f"{project}/choose", ledger=str(path), do="next")
    assert visitor.site.workplace.project("clinic-studio").ledger_file == path


def test_a_form_of_endless_length_is_refused(visitor):
    project = visitor.chosen("clinic.csv")
    body = "a=" + "x" * 17_000_000
    answer = visitor.client.post(f"{project}/describe", content=body, headers=visitor.headers)
    assert answer.status_code == 413
    fields = "&".join(f"f{i}=" for i in range(30_000))
    assert visitor.client.post(f"{project}/describe", content=fields, headers=visitor.headers).status_code == 413


def test_a_damaged_project_is_told_and_the_others_stay(visitor, tmp_path):
    project = visitor.chosen("clinic.csv")
    for text in ("{", "[]", '{"version": 2}', '{"version": 1, "table": "x", "name": "y", "board": {"places": [1]}}'):
        (tmp_path / "clinic-studio" / "studio.json").write_text(text)
        assert visitor.get(f"{project}/choose").status_code == 400
        assert visitor.get("/").status_code == 200


def test_nothing_is_inline_and_nothing_comes_from_elsewhere():
    templates = files("dpcurate.studio") / "templates"
    for page in templates.iterdir():
        text = page.read_text()
        assert not re.search(
            r"<style|\bstyle=|\bon\w+=\"|<script(?! src)|(?<!placeholder=\")https?://|\|\s*safe", text
        ), page.name
    assert "http" not in (files("dpcurate.studio") / "assets" / "studio.js").read_text()
    assert "innerHTML" not in (files("dpcurate.studio") / "assets" / "studio.js").read_text()
