"""Moved to dpcurate.private.session."""

from dpcurate.private.session import Session as Session

__all__ = ["Session"]
