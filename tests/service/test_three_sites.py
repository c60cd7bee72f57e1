"""The tutorial of docs/pooling.md: three services, one analyst, one page; its commands run, on free ports."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from benchmarks.ports import free_port

import dpcurate
from dpcurate.cli import main
from pages import ROOT, blocks
from running_service import answers, until

GUIDE = ROOT / "docs" / "pooling.md"
NAMES = ("berlin", "oslo", "rome")


@contextmanager
def serving(words: list[str], folder: Path) -> Iterator[str]:
    """The service of a command, on a free port: its address."""
    port = str(free_port())
    words = [*words[: words.index("--port")], "--port", port]
    with (folder / f"{port}.txt").open("w") as said:
        process = subprocess.Popen([sys.executable, "-m", "dpcurate.cli", *words], cwd=folder, stdout=said, stderr=said)
        try:
            url = f"http://127.0.0.1:{port}"
            until(lambda: process.poll() is not None or answers(url), "the service answers")
            assert process.poll() is None, (folder / f"{port}.txt").read_text()
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


@pytest.mark.slow
def test_three_services_one_analyst_one_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    tokens, services = {}, []
    for words in (shlex.split(line)[1:] for line in block.splitlines()):
        if words[0] == "serve" and words[1] != "token":
            services.append(words)
            continue
        capsys.readouterr()
        assert main(words) == 0, words
        if words[0] == "serve":
            tokens[Path(words[-1]).stem] = capsys.readouterr().out.strip()
    (code,) = (one for one in blocks(GUIDE) if "def one_graph" in one)
    names: dict[str, Any] = {"dpcurate": dpcurate}
    exec(compile(code, GUIDE.name, "exec"), names)
    with ExitStack() as running:
        urls = {Path(words[1]).stem: running.enter_context(serving(words, tmp_path)) for words in services}
        assert tuple(urls) == tuple(tokens) == NAMES
        page = names["one_graph"](urls, tokens).read_text(encoding="utf-8")
    for name in NAMES:
        assert f"Site {name}" in page
        ledger = dpcurate.Ledger.open(tmp_path / f"{name}.ledger")
        (run,) = ledger.log()
        assert (run.facts.by, run.outcome) == ("alice", "finished")
        assert run.facts.purpose == "one graph of three hospitals"
        assert ledger.budget.as_epsilon(ledger.spent) == pytest.approx(1, rel=1e-3)
