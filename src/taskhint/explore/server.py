"""The server behind the page: fixed files, and documents that are computed one at a time.

No part of a path or a request names a file: the front end's files are read at the start and served
from a table.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from taskhint.explore import documents
from taskhint.explore.guard import MOST_BODY, Guard
from taskhint.explore.passes import Passes
from taskhint.explore.subject import Subject
from taskhint.system.errors import UserError
from taskhint.system.settings import Settings, conform

MOST_WAITING = 64
MOST_WORDS = 300  # letters of an error: it may hold what was asked
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}

Answer = Callable[[Passes, Any], tuple[dict[str, Any], documents.Arrays]]

ANSWERS: dict[str, tuple[type[Settings], Answer]] = {
    "random": (documents.RandomRequest, documents.random_document),
    "sequence": (documents.SequenceRequest, documents.sequence_document),
    "position": (documents.PositionRequest, documents.position_document),
    "map": (documents.MapRequest, documents.map_document),
}


def front_end() -> dict[str, bytes]:
    """The front end's files by name."""
    entries = (files("taskhint.explore") / "static").iterdir()
    return {
        entry.name: entry.read_bytes()
        for entry in sorted(entries, key=lambda entry: entry.name)
        if entry.name.rpartition(".")[2] in TYPES
    }


def application(subjects: list[Subject], token: str, port: int) -> Guard:
    """All that is served at one address."""
    desk = _Desk(subjects)
    routes = [
        Route("/api/models", _fixed(json.dumps(desk.models).encode(), "application/json")),
        *(
            Route(f"/api/{name}", desk.answering(*parts), methods=["POST"])
            for name, parts in ANSWERS.items()
        ),
    ]
    for name, content in front_end().items():
        kind = f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8"
        routes.append(Route("/" if name == "index.html" else f"/{name}", _fixed(content, kind)))
    app = Starlette(
        routes=routes, exception_handlers={HTTPException: _refused, Exception: _failed}
    )
    app.router.redirect_slashes = False  # its address would lack the token
    return Guard(app, token, port)


async def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    response = _error(error.status_code, error.detail)
    response.headers.update(error.headers or {})
    return response


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """A bug, perhaps of a user's own task. Its traceback goes to the terminal."""
    return _error(500, f"{type(error).__name__}: {error}; more of it is where the command runs")


def _fixed(content: bytes, kind: str) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:  # noqa: ARG001
        return Response(content, media_type=kind)

    return serve


class _Desk:
    """Computes one answer at a time, lets some requests wait, and sends the others away."""

    def __init__(self, subjects: list[Subject]) -> None:
        self.models = documents.models_document(subjects)
        self._passes = Passes(subjects)
        self._turn = asyncio.Lock()
        self._waiting = 0

    def answering(self, wanted: type[Settings], answer: Answer) -> Callable[[Request], Any]:
        async def serve(request: Request) -> Response:
            try:
                asked = conform(wanted, await _body(request), "request")
                packed = await self._answered(answer, asked)
            except _BusyError:
                return _error(503, "too many requests at once; try again in a moment")
            except UserError as error:
                return _error(400, str(error))
            except asyncio.CancelledError:
                return _error(503, "the command has been ended")
            return Response(packed, media_type="application/octet-stream")

        return serve

    async def _answered(self, answer: Answer, asked: Settings) -> bytes:
        if self._waiting >= MOST_WAITING:
            raise _BusyError
        self._waiting += 1
        try:
            async with self._turn:
                document = await asyncio.to_thread(answer, self._passes, asked)
                return documents.pack(*document)
        finally:
            self._waiting -= 1


class _BusyError(Exception):
    """More requests wait than the server lets wait."""


async def _body(request: Request) -> Any:
    """The JSON of a request, whose length its sender may have hidden."""
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > MOST_BODY:
                raise UserError(f"the request is too large; at most {MOST_BODY} bytes")
    except ClientDisconnect:
        raise UserError("the request ended early") from None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise UserError("the request is not JSON") from None


def _error(status: int, why: str) -> Response:
    said = why if len(why) <= MOST_WORDS else f"{why[:MOST_WORDS]} …"
    return Response(json.dumps({"error": said}), status, media_type="application/json")
