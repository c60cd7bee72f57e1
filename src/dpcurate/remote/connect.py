"""`dpcurate.connect`: a study of a table on a server."""

from __future__ import annotations

from pathlib import Path

from dpcurate.remote.connection import PATIENCE, Connection
from dpcurate.remote.dummy import DummyTable
from dpcurate.remote.remote_curator import RemoteCurator
from dpcurate.study.study import Study


def connect(
    url: str,
    token: str | None = None,
    *,
    dummy: bool = False,
    certificates: str | Path | None = None,
    patience: float = PATIENCE,
) -> Study:
    """A study of a table that a service holds (`dpcurate serve`): the same calls, within your share of its budget.

    Learning happens here; only queries and noised answers travel. A lost connection, or a restart on either side, costs
    nothing: the same call resumes the run and never pays twice.

    Args:
        url: where the service is, such as ``"https://stats.example.org"``.
        token: what its owner gave you; by default the variable ``DPCURATE_TOKEN`` of the environment.
        dummy: work on made-up rows of the table's schema instead: free, to try a call before it costs something.
        certificates: a file of the authorities to trust, in place of the usual ones.
        patience: seconds for which to try again while the service does not answer.

    Returns:
        A study; its runs are logged by the service under the name that belongs to the token.

    Raises:
        ServiceError: nobody answers at this address, or the token is not known there.

    Example:
        >>> study = dpcurate.connect("https://stats.example.org")             # doctest: +SKIP
        >>> print(study.preview(epsilon=0.2))                                 # doctest: +SKIP
        >>> found = study.discover(epsilon=0.2)                               # doctest: +SKIP
    """
    curator = RemoteCurator(Connection(url, token, certificates=certificates, patience=patience))
    return Study.over(DummyTable(curator) if dummy else curator)
