"""The guides for owners and analysts: every command and every line of code runs as printed."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import contextmanager
from shutil import which

import pytest

import dpcurate
from dpcurate.cli import main
from dpcurate.service import start
from dpcurate.service.address import Address
from dpcurate.service.records import Records
from local_service import serving
from pages import ROOT

OWNER, ANALYST = ("docs/service-owner.md", "docs/service-analyst.md")
NORTH, SOUTH = "https://stats.example.org", "https://south.example.org"
LONGEST = 1200
"""Words of a guide."""


def commands(page):
    return [shlex.split(line) for line in re.findall(r"^    (dpcurate .*)$", (ROOT / page).read_text("utf-8"), re.M)]


@pytest.mark.parametrize("page", [OWNER, ANALYST])
def test_a_guide_is_short(page):
    assert len((ROOT / page).read_text("utf-8").split()) < LONGEST


# --- the owner --------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dpcurate.networks.load("cancer").schema.save("patients.toml")
    assert main(["network", "sample", "cancer", "--rows", "500", "-o", "patients.parquet"]) == 0
    certificate(tmp_path)
    return tmp_path


def certificate(folder):
    if which("openssl") is None:
        pytest.skip("a certificate is made by openssl, and there is none on the path")
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost"
    names = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*words.split(), *names], check=True, capture_output=True)


def asks(ledger, name):
    """Two runs of an analyst that wait."""
    records = Records.open(ledger)
    for purpose in ("one", "two"):
        run = {"command": "c" * 64, "method": "auto", "epsilon": 0.1, "purpose": purpose}
        assert records.consent(name, run) == "waiting"
    records.close()


def test_the_owners_commands_run_as_printed(table, monkeypatch, capsys):
    served = []

    def listen(host, more, address):
        served.append((host.settings, address))
        host.close()

    monkeypatch.setattr(start, "listen", listen)
    monkeypatch.setattr(Address, "check_free", lambda self: None)
    for words in commands(OWNER):
        assert main(words[1:]) == 0, (words, capsys.readouterr().err)
        if words[1:4] == ["serve", "token", "add"] and "--approve" in words:
            asks("patients.ledger", words[4])
    assert [address.secure for _, address in served] == [False, True, True, True, False]
    assert [settings.whole_seconds for settings, _ in served] == [False] * 4 + [True]
    records = Records.open("patients.ledger")
    assert [request.state for request in records.requests()] == ["approved", "denied"]
    assert [share.kind for share in records.tokens()] == ["first come", "revoked", "first come"]
    records.verify()


# --- the analyst ------------------------------------------------------------------------------------------------------


@contextmanager
def two_services(folder):
    """A service at each of the two addresses of the page."""
    for name in ("north", "south"):
        (folder / name).mkdir()
    with serving(folder / "north", team=True) as north, serving(folder / "south", team=True) as south:
        token = north.token()
        south.host.records.ledger.grant("alice", 0.01, token=hash_of(token))
        yield {NORTH: north.url, SOUTH: south.url}, token


def hash_of(token):
    from dpcurate.service import records

    return records.hash_of(token)


def located(text, urls):
    for name, url in urls.items():
        text = text.replace(name, url)
    return text


def test_the_analysts_code_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with two_services(tmp_path) as (urls, token):
        monkeypatch.setenv("DPCURATE_TOKEN", token)
        names: dict[str, object] = {}
        blocks = re.findall(r"```py\n(.*?)```", (ROOT / ANALYST).read_text("utf-8"), re.DOTALL)
        assert len(blocks) >= 5
        for block in blocks:
            exec(compile(located(block, urls), ANALYST, "exec"), names)
    assert "MADE-UP ROWS" in str(names["dummy"].discover(epsilon=0.2))
    assert (tmp_path / "report.html").exists()


def test_the_analysts_commands_run_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with two_services(tmp_path) as (urls, token):
        monkeypatch.setenv("DPCURATE_TOKEN", token)
        for words in commands(ANALYST):
            assert main([located(word, urls) for word in words[1:]]) == 0, words
    assert (tmp_path / "result" / "report.html").exists()
