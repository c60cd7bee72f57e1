"""The studio over HTTP: who may talk to it, and which page answers what.

It listens on this machine alone. The link that starts it holds a random token, which is exchanged for a cookie once;
without the cookie there is no page. Requests under another host name, or from another site, are refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpcurate.studio import choose_page, describe_page, order_page, plan_page, read_page, run_page, server_page
from dpcurate.studio.visit import StudioSite, Visit, answering
from dpcurate.web.security import Door, KnownHosts, SameOrigin, SecurityHeaders

GET, POST = "GET", "POST"
PAGES: tuple[tuple[str, str, Callable[[Visit], Response]], ...] = (
    (GET, "/", choose_page.start),
    (POST, "/", choose_page.make),
    (POST, "/servers", server_page.connecting),
    (GET, "/s/{place}", server_page.show),
    (POST, "/s/{place}", server_page.act),
    (GET, "/s/{place}/report", server_page.report),
    (GET, "/p/{project}/choose", choose_page.show),
    (POST, "/p/{project}/choose", choose_page.save),
    (GET, "/p/{project}/describe", describe_page.show),
    (POST, "/p/{project}/describe", describe_page.save),
    (GET, "/p/{project}/order", order_page.show),
    (POST, "/p/{project}/order", order_page.save),
    (GET, "/p/{project}/plan", plan_page.show),
    (POST, "/p/{project}/plan", plan_page.save),
    (GET, "/p/{project}/run", run_page.show),
    (POST, "/p/{project}/run", run_page.act),
    (GET, "/p/{project}/read", read_page.show),
    (POST, "/p/{project}/read", read_page.save),
    (GET, "/p/{project}/report", read_page.report),
    (GET, "/p/{project}/file/{name}", read_page.download),
)


def create_app(site: StudioSite, token: str, hosts: Collection[str]) -> Starlette:
    """The application.

    Args:
        site: the folder, its runs and its results.
        token: what the link must hold.
        hosts: the names, with the port, under which requests are accepted.
    """
    door = Door("dpcurate-studio", token)

    def refused() -> Response:
        return site.page("locked.html", status=403)

    async def open_link(request: Request) -> Response:
        return door.let_in() if door.fits(request.path_params["token"]) else refused()

    def guarded(work: Callable[[Visit], Response]) -> Callable[[Request], Awaitable[Any]]:
        answer = answering(site, work)

        async def inside(request: Request) -> Response:
            return await answer(request) if door.admits(request) else refused()

        return inside

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(site.runs.close)

    routes = [Route(path, guarded(work), methods=[method]) for method, path, work in PAGES]
    return Starlette(
        routes=[Route("/open/{token}", open_link, methods=[GET]), site.assets.route(), *routes],
        middleware=[Middleware(SecurityHeaders), Middleware(KnownHosts, hosts=hosts), Middleware(SameOrigin)],
        lifespan=lifespan,
    )
