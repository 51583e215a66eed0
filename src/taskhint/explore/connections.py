"""Connections of the page's server: half a request may wait, but not at the cost of others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_FILES = 4096  # that the process may open, where the system allows it
AT_ONCE = 128  # connections that are accepted before any of them is looked at
OTHER_FILES = 4 * AT_ONCE  # not connections, or none yet
LAST_WORDS = 0.5  # seconds for answers that are on their way when the server ends


class Connection(H11Protocol):
    """When there are too many, the one whose client has been silent for longest is cut.

    Otherwise a program that opens connections and says nothing would shut out the page.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        if len(self.connections) > _most_files() - OTHER_FILES:
            silent = (c for c in self.connections if isinstance(c, Connection) and c.is_silent)
            min(silent, key=lambda connection: connection.since).transport.abort()

    @property
    def is_silent(self) -> bool:
        """Whether it is the client's turn, and the connection is not on its way out."""
        waits = self.cycle is None or self.cycle.more_body or self.cycle.response_complete
        return waits and not self.transport.is_closing()

    def shutdown(self) -> None:
        super().shutdown()
        self.loop.call_later(LAST_WORDS, self.transport.abort)  # those who do not read


class Server(uvicorn.Server):
    """Says when it is ready, and ends at once: requests that still wait are told so."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in list(self.server_state.tasks):
            task.cancel()
        await super().shutdown(sockets)


def allow_many_files() -> None:
    """Some systems start a process with 256."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if _most_files() < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _most_files() -> int:
    try:
        import resource
    except ImportError:  # Windows: what its `select` can watch
        return 512
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, MOST_FILES)
