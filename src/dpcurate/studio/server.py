"""From a folder to a running studio and an open browser."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from dpcurate.errors import QueryError

LOOPBACK = "127.0.0.1"


def start(
    folder: str | Path = ".", *, port: int | None = None, browser: bool = True, ready: Callable[[str], None] = print
) -> None:
    """Open the studio on this machine, until the process is stopped.

    Args:
        folder: where projects are made, and whose files are listed.
        port: where to listen; any free one if not given.
        browser: whether to open the page in a browser.
        ready: called with the link when the studio is about to listen.

    Raises:
        QueryError: an extra is missing, the folder is not there, or the port is taken.
    """
    try:
        import uvicorn

        from dpcurate.studio.project import Workplace
        from dpcurate.studio.studio_app import create_app
        from dpcurate.studio.visit import StudioSite
    except ImportError as error:
        raise QueryError(
            f"the studio needs an extra: pip install 'dpcurate[studio]' ({error.name} is missing)"
        ) from None
    if not Path(folder).is_dir():
        raise QueryError(f"there is no folder {str(folder)!r} to work in")
    listener = _listener(port)
    number = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    link = f"http://{LOOPBACK}:{number}/open/{token}"
    hosts = [f"{name}:{number}" for name in (LOOPBACK, "localhost")]
    app = create_app(StudioSite(Workplace(folder)), token, hosts)
    ready(link)
    if browser:
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
    config = uvicorn.Config(app, proxy_headers=False, server_header=False, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


def _listener(port: int | None) -> socket.socket:
    """A socket that listens already: the browser that is sent here finds somebody."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port or 0))
        listener.listen()
    except (OSError, OverflowError):
        listener.close()
        raise QueryError(f"port {port} is taken or not allowed; leave --port out to have a free one") from None
    return listener
