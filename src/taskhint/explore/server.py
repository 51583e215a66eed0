"""The server behind the page: fixed files, and documents that are computed one at a time.

No part of a path or a request names a file: the front end's files are read at the start and served
from a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taskhint.explore import documents
from taskhint.explore.guard import MOST_BODY, Guard
from taskhint.explore.passes import Passes
from taskhint.explore.subject import Subject
from taskhint.system.errors import UserError
from taskhint.system.settings import Settings, conform

MOST_WAITING = 64
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
    return Guard(Starlette(routes=routes), token, port)


def _fixed(content: bytes, kind: str) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:  # noqa: ARG001
        return Response(content, media_type=kind)

    return serve


class _Desk:
    """Computes one answer at a time, lets some requests wait, and sends the others away."""

    def __init__(self, subjects: list[Subject]) -> None:
        self.models = documents.models_document(subjects)
        self._passes = Passes(subjects)
        self._turn = anyio.Lock()
        self._waiting = 0

    def answering(self, wanted: type[Settings], answer: Answer) -> Callable[[Request], Any]:
        async def serve(request: Request) -> Response:
            if self._waiting >= MOST_WAITING:
                return _error(503, "too many requests at once; try again in a moment")
            self._waiting += 1
            try:
                asked = conform(wanted, await _body(request), "request")
                async with self._turn:
                    document = await run_in_threadpool(answer, self._passes, asked)
                    packed = documents.pack(*document)
            except UserError as error:
                return _error(400, str(error))
            finally:
                self._waiting -= 1
            return Response(packed, media_type="application/octet-stream")

        return serve


async def _body(request: Request) -> Any:
    """The JSON of a request, whose length its sender may have hidden."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise UserError(f"the request is too large; at most {MOST_BODY} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise UserError("the request is not JSON") from None


def _error(status: int, why: str) -> Response:
    return Response(json.dumps({"error": why}), status, media_type="application/json")
