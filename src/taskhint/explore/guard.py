"""Who may ask: only this machine, only the page itself, only with the token, only in small pieces.

Other programs and web pages on the same machine can reach a loopback port too. A page of another
site that resolves its own name to 127.0.0.1 shows itself by its Host; one that posts from its own
address by its Origin; and neither knows the token.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 1 << 16
MOST_DRAINED = 1 << 28  # of a body that is refused, so that its sender gets to read why
MOST_SECONDS = 5.0  # for that

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Lets through what the page itself asks, without the token in its path; refuses the rest."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self._refused(Headers(scope=scope), str(scope["path"]))
        if refused is not None:
            await refuse(*refused, receive, send)
            return
        _, slash, rest = str(scope["path"]).removeprefix("/").partition("/")
        if not slash:  # the page's own addresses are relative to one that ends in it
            await _redirect(f"/{self._token}/", send)
            return
        rest = f"/{rest}"
        inner = {**scope, "path": rest, "raw_path": rest.encode()}
        await self._app(inner, receive, _with_headers(send))

    def _refused(self, headers: Headers, path: str) -> tuple[int, str] | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts:
            return 403, "this server answers to its own address only"
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return 403, "another page may not ask here"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "another page may not ask here"
        token = path.removeprefix("/").partition("/")[0]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return 403, "the token is missing or wrong; use the address that the command printed"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            return 413, f"the request is too large; at most {MOST_BODY} bytes"
        return None


async def refuse(status: int, why: str, receive: Receive, send: Send) -> None:
    """One clear line, as JSON; a body that is on its way is read and thrown away."""
    body = json.dumps({"error": why}).encode()
    headers = {**HEADERS, "content-type": "application/json", "content-length": str(len(body))}
    with suppress(TimeoutError, asyncio.CancelledError):
        await asyncio.wait_for(_drain(receive), MOST_SECONDS)
    start = {"type": "http.response.start", "status": status, "headers": _raw(headers.items())}
    await send(start)
    await send({"type": "http.response.body", "body": body})


async def _redirect(place: str, send: Send) -> None:
    headers = {**HEADERS, "location": place, "content-length": "0"}
    await send({"type": "http.response.start", "status": 307, "headers": _raw(headers.items())})
    await send({"type": "http.response.body"})


async def _drain(receive: Receive) -> None:
    drained, more = 0, True
    while more and drained < MOST_DRAINED:
        message = await receive()
        drained += len(message.get("body", b""))
        more = message["type"] == "http.request" and bool(message.get("more_body"))


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *_raw(HEADERS.items())]
        await send(message)

    return sending


def _raw(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]
