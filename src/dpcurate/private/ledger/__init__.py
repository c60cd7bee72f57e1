"""The ledger: the privacy filter that decides, and the file that remembers."""

from dpcurate.private.ledger.filter import Ledger

__all__ = ["Ledger"]
