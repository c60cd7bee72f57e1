"""Tries to break the ledger and the curator from outside: `python -m benchmarks.chaos`."""
