"""What stands at a Ray address: seen within seconds, whatever answers there, or does not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from taskhint.cli import main
from taskhint.sweeps import greeting

SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
NOT_FOUND = bytes((0, 0, 1, 1, 5, 0, 0, 0, 1, 0x8D))  # status 404, as a proxy says it
HEALTH = "/grpc.health.v1.Health/Check"


class Ray:
    """The command with an address, and what it says."""

    def __init__(self, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.out, self._capsys = out, capsys
        self._words = [
            "sweep",
            "sort/standard",
            "--lengths",
            "3",
            "--out",
            str(out),
            "--on",
            "ray",
        ]

    def refuses(self, address: str = "") -> str:
        given = ["--address", address] if address else []
        assert main([*self._words, *given]) == 3
        assert not self.out.exists()
        said = self._capsys.readouterr().err
        assert said.count("\n") == 1 and said.startswith("taskhint: error: ")
        return said


@pytest.fixture
def ray(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ray:
    return Ray(tmp_path / "out", capsys)


@contextmanager
def answering(said: bytes, hangs: bool = False) -> Iterator[int]:
    """A server that answers the same to everybody; its port."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            line = server.accept()[0]
            with line:
                line.recv(65536)
                line.sendall(said)
                if hangs:
                    over.wait(60)

        beside = threading.Thread(target=answer)
        beside.start()
        yield server.getsockname()[1]
        over.set()
        beside.join()


class Healthy(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Knows the one service that is asked for, as a Ray head does."""

    def service(self, call: Any) -> Any:
        if call.method != HEALTH:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda *_: b"\x08\x01")


@contextmanager
def grpc_server(*handlers: grpc.GenericRpcHandler) -> Iterator[int]:
    server = grpc.server(ThreadPoolExecutor(1), handlers=handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait()


def test_a_head_is_told_from_its_port_for_clients() -> None:
    with grpc_server(Healthy()) as port:
        assert greeting.answers("127.0.0.1", port) is True
    with grpc_server() as port:  # which has other services
        assert greeting.answers("127.0.0.1", port) is False
        assert greeting.answers("127.0.0.1", port, clients=True) is True


OTHERS = {
    "proxy": SETTINGS + NOT_FOUND,
    "web server": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH\r\n",
    "hangs up": SETTINGS,
    "says nothing": b"",
}


@pytest.mark.parametrize("said", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("kind", ["", "ray://"])
def test_something_else_at_the_address_is_refused(ray: Ray, said: bytes, kind: str) -> None:
    with answering(said) as port:
        address = f"{kind}127.0.0.1:{port}"
        assert f"what answers at {address} is no Ray head" in ray.refuses(address)


@pytest.mark.parametrize("said", [b"", SETTINGS, SETTINGS + NOT_FOUND[:5]])
def test_who_does_not_answer_in_time_is_refused(
    ray: Ray, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(greeting, "CONNECT_SECONDS", 0.2)
    with answering(said, hangs=True) as port:
        assert "does not answer: timed out" in ray.refuses(f"127.0.0.1:{port}")


def test_an_address_where_nobody_is_is_refused(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        assert f"the Ray address {address} does not answer" in ray.refuses(address)
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert f"the Ray address {address} does not answer" in ray.refuses()


def _slow(answer: threading.Event) -> Callable[..., Any]:
    def found(*_: object, **__: object) -> Any:
        answer.wait(60)
        raise OSError("at last")

    return found


def test_a_name_server_that_is_silent_is_not_waited_for(
    ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert greeting.ANSWER_SECONDS <= 8, "the command as a whole has 15"
    monkeypatch.setattr(greeting, "ANSWER_SECONDS", 0.1)
    over = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", _slow(over))
    said = ray.refuses("far.example:6379")
    over.set()
    assert "the Ray address far.example:6379 does not answer: timed out" in said


def test_with_tls_nobody_is_asked_in_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from taskhint.sweeps.cluster import check_answers

    monkeypatch.setenv("RAY_USE_TLS", "1")
    with answering(b"") as port:
        check_answers(f"127.0.0.1:{port}")
        socket.create_connection(("127.0.0.1", port)).close()  # the first to come
