"""What the tutorial shows of other tools runs, with the tools."""

from __future__ import annotations

import pytest

import dpcurate
from pages import ROOT, TOOLS, blocks

pytest.importorskip("pgmpy", reason="pgmpy, DoWhy and causal-learn are not installed here")
PAGES = [ROOT / "docs" / "tutorial.md"]
pytestmark = pytest.mark.tools


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_that_need_other_tools_run(page, asia):
    network, table, found = asia
    names = {"dpcurate": dpcurate, "network": network, "table": table, "found": found}
    shown = [block for block in blocks(page) if block.startswith(TOOLS)]
    assert shown
    for block in shown:
        exec(compile(block, page.name, "exec"), names)
