"""Requests to a service: one client of HTTP, which tries again while a connection is lost."""

from __future__ import annotations

import ipaddress
import os
import secrets
import ssl
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpcurate._messages import shown, shown_path
from dpcurate.errors import DecodeError, DpcurateError, QueryError, ServiceError
from dpcurate.queries.encoding import parsed
from dpcurate.remote import wire

TOKEN = "DPCURATE_TOKEN"
"""The variable of the environment that holds a token."""
PATIENCE = 60.0
"""Seconds for which a request is sent again while nobody answers."""
SILENCE = 600.0
"""Seconds without a byte of the answer after which a request is sent again; a service that works on it goes on."""
LONGEST_ANSWER = 3600.0
"""Seconds that an answer may take."""


class Failure(DpcurateError):
    """What a service refused, by its code."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence

    def error(self) -> DpcurateError:
        """The error that a caller expects."""
        return wire.ERRORS[self.code][0](self.sentence)


class Connection:
    """A service at an address, and the token with which it is asked."""

    def __init__(
        self, url: str, token: str | None, *, certificates: str | Path | None = None, patience: float = PATIENCE
    ) -> None:
        self.url = checked(url)
        token = (os.environ.get(TOKEN, "") if token is None else token).strip()
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise QueryError(f"a service is asked with a token, which its owner gives you: token=..., or {TOKEN}")
        self._patience = patience
        self._client = _client(self.url, token, certificates)
        weakref.finalize(self, self._client.close)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What a service answers to a question that changes nothing."""
        return self._sent("GET", path, params=query)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What a service answers to a request; `body` has an id, so it is the same request when it is sent again."""
        return self._sent("POST", path, content=wire.dumps(body), headers={"Content-Type": "application/json"})

    def _sent(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        import httpx

        start, wait = time.monotonic(), 0.1
        end = start + self._patience
        while True:
            try:
                response = self._client.request(method, f"{wire.ROOT}{path}", **request)
                if response.status_code not in (502, 503, 504) or _is_ours(response):
                    return _told(response)
                why = f"status {response.status_code}"
            except httpx.ReadTimeout:
                why = "no answer yet"
                end = start + LONGEST_ANSWER
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
            if time.monotonic() + wait > end:
                raise ServiceError(
                    f"the service at {self.url} does not answer ({why}). What was paid for is not lost: once it "
                    "answers, the same call goes on and never pays twice"
                ) from None
            time.sleep(wait)
            wait = min(2 * wait, 5.0)


def checked(url: str) -> str:
    """The address of a service without a slash at its end; one that would send the token in clear text is refused."""
    try:
        told = urlsplit(url)
        known = told.scheme in ("http", "https") and bool(told.hostname) and told.port != 0
    except (ValueError, AttributeError):
        known = False
    if not known or told.username or told.query or told.fragment:
        raise QueryError(f"the address of a service looks like https://stats.example.org, got {shown(url)}")
    if told.scheme == "http" and not _is_loopback(told.hostname or ""):
        raise QueryError(f"over http:// the token would travel in clear text: use https:// ({shown(url)})")
    return url.rstrip("/")


def new_request() -> str:
    """An id that makes a request the same request when it is sent again."""
    return secrets.token_urlsafe(18)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _client(url: str, token: str, certificates: str | Path | None) -> Any:
    try:
        import httpx
    except ImportError:
        raise DpcurateError("a service is asked with httpx: pip install 'dpcurate[remote]'") from None
    trusted: Any = True
    if certificates is not None:
        try:
            trusted = ssl.create_default_context(cafile=str(certificates))
        except (OSError, ssl.SSLError):
            raise QueryError(f"there are no certificates in {shown_path(str(certificates))}") from None
    return httpx.Client(
        base_url=url,
        headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
        timeout=httpx.Timeout(30.0, read=SILENCE),
        verify=trusted,
        trust_env=not _is_loopback(urlsplit(url).hostname or ""),  # a token for this machine goes through no proxy
    )


def _is_ours(response: Any) -> bool:
    """Whether a service said this, or a proxy in front of it; a service that is about to stop is waited for."""
    try:
        code, _ = wire.error_from_plain({"error": _parsed(response).get("error")})
    except DecodeError:
        return False
    return code != "stopping"


def _told(response: Any) -> dict[str, Any]:
    try:
        given = _parsed(response)
        if response.status_code == 200 and given.get("version") == wire.VERSION:
            return given
        failure = Failure(*wire.error_from_plain({"error": given.get("error")}))
    except DecodeError:
        raise ServiceError(
            f"what answers at {response.url.copy_with(path='/', query=None)} is no service of dpcurate (status "
            f"{response.status_code}); check the address"
        ) from None
    raise failure


def _parsed(response: Any) -> dict[str, Any]:
    given = parsed(response.content, wire.MOST_BYTES)
    if not isinstance(given, dict):
        raise DecodeError("this is no answer of a service")
    return given
