"""Moved to dpcurate.private.session."""

from dpcurate.private.session import Session as Room

__all__ = ["Room"]
