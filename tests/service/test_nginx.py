"""A service behind Debian's nginx, which adds TLS: what people and other sites reach through it."""

from __future__ import annotations

import os
import ssl
import subprocess
from shutil import which

import httpx
import pytest
from benchmarks.ports import free_port

from running_service import answers, served, until

NGINX = which("nginx") or which("nginx", path="/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.proxy,
    pytest.mark.skipif(NGINX is None or which("openssl") is None, reason="there is no nginx here, or no openssl"),
]

CONFIGURATION = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log {folder}/access.log combined;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{front} ssl;
    server_name localhost;
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    client_max_body_size 8m;
    location / {{
      proxy_pass http://127.0.0.1:{back};
      proxy_set_header Host $http_host;
      proxy_set_header X-Remote-User "";
      proxy_read_timeout 300s;
    }}
  }}
}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
    subprocess.run([*words.split(), *names], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def service(place):
    front = free_port()
    url = f"https://localhost:{front}"
    with served(place, "--behind-proxy", "--url", url, "--user-header", "X-Remote-User") as service:
        (place / "nginx.conf").write_text(CONFIGURATION.format(folder=place, front=front, back=service.port))
        proxy = subprocess.Popen([NGINX, "-p", str(place), "-c", str(place / "nginx.conf")], env=os.environ)
        try:
            until(lambda: proxy.poll() is not None or answers(url), "nginx answers")
            assert proxy.poll() is None, (place / "error.log").read_text()
            yield service
        finally:
            proxy.terminate()
            proxy.wait(30)


@pytest.fixture
def client(service, place):
    trusted = ssl.create_default_context(cafile=str(place / "cert.pem"))
    with httpx.Client(base_url=service.link.partition("/#")[0], verify=trusted) as client:
        yield client


def sign_in(client, service):
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    answer = client.post("/owner/open", data={"key": service.key}, headers=own)
    assert answer.status_code == 303, answer.text
    return own


def test_the_owners_link_has_the_address_of_the_proxy(client, service):
    assert service.link.startswith("https://localhost:")
    assert client.get("/v1/health").json()["status"] == "ok"


def test_the_owner_signs_in_by_a_cookie_that_needs_https(client, service):
    assert client.get("/").status_code == 403
    sign_in(client, service)
    (cookie,) = client.cookies.jar
    assert cookie.secure
    assert cookie.name.startswith("__Host-")
    assert "patients" in client.get("/").text


def test_another_site_is_refused_through_the_proxy_too(client, service):
    sign_in(client, service)
    for origin in ("https://elsewhere.example", "https://localhost", f"http://localhost:{service.port}", "null"):
        refused = client.post("/owner/decide", data={"number": "1", "decision": "approve"}, headers={"Origin": origin})
        assert refused.status_code == 403, origin


def test_another_name_for_the_same_address_is_refused(client):
    assert client.get("/v1/health", headers={"Host": "attacker.example"}).status_code == 421


def test_the_owners_key_is_in_no_log_of_the_proxy(client, service, place):
    sign_in(client, service)
    client.get("/")
    written = (place / "access.log").read_text() + (place / "error.log").read_text()
    assert "/owner/open" in written
    assert service.key not in written


def test_the_service_can_speak_tls_itself(place, tmp_path):
    words = ("--tls-cert", str(place / "cert.pem"), "--tls-key", str(place / "key.pem"))
    with served(tmp_path, *words, tls=True) as own:
        assert own.link.startswith(f"https://127.0.0.1:{own.port}/#")
        with httpx.Client(verify=ssl.create_default_context(cafile=str(place / "cert.pem"))) as client:
            assert client.get(f"https://localhost:{own.port}/v1/health").status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{own.port}/v1/health")
