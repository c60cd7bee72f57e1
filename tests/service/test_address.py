"""Where a service listens: nothing that would send tokens in clear text, and no contradiction."""

from __future__ import annotations

import socket
import subprocess
from shutil import which

import pytest

from dpcurate.errors import QueryError
from dpcurate.service import Address


@pytest.fixture
def certificate(tmp_path):
    if which("openssl") is None:
        pytest.skip("a certificate is made by openssl, and there is none on the path")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout {key}"
    subprocess.run([*words.split(), "-out", str(cert)], check=True, capture_output=True)
    return str(cert), str(key)


def test_loopback_is_the_default():
    address = Address()
    assert (address.url, address.is_loopback, address.secure) == ("http://127.0.0.1:8765", True, False)
    assert set(address.hosts) == {"127.0.0.1:8765", "localhost:8765", "[::1]:8765"}
    assert list(address.means) == []


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"host": "0.0.0.0"}, "in clear text"),
        ({"host": "192.0.2.7"}, "in clear text"),
        ({"host": "stats.example.org"}, "in clear text"),
        ({"host": "::"}, "in clear text"),
        ({"user_header": "X-User"}, "anybody can send a header"),
        ({"behind_proxy": True}, "--url https://"),
        ({"behind_proxy": True, "url": "http://stats.example.org"}, "starts with https://"),
        ({"behind_proxy": True, "url": "http://127.0.0.1:8765"}, "starts with https://"),
        ({"url": "http://stats.example.org"}, "starts with https://"),
        ({"url": "https://stats.example.org/path"}, "without a path"),
        ({"url": "https://me:secret@stats.example.org"}, "without a path"),
        ({"url": "ftp://stats.example.org"}, "without a path"),
        ({"url": "https://stats.example.org:many"}, "without a path"),
        ({"url": "https://["}, "without a path"),
        ({"tls_cert": "cert.pem"}, "both a certificate and its key"),
        ({"tls_cert": "no.pem", "tls_key": "no.key"}, "no file at 'no.pem'"),
        ({"port": 0}, "from 1 to 65535"),
        ({"port": 70_000}, "from 1 to 65535"),
    ],
)
def test_what_is_unsafe_or_contradicts_itself_is_refused(given, hint):
    with pytest.raises(QueryError, match=hint):
        Address(**given)


def test_behind_a_proxy_people_use_its_address():
    address = Address(behind_proxy=True, url="https://Stats.Example.org:443/", user_header="X-User")
    assert address.url == "https://stats.example.org"
    assert address.secure
    assert "stats.example.org" in address.hosts
    assert "X-User" in " ".join(address.means)


def test_tls_of_its_own(certificate, tmp_path):
    cert, key = certificate
    address = Address(host="0.0.0.0", tls_cert=cert, tls_key=key)
    assert address.url == f"https://{socket.gethostname().lower()}:8765"
    assert address.secure
    assert "only tokens keep strangers out" in " ".join(address.means)
    with pytest.raises(QueryError, match="cannot be used"):
        Address(tls_cert=cert, tls_key=cert)
    with pytest.raises(QueryError, match="the proxy adds TLS"):
        Address(tls_cert=cert, tls_key=key, behind_proxy=True, url="https://stats.example.org")


def test_a_port_in_use_is_noticed():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(QueryError, match="Is a service running already"):
            Address(port=taken.getsockname()[1]).check_free()
        port = taken.getsockname()[1]
    Address(port=port).check_free()
