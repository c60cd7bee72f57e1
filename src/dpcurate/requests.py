"""The name of dpcurate.queries until 0.1; it goes with the next release."""

from dpcurate.queries import *  # noqa: F403
from dpcurate.queries import Query as Query
from dpcurate.queries import Queryable as Queryable

__all__ = ["Queryable", "Query"]
