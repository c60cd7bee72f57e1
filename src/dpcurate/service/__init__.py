"""The curator as a service: a server that holds the table, its analysts' tokens, the owner's consent and a log."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcurate.service.address import Address
    from dpcurate.service.host import ServiceHost, ServiceSettings
    from dpcurate.service.limits import Limits
    from dpcurate.service.logbook import Entry, Facts, telling
    from dpcurate.service.records import Records
    from dpcurate.service.start import serve

__all__ = [
    "Address", "Entry", "Facts", "Limits", "Records", "ServiceHost", "ServiceSettings", "serve", "telling",
]  # fmt: skip
_HOMES = {
    "address": ("Address",),
    "host": ("ServiceHost", "ServiceSettings"),
    "limits": ("Limits",),
    "logbook": ("Entry", "Facts", "telling"),
    "records": ("Records",),
    "start": ("serve",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: tokens and the log need no web server."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"dpcurate.service.{home}"), name)
    raise AttributeError(f"module 'dpcurate.service' has no attribute {name!r}")
