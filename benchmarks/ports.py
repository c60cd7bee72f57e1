"""Ports for servers on this machine that nobody takes before the server does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from itertools import cycle

FIRST, BLOCK, BLOCKS = 10_000, 500, 44
"""Below 32,768, where systems begin to give ports to outgoing connections and to whoever asks for any port."""
_ports: dict[int, Iterator[int]] = {}


def free_port() -> int:
    """A port that is free now; each process has a block of its own, so that others do not find the same one."""
    own = os.getpid()
    if own not in _ports:
        first = FIRST + BLOCK * (own % BLOCKS)
        _ports[own] = cycle(range(first, first + BLOCK))
    for _ in range(BLOCK):
        port = next(_ports[own])
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise OSError(f"no port of {BLOCK} is free")
