"""The code that documents show."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOOLS = "# pip install 'dpcurate[tools]'\n"
"""The first line of a block that needs what is not installed with the tests; tests/tools runs it."""


def blocks(page: Path) -> list[str]:
    """Every block of Python, in order."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
