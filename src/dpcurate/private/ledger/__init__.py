"""The ledger: the privacy filter that decides, and the file that remembers."""

from dpcurate.private.ledger.ledger import Ledger
from dpcurate.private.ledger.run_log import LedgerRun, LoggedRun, RunFacts
from dpcurate.private.ledger.shares import Share

__all__ = ["Ledger", "LedgerRun", "LoggedRun", "RunFacts", "Share"]
