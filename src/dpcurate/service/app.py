"""The service over HTTP: routes for analysts, and whatever routes the owner adds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from dpcurate.remote import wire
from dpcurate.service import analyst_routes, refusals
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
        return JSONResponse({"version": wire.VERSION, "status": "stopping" if host.stopping else "ok"})

    layers = [Middleware(SecurityHeaders)]
    if host.settings.hosts:
        layers.append(Middleware(KnownHosts, hosts=host.settings.hosts))
    app = Starlette(
        routes=[Route(f"{wire.ROOT}/health", health), *analyst_routes.routes(host), *routes],
        middleware=layers,
        lifespan=lifespan,
        exception_handlers={404: _no_route, 405: _no_route},
    )
    app.state.host = host
    return app


async def _no_route(request: Request, error: Exception) -> Response:
    """What is at no address of ours, or is not reached this way."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    if not request.url.path.startswith("/v"):
        return PlainTextResponse("not found" if status == 404 else "not allowed", status_code=status)
    code = "route" if status == 404 else "method"
    return JSONResponse(refusals.to_plain(code, "there is nothing here; /v1/openapi.json lists what is"), status)
