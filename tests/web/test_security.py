"""Headers, hosts and origins: what a page of ours accepts from whom."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from asgi import Client
from dpcurate.web.security import KnownHosts, SameOrigin, SecurityHeaders


@pytest.fixture
def reached() -> list[str]:
    return []


@pytest.fixture
def client(reached: list[str]) -> Client:
    async def page(request):
        reached.append(request.method)
        return PlainTextResponse("reached")

    guards = [Middleware(SecurityHeaders), Middleware(KnownHosts, hosts=["127.0.0.1:8000"]), Middleware(SameOrigin)]
    app = Starlette(routes=[Route("/", page, methods=["GET", "POST"])], middleware=guards)
    return Client(app)


OURS = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    ],
)
def test_a_post_from_elsewhere_never_reaches_the_page(client, reached, headers):
    assert client.post("/", headers=headers).status_code == 403
    assert not reached


@pytest.mark.parametrize("headers", [OURS, {"Origin": OURS["Origin"]}, {"Sec-Fetch-Site": "same-origin"}])
def test_a_post_of_our_own_page_reaches_it(client, reached, headers):
    assert client.post("/", headers=headers).status_code == 200
    assert reached == ["POST"]


def test_a_page_can_be_opened_by_a_person_and_from_a_link_but_not_embedded(client):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for headers in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}, link):
        assert client.get("/", headers=headers).status_code == 200
    for dest in ("iframe", "script", "image"):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": dest}
        assert client.get("/", headers=headers).status_code == 403


def test_another_host_name_for_our_address_is_refused(client, reached):
    assert client.get("/", headers={"Host": "attacker.example:8000"}).status_code == 421
    assert not reached


def test_every_answer_has_the_headers_refusals_too(client):
    for response in (client.get("/"), client.post("/"), client.get("/", headers={"Host": "x"}), client.get("/none")):
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"
