"""Whether a Ray head answers at an address: one question to its gRPC server, in HTTP/2.

Ray's own client waits for minutes, with a line each second, where anything else answers, such as a
proxy.
"""

from __future__ import annotations

import socket
import threading
from typing import IO

CONNECT_SECONDS = 5.0  # also between two pieces of an answer
ANSWER_SECONDS = 8.0  # for all: finding the host, connecting, hearing from it
HEADERS, SETTINGS = 1, 4  # kinds of frames
END_OF_HEADERS, END_OF_STREAM = 4, 1
OK = b"\x88"  # status 200, by which every gRPC server begins; a proxy or a web server says 404
UNKNOWN = b"grpc-status\x0212"  # "no such service": Ray's port for clients (ray://), not its head


def _frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


def _text(text: bytes) -> bytes:
    return bytes((len(text),)) + text


# POST, http, :path, :authority, content-type by their numbers in HPACK's table, and te.
_ASKED = (
    b"\x83\x86\x04"
    + _text(b"/grpc.health.v1.Health/Check")
    + b"\x01"
    + _text(b"ray")
    + b"\x0f\x10"
    + _text(b"application/grpc")
    + b"\x00"
    + _text(b"te")
    + _text(b"trailers")
)
QUESTION = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + _frame(SETTINGS, 0, 0)
    + _frame(HEADERS, END_OF_HEADERS, 1, _ASKED)
    + _frame(0, END_OF_STREAM, 1, bytes(5))  # an empty message
)


def answers(host: str, port: int, clients: bool = False) -> bool | str:
    """Whether what answers can be a Ray head, or its port for clients; or why nothing does. A name
    server may be silent for longer than anybody waits, so this is done beside.
    """
    heard: list[bool | str] = []

    def ask() -> None:
        try:
            with socket.create_connection((host, port), CONNECT_SECONDS) as line:
                line.sendall(QUESTION)
                heard.append(_is_ray(line.makefile("rb"), clients))
        except (OSError, UnicodeError) as error:
            heard.append(getattr(error, "strerror", None) or str(error))

    beside = threading.Thread(target=ask, daemon=True)
    beside.start()
    beside.join(ANSWER_SECONDS)
    return heard[0] if heard else "timed out"


def _is_ray(line: IO[bytes], clients: bool) -> bool:
    """Read from the first frame, which has settings, to that which answers the question."""
    first = True
    while len(head := line.read(9)) == 9:
        size, kind = int.from_bytes(head[:3], "big"), head[3]
        if first and kind != SETTINGS:
            return False
        first, body = False, line.read(size)
        if kind == HEADERS:
            return body.startswith(OK) and (clients or UNKNOWN not in body)
    return False
