"""Templates and assets: a Jinja environment that escapes everything, and a route for our style and script."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dpcurate._messages import how_many

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
OWN = "dpcurate.web"
"""The package whose templates and assets every page shares."""


def templates(package: str) -> Environment:
    """Templates of a package, which may extend the shared `base.html`. All values are escaped; a typo is an error."""
    loaders = [PackageLoader(name, "templates") for name in (package, OWN)]
    environment = Environment(
        loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["how_many"] = how_many
    return environment


class Assets:
    """The style, script and image files of some packages under fixed names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` maps the name of a file to its package."""
        self._packages = dict(names)

    def url(self, root: str, name: str) -> str:
        """Where a page finds a file; another version of the file is another address."""
        return f"{root}/assets/{name}?v={_version(self._packages[name], name)}"

    def route(self) -> Route:
        """Serves the files under `/assets/`."""
        return Route("/assets/{name}", self._serve)

    async def _serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        package = self._packages.get(name)
        if package is None:
            return PlainTextResponse("not found", status_code=404)
        kept = {"Cache-Control": "private, max-age=3600"}
        return Response(_read(package, name), media_type=TYPES[name[name.rindex(".") :]], headers=kept)


SHARED: Mapping[str, str] = {"web.css": OWN, "web.js": OWN, "icon.svg": OWN}


@cache
def _read(package: str, name: str) -> bytes:
    return (files(package) / "assets" / name).read_bytes()


@cache
def _version(package: str, name: str) -> str:
    return hashlib.sha256(_read(package, name)).hexdigest()[:10]
