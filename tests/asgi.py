"""A client of an ASGI application in this process, without a server."""

import asyncio
from typing import Any

import httpx


class Client:
    """`get` and `post` as httpx has them; nothing is redirected."""

    def __init__(self, app: Any, base: str = "http://127.0.0.1:8000") -> None:
        self._app, self._base = app, base

    def get(self, path: str, **given: Any) -> httpx.Response:
        return asyncio.run(self._request("GET", path, **given))

    def post(self, path: str, **given: Any) -> httpx.Response:
        return asyncio.run(self._request("POST", path, **given))

    async def _request(self, method: str, path: str, **given: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url=self._base) as client:
            return await client.request(method, path, **given)
