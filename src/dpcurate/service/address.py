"""Where a service is reached, and by whom; what would send tokens in clear text is refused."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dpcurate._messages import shown, shown_path
from dpcurate.errors import QueryError


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a service listens, and the `url` by which people reach it.

    On an address other than loopback it needs TLS of its own, or a proxy that adds it and is alone in reaching the
    port. `user_header` names the header by which that proxy vouches for an analyst.

    Raises:
        QueryError: tokens would travel in clear text, or the parts contradict each other.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: bool = False
    url: str = ""
    user_header: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.port < 1 << 16:
            raise QueryError(f"a port is a number from 1 to 65535, got {self.port}")
        self._check_tls()
        self._check_reach()
        self._check_url()
        if not self.url:
            object.__setattr__(self, "url", self._own_url())

    def _check_tls(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise QueryError("TLS needs both a certificate and its key: --tls-cert and --tls-key")
        if self.tls_cert is None or self.tls_key is None:
            return
        for path in (self.tls_cert, self.tls_key):
            if not Path(path).is_file():
                raise QueryError(f"there is no file at {shown_path(path)}")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.tls_cert, self.tls_key, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise QueryError(f"the certificate and key cannot be used: {error}") from None

    def _check_reach(self) -> None:
        if self.behind_proxy and self.tls:
            raise QueryError("the proxy adds TLS, so choose: --behind-proxy, or --tls-cert and --tls-key")
        if not (self.is_loopback or self.tls or self.behind_proxy):
            raise QueryError(
                f"other machines can reach {shown(self.host)}, and tokens would travel in clear text. Add --tls-cert "
                "and --tls-key; or --behind-proxy, if a proxy adds HTTPS and nobody else can reach this port"
            )
        if self.user_header is not None and not self.behind_proxy:
            raise QueryError("without a proxy anybody can send a header: --user-header needs --behind-proxy")
        if self.behind_proxy and not self.url:
            raise QueryError("say by which address the proxy is reached: --url https://stats.example.org")

    def _check_url(self) -> None:
        if not self.url:
            return
        try:
            told = urlsplit(self.url)
            known = told.scheme in ("http", "https") and told.hostname and told.port != 0
        except ValueError:
            known = False
        if not known or told.username or told.path not in ("", "/") or told.query or told.fragment:
            raise QueryError(
                f"--url is an address without a path, such as https://stats.example.org, got {shown(self.url)}"
            )
        if told.scheme == "http" and (self.secure or not _is_loopback(told.hostname or "")):
            raise QueryError("the address of a service starts with https://, except on this machine alone")
        usual = {"http": ":80", "https": ":443"}[told.scheme]  # which browsers leave out of the Host header
        object.__setattr__(self, "url", f"{told.scheme}://{told.netloc.lower().removesuffix(usual)}")

    def _own_url(self) -> str:
        host = self.host
        try:
            every = ipaddress.ip_address(host).is_unspecified
        except ValueError:
            every = False
        if every:
            host = socket.gethostname()
        name = f"[{host}]" if ":" in host else host
        return f"{'https' if self.tls else 'http'}://{name.lower()}:{self.port}"

    @property
    def tls(self) -> bool:
        """Whether the service itself speaks TLS."""
        return self.tls_cert is not None

    @property
    def secure(self) -> bool:
        """Whether people reach it by HTTPS."""
        return self.tls or self.behind_proxy

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return _is_loopback(self.host)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which requests are accepted, so that no foreign name can be made to point here."""
        known = [urlsplit(self.url).netloc, f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}"]
        return tuple(dict.fromkeys(known))

    def check_free(self) -> None:
        """Refuse a port that another program listens on, before a table is opened."""
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            with socket.socket(family, socket.SOCK_STREAM) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((self.host, self.port))
        except OSError as error:
            raise QueryError(
                f"nothing can listen on {shown(self.host)}, port {self.port}: {error.strerror or error}. Is a service "
                "running already? Choose another with --port"
            ) from None

    @property
    def means(self) -> Iterator[str]:
        """What the choice means for whoever runs the service, in sentences."""
        if self.behind_proxy:
            yield "behind a proxy: it must add HTTPS, pass on the Host header, and be alone in reaching this port"
        if self.user_header is not None:
            yield (
                f"whoever reaches this port directly can claim to be any analyst: the proxy must set "
                f"{self.user_header} itself and drop it from requests"
            )
        if not self.is_loopback:
            yield f"other machines can reach {self.host}:{self.port}; only tokens keep strangers out"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _no_password() -> bytes:
    raise ValueError("the key needs a password, which a service has nobody to ask for: give it a key without one")
