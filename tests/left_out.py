"""What a run of the tests left out, and how to have it, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

HOW = {
    "chromium": "a browser: apt-get install chromium, or brew install --cask chromium",
    "Java": "Java 17 or later: apt-get install openjdk-17-jre-headless, or brew install openjdk@17",
    "nginx": "nginx and openssl, which the tests start: apt-get install nginx-light openssl",
    "PostgreSQL": "a PostgreSQL server, which the tests start and stop: apt-get or brew install postgresql",
    "dpcurate[spark]": "pip install --editable '.[all]' --group dev",
    "playwright": "pip install --editable '.[all]' --group dev",
    "psycopg": "pip install --editable '.[all]' --group dev",
    "pgmpy": "make test-tools, which installs it in an environment of its own",
    "DoWhy": "make test-tools, which installs it in an environment of its own",
    "causal-learn": "make test-tools, which installs it in an environment of its own",
    "mbi": "the package mbi beside dpcurate, in an environment of its own; a comparison with another method needs it",
}
"""By a word of the reason that a test gives for being left out."""
MARKERS = {
    "slow": "statistics of many runs and long audits",
    "spark": "tables in Spark",
    "database": "tables and ledgers in PostgreSQL",
    "browser": "pages in a browser",
    "proxy": "the service behind nginx",
    "tools": "graphs handed over to pgmpy, DoWhy and causal-learn",
}
"""What `make test` leaves to `make test-all`."""
OTHERWISE = "this machine, or what is installed on it, cannot run it"


def summary(skipped: Iterable[tuple[str, str]]) -> list[str]:
    """Lines about tests that were left out, given as (file, reason); none if there are none."""
    counted = Counter((file.rpartition("/")[2], reason.removeprefix("Skipped: ")) for file, reason in skipped)
    if not counted:
        return []
    lines = ["The tests below did not run on this machine, so what they check is unchecked here:"]
    for (file, reason), count in sorted(counted.items()):
        lines += [f"  {file} ({count}): {reason}", f"      to have it: {remedy(reason)}"]
    return lines


def remedy(reason: str) -> str:
    """What to install."""
    return next((how for word, how in HOW.items() if word.lower() in reason.lower()), OTHERWISE)


def deselected(counted: Mapping[str, int]) -> list[str]:
    """Lines about tests that were not asked for, by their marker; none if there are none."""
    if not counted:
        return []
    lines = [f"  {counted[marker]} {marker}: {what}" for marker, what in MARKERS.items() if counted.get(marker)]
    return ["These were not asked for; `make test-all` runs them too:", *lines]
