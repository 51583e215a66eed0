"""The server under attack: what it refuses, and that it keeps serving."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from taskhint.explore import documents
from taskhint.explore import server as explore_server
from taskhint.explore.connections import allow_many_files
from taskhint.explore.subject import LONGEST
from tests.explore.page import Models, Server, ask, error, post, serving


def test_another_host_or_origin_or_token_is_refused(server: Server) -> None:
    body = {"model": 0, "symbols": ["1"]}
    assert post(server, "sequence", body).status_code == 200
    for headers in (
        {"host": "evil.example"},
        {"host": "127.0.0.1"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        answer = post(server, "sequence", body, **headers)
        assert answer.status_code == 403, headers
        error(answer)
    for path in ("/", "/api/models", "/wrong/api/models", "/favicon.ico", "/%2e%2e/etc/passwd"):
        answer = httpx.get(server.origin + path, trust_env=False)
        assert answer.status_code == 403, path
        assert "token" in error(answer)


def test_no_path_reaches_the_file_system(server: Server) -> None:
    for path in ("../../etc/passwd", "..%2f..%2fetc%2fpasswd", "server.py", "api/../guard.py"):
        raw = socket.create_connection(("127.0.0.1", int(server.origin.rpartition(":")[2])))
        with raw:
            token = server.address.split("/")[3]
            host = server.origin.removeprefix("http://")
            raw.sendall(f"GET /{token}/{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert raw.recv(100).startswith(b"HTTP/1.1 404")


def test_every_answer_has_a_strict_policy(server: Server) -> None:
    for path in ("", "main.js", "style.css", "api/models", "nothing"):
        headers = httpx.get(server.address + path, trust_env=False).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["referrer-policy"] == "no-referrer"  # the token stays here
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("sequence", "not json", "not JSON"),
        ("sequence", "[" * 50_000, "not JSON"),
        ("sequence", [], "object"),
        ("sequence", {"model": 0}, "lacks symbols"),
        ("sequence", {"model": 9, "symbols": ["1"]}, r"0\.\.3"),
        ("sequence", {"model": 0, "symbols": []}, "empty"),
        ("sequence", {"model": 0, "symbols": ["21"]}, "out of range"),
        ("sequence", {"model": 0, "symbols": ["9" * 5000]}, "symbol"),
        ("sequence", {"model": 0, "symbols": ["x"]}, "not a symbol"),
        ("sequence", {"model": 0, "symbols": ["1_0"]}, "not a symbol"),
        ("sequence", {"model": 0, "symbols": ["1.5"]}, "not a symbol"),
        ("sequence", {"model": 0, "symbols": ["-1"]}, "out of range"),
        ("sequence", {"model": 0, "symbols": [1]}, "not a text"),
        ("sequence", '{"model": 0, "symbols": ["1"', "not JSON"),
        ("random", '{"model": 0, "length": NaN}', "not a whole number"),
        ("sequence", {"model": 0, "symbols": ["1"] * 501}, "at most 500"),
        ("sequence", {"model": 0, "symbols": ["1"], "modle": 1}, "model"),
        ("position", {"model": 0, "symbols": ["1"], "position": 2}, r"0\.\.1"),
        ("map", {"model": 0, "symbols": ["1"], "block": 7}, r"0\.\.1"),
        ("map", {"model": 0, "symbols": ["1"], "show": "decoder", "stream": "../x"}, "not one of"),
        ("random", {"model": 0, "length": 10**9}, "500"),
        ("random", {"model": 0, "length": 5, "distribution": "rep:0"}, "rep"),
        ("random", {"model": 0, "length": 5, "number": 10**15}, "number"),
        ("sequence", {"model": 0, "symbols": ["1"], "edits": [{"kind": "rm"}]}, "edit"),
        (
            "sequence",
            {"model": 0, "symbols": ["1"], "edits": [{"kind": "knock-out-mlp", "block": 0}] * 9},
            "at most 8",
        ),
        (
            "sequence",
            {
                "model": 0,
                "symbols": ["1"],
                "edits": [
                    {
                        "kind": "replace-stream",
                        "stream": "embedding",
                        "position": 0,
                        "tokens": [999],
                        "inputs": 1,
                        "source": 0,
                    }
                ],
            },
            "token 999",
        ),
    ],
)
def test_malformed_requests_get_one_clear_line(
    server: Server, name: str, body: Any, message: str
) -> None:
    answer = post(server, name, body)
    assert answer.status_code == 400
    assert re.search(message, error(answer))


def test_a_bug_of_an_own_task_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(passes: object, asked: object) -> Any:  # noqa: ARG001
        raise ValueError("no such thing")

    async def asking() -> httpx.Response:
        there = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=there, base_url="http://127.0.0.1:8123") as client:
            return await client.post("/token/api/random", json={"model": 0, "length": 3})

    answers = (documents.RandomRequest, failing)
    monkeypatch.setitem(explore_server.ANSWERS, "random", answers)
    app = explore_server.application([], "token", 8123)
    answer = asyncio.run(asking())
    assert answer.status_code == 500
    assert error(answer).startswith("ValueError: no such thing")


def test_a_body_of_100_megabytes_is_refused(server: Server) -> None:
    answer = post(server, "sequence", b" " * 100_000_000)
    assert answer.status_code == 413
    assert "too large" in error(answer)

    def hidden() -> Iterator[bytes]:
        for _ in range(1000):
            yield b" " * 100_000

    try:
        answer = httpx.post(
            f"{server.address}api/sequence", content=hidden(), timeout=60, trust_env=False
        )
        assert answer.status_code in (400, 413)
    except (httpx.WriteError, httpx.RemoteProtocolError, httpx.ReadError):
        pass  # the server hung up in the middle of it
    assert post(server, "sequence", {"model": 0, "symbols": ["1"]}).status_code == 200


def test_a_thousand_requests_at_once_leave_the_server_serving(server: Server) -> None:
    body = {"model": 1, "symbols": [str(1 + i % 90) for i in range(60)]}

    def one(i: int) -> int:
        edit = {"kind": "scale-temperature", "block": 0, "factor": 1 + i % 50 / 100}
        try:
            return post(server, "sequence", {**body, "edits": [edit]}).status_code
        except httpx.TransportError:
            return 0

    with ThreadPoolExecutor(250) as pool:
        found = list(pool.map(one, range(1000)))
    assert set(found) <= {200, 503}
    assert 200 in found
    assert post(server, "sequence", body).status_code == 200


def test_long_inputs_are_served_within_a_gibibyte(server: Server) -> None:
    for number in range(6):
        drawn, _ = ask(server, "random", model=1, length=LONGEST, number=number)
        _, found = ask(
            server, "position", model=1, symbols=drawn["input"], position=2 * LONGEST - 1
        )
        assert found["weights"].shape[2] == 2 * LONGEST
        ask(server, "map", model=1, symbols=drawn["input"])
    assert server.memory < 1 << 30


def test_it_listens_on_loopback_alone(server: Server) -> None:
    port = int(server.origin.rpartition(":")[2])
    table = Path("/proc/net/tcp").read_text().splitlines()[1:]
    listening = [row.split()[1] for row in table if row.split()[3] == "0A"]
    own = [place for place in listening if place.endswith(f":{port:04X}")]
    assert own == [f"0100007F:{port:04X}"]


def test_ctrl_c_ends_it_in_good_order(models: Models) -> None:
    with serving(models.paths[:1]) as running:
        assert httpx.get(running.address, trust_env=False).status_code == 200
        running.process.send_signal(signal.SIGINT)
        out, err = running.process.communicate(timeout=60)
        assert running.process.returncode == 0
        assert "ended" in out
        assert err == ""


def test_ctrl_c_ends_it_with_connections_open_and_requests_waiting(models: Models) -> None:
    with serving(models.paths[1:2]) as running, ExitStack() as stack:
        silent = [stack.enter_context(connected(running, part)) for part in halves(running)]
        answer = httpx.get(running.address, timeout=60, trust_env=False)
        assert answer.status_code == 200  # by now it has read what came before
        running.process.send_signal(signal.SIGINT)
        out, err = running.process.communicate(timeout=60)
        assert (running.process.returncode, out.splitlines()[-1], err) == (0, "ended", "")
        assert b"503" in silent[2].recv(1000)  # it had asked, and is told


def halves(server: Server) -> list[bytes]:
    """What a client sends that never finishes: nothing, half a head, half a body."""
    host = f"Host: {server.origin.removeprefix('http://')}\r\n"
    post = f"POST {server.address.removeprefix(server.origin)}api/sequence HTTP/1.1\r\n"
    body = "Content-Length: 100\r\n\r\n{"
    wrong = f"POST /wrong HTTP/1.1\r\n{host}{body}"
    return [b"", b"GET / HT", f"{post}{host}{body}".encode(), wrong.encode()]


def connected(server: Server, part: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", int(server.origin.rpartition(":")[2])), 60)
    made.sendall(part)
    return made


def test_half_requests_do_not_keep_others_waiting(server: Server) -> None:
    body = {"model": 0, "symbols": ["1"]}
    with ExitStack() as stack:
        for part in halves(server):
            for _ in range(80):
                stack.enter_context(connected(server, part))
        assert post(server, "sequence", body).status_code == 200
    assert post(server, "sequence", body).status_code == 200


def test_more_silent_connections_than_files_do_not_shut_the_page_out(server: Server) -> None:
    resource = pytest.importorskip("resource")
    allow_many_files()
    limit, few = resource.RLIMIT_NOFILE, 1024
    before = resource.prlimit(server.process.pid, limit)
    resource.prlimit(server.process.pid, limit, (few, before[1]))
    try:
        with ExitStack() as stack:
            for _ in range(few + 200):
                stack.enter_context(connected(server, b"GET / HT"))
            answer = post(server, "sequence", {"model": 0, "symbols": ["1"]})
            assert answer.status_code == 200
    finally:
        resource.prlimit(server.process.pid, limit, before)


def test_a_body_that_does_not_come_is_refused_all_the_same(server: Server) -> None:
    host = server.origin.removeprefix("http://")
    lacking = f"POST /wrong/ HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100000000\r\n\r\n"
    with connected(server, lacking.encode()) as asked:
        assert asked.recv(100).startswith(b"HTTP/1.1 403")


def test_other_methods_and_addresses_get_one_clear_line(server: Server) -> None:
    for method, path, status in (
        ("PUT", "", 405),
        ("DELETE", "api/sequence", 405),
        ("GET", "api/sequence", 405),
        ("POST", "main.js", 405),
        ("GET", "main.js/", 404),
        ("GET", "a" * 50_000, 404),
    ):
        answer = httpx.request(method, server.address + path, trust_env=False)
        assert answer.status_code == status, (method, path)
        error(answer)
    assert httpx.head(server.address, trust_env=False).status_code == 200
    with connected(server, b"GET /" + b"a" * 200_000) as long:
        assert long.recv(100).startswith(b"HTTP/1.1 400")
    bare = httpx.get(server.address.rstrip("/"), trust_env=False)
    assert (bare.status_code, bare.headers["location"]) == (
        307,
        f"/{server.address.split('/')[3]}/",
    )


def test_a_long_wrong_value_gets_a_short_answer(server: Server) -> None:
    body = {"model": 0, "length": 5, "distribution": "x" * 60_000}
    assert len(error(post(server, "random", body))) < 400


def test_each_start_has_a_token_of_its_own(models: Models, server: Server) -> None:
    with serving(models.paths[:1]) as other:
        token, own = other.address.split("/")[3], server.address.split("/")[3]
        assert token != own
        assert len(token) >= 32


def test_a_taken_port_is_said_in_one_line(models: Models, server: Server) -> None:
    port = server.origin.rpartition(":")[2]
    words = ["explore", models.paths[0], "--no-open", "--port", port]
    done = subprocess.run(
        [sys.executable, "-m", "taskhint", *words], capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1
