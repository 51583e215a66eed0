"""Serving until Ctrl-C, on loopback only."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from taskhint.explore.connections import AT_ONCE, Connection, Server, allow_many_files
from taskhint.explore.server import application
from taskhint.explore.subject import Subject
from taskhint.system.errors import MachineError

LOOPBACK = "127.0.0.1"


def serve(subjects: list[Subject], port: int, ready: Callable[[str], None]) -> None:
    """Serve the page of these models. `ready` is called with its address when it can be opened."""
    listening = _listening(port)
    allow_many_files()
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    config = uvicorn.Config(
        application(subjects, token, port),
        http=Connection,
        backlog=AT_ONCE,
        lifespan="off",
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=1 << 16,
    )
    address = f"http://{LOOPBACK}:{port}/{token}/"
    with suppress(KeyboardInterrupt):  # uvicorn ends in good order, then raises it once more
        Server(config, lambda: ready(address)).run(sockets=[listening])


def _listening(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise MachineError(f"port {port} cannot be used: {error}") from None
    listening.listen(AT_ONCE)
    return listening
