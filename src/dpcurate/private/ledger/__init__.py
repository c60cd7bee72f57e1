"""The ledger: the privacy filter that decides, and the file that remembers."""

from dpcurate.private.ledger.runs import LoggedRun, Run, RunFacts
from dpcurate.private.ledger.table import Ledger

__all__ = ["Ledger", "LoggedRun", "Run", "RunFacts"]
