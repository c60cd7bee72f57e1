"""The ledger: the privacy filter that decides, and the file that remembers."""

from dpcurate.private.ledger.filter import Ledger
from dpcurate.private.ledger.runs import LoggedRun, Run, RunFacts

__all__ = ["Ledger", "LoggedRun", "Run", "RunFacts"]
