"""Who may talk to a page: security headers, known hosts, and requests from the page's own origin alone.

Three layers of ASGI middleware, and a door that a key opens. None of them knows what the pages do.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Our own files only: no inline script or style, nothing from elsewhere, no page of ours inside a foreign one."""
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    # Not no-referrer: with that a browser sends "Origin: null" with our own forms. Nothing goes to other origins.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing, and so must spend nothing."""


class SecurityHeaders:
    """Adds the headers to every response that does not set them itself."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str] = HEADERS) -> None:
        self._app, self._headers = app, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    sent.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class KnownHosts:
    """Refuses a request under a host name that is not ours: the defence against DNS rebinding."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        known = scope["type"] == "lifespan" or Headers(scope=scope).get("host", "").lower() in self._hosts
        app = self._app if known else PlainTextResponse("unknown host", status_code=421)
        await app(scope, receive, send)


class SameOrigin:
    """Refuses what another origin caused: any request that may change something, and embedding of any kind."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        ours = scope["type"] == "lifespan" or is_same_origin(scope.get("method", "GET"), Headers(scope=scope))
        app = self._app if ours else PlainTextResponse("refused: the request comes from another site", status_code=403)
        await app(scope, receive, send)


def is_same_origin(method: str, headers: Headers) -> bool:
    """Whether a page of ours, or for a safe method a person, made this request.

    Every current browser sends `Sec-Fetch-Site` over HTTPS and on loopback, and `Origin` with whatever is not a GET.
    A request that may change something needs one of them, and whichever is there must say "same origin".
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if method in SAFE_METHODS:
        opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site in (None, "same-origin", "none") or opened
    if site is None and origin is None:
        return False
    own = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
    return own and site in (None, "same-origin")


class Door:
    """Exchanges a key for a cookie once; whoever has the cookie may come in. `secure`: by HTTPS alone."""

    def __init__(self, name: str, key: str, *, secure: bool = False) -> None:
        self._key, self._secure = key, secure
        self._session = secrets.token_urlsafe(32)
        # Browsers send a cookie to every port of a host, so that two servers need two names.
        name = f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        self._cookie = f"__Host-{name}" if secure else name

    def fits(self, key: str) -> bool:
        """Whether this is the key."""
        return _same(key, self._key)

    def admits(self, request: Request) -> bool:
        """Whether the request comes from a browser that has shown the key."""
        return _same(request.cookies.get(self._cookie, ""), self._session)

    def let_in(self) -> Response:
        """To the first page, with the cookie."""
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", secure=self._secure, path="/")
        return answer

    def close(self, request: Request) -> Response:
        """Forget the cookie in this browser, and in every other if this one was let in."""
        if self.admits(request):
            self._session = secrets.token_urlsafe(32)
        answer = RedirectResponse("/", status_code=303)
        answer.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return answer


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), known.encode())
