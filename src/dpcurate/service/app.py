"""The service over HTTP: routes for analysts, and whatever routes the owner adds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from dpcurate.service.host import ServiceHost
from dpcurate.web.security import KnownHosts, SecurityHeaders


def create_app(host: ServiceHost, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """The application of a service; `routes` are further ones, such as the owner's page.

    When the application shuts down, the host is closed.
    """

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(host.close)

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"version": 1, "status": "stopping" if host.stopping else "ok"})

    layers = [Middleware(SecurityHeaders)]
    if host.settings.hosts:
        layers.append(Middleware(KnownHosts, hosts=host.settings.hosts))
    app = Starlette(routes=[Route("/v1/health", health), *routes], middleware=layers, lifespan=lifespan)
    app.state.host = host
    return app
