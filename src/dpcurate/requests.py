"""The name of dpcurate.queries until 0.1; it goes with the next release."""

from dpcurate.queries import *  # noqa: F403
from dpcurate.queries import Query as Request
from dpcurate.queries import Queryable as Door

__all__ = ["Door", "Request"]
