"""The server: what it answers and what it refuses, asked by real requests to a real process."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from taskhint.cli import main
from taskhint.data.dataset import fresh_examples
from taskhint.explore.documents import pack
from taskhint.explore.saved import bundled, parse_edit, saved_page
from taskhint.explore.server import front_end
from taskhint.explore.subject import LONGEST, Subject, subjects
from taskhint.model.edits import KnockOutHead, ScaleTemperature
from taskhint.recipes import find_recipe
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.tasks import Task
from tests.explore.page import Models, Server, make_models, serving, wanted


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return make_models(tmp_path_factory.mktemp("explored"))


@pytest.fixture(scope="module")
def server(models: Models) -> Iterator[Server]:
    with serving(models.paths, "--import", str(models.plugin)) as running:
        yield running


def post(server: Server, name: str, body: Any, **headers: str) -> httpx.Response:
    data = body if isinstance(body, (bytes, str)) else json.dumps(body)
    address = f"{server.address}api/{name}"
    return httpx.post(address, content=data, headers=headers, timeout=60, trust_env=False)


def error(answer: httpx.Response) -> str:
    text: str = answer.json()["error"]
    assert "\n" not in text
    assert text
    return text


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What source.js does, in Python."""
    start = 4 + int.from_bytes(data[:4], "little")
    document = json.loads(data[4:start])
    arrays = {}
    for name, place in document["arrays"].items():
        kind, count = np.dtype(place["type"]), int(np.prod(place["shape"]))
        found = np.frombuffer(data, kind, count, start + place["at"])
        arrays[name] = found.reshape(place["shape"])
    return document, arrays


def ask(server: Server, name: str, **body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    answer = post(server, name, body)
    assert answer.status_code == 200, answer.text
    return unpack(answer.content)


def test_packing_keeps_every_array() -> None:
    arrays: dict[str, Any] = {
        "a": np.arange(5, dtype=np.float32),
        "b": np.array([[1, 2], [3, 4]], dtype=np.uint8),
        "c": np.zeros((0, 3), dtype=np.int32),
    }
    document, found = unpack(pack({"word": "⊥"}, arrays))
    assert document["word"] == "⊥"
    for name, array in arrays.items():
        assert np.array_equal(found[name], array)


def test_a_position_is_what_the_trace_says(server: Server, models: Models) -> None:
    symbols = ["5", "17", "3", "17"]
    for model in (0, 1):
        right = wanted(models.runs[model], symbols, 6)
        document, found = ask(server, "position", model=model, symbols=symbols, position=6)
        assert np.allclose(found["weights"], right.weights, atol=1e-5)
        assert np.allclose(found["attention_logits"], right.attention_logits, atol=1e-5)
        assert np.allclose(found["encoder"], right.encoder, rtol=1e-5, atol=1e-5)
        assert np.allclose(found["decoder"], right.decoder, rtol=1e-5, atol=1e-5)
        assert np.allclose(found["logits"], right.logits, atol=1e-5)
        marks = {name: document[name] for name in ("token", "right", "minimum", "successor")}
        assert marks == {"token": 4, "right": 16, "minimum": 2, "successor": 16}


def test_a_heat_map_is_the_trace_in_256_levels(server: Server, models: Models) -> None:
    symbols = [str(1 + i * 7 % 20) for i in range(300)]
    document, found = ask(
        server, "map", model=0, symbols=symbols, show="attention", block=1, head=1
    )
    assert document["shape"] == [600, 600]
    assert document["steps"] == [2, 2]
    assert found["cells"].shape == (300, 300)
    row = wanted(models.runs[0], symbols, 599).weights[1, 1]
    before = np.append(wanted(models.runs[0], symbols, 598).weights[1, 1], 0.0)
    pooled = np.maximum(row, before).reshape(300, 2).max(axis=1)
    levels = found["cells"][299] / 255 * (document["high"] - document["low"]) + document["low"]
    assert np.abs(levels - pooled).max() <= 0.51 / 255 * document["high"]


def test_random_inputs_are_fresh_test_inputs(server: Server, models: Models) -> None:
    for model, distribution in ((0, "rep:3"), (1, "uniform"), (2, "nines"), (3, "uniform")):
        document, _ = ask(
            server, "random", model=model, length=8, distribution=distribution, number=4
        )
        run = models.runs[model]
        task = run.task.for_test(distribution)
        right = fresh_examples(task, run.recipe.seed, 8, 4, 1).tokens[0, :8]
        assert document["input"] == run.task.vocab.words(right.tolist())
    dense, _ = ask(server, "random", model=1, length=100, distribution="dense", number=1)
    values = sorted({int(word) for word in dense["input"]})
    assert values[-1] - values[0] < 100
    assert len(dense["input"]) == 100


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


def test_the_saved_page_needs_inputs_and_stays_small(models: Models) -> None:
    found = subjects(models.paths[:1])
    with pytest.raises(UserError, match="too many"):
        saved_page(found, [["1"] * 501])
    with pytest.raises(UserError, match="larger than"):
        saved_page(found, [[str(1 + i % 20) for i in range(n)] for n in (500, 499, 498)])
    assert main(["explore", models.paths[0], "--save", "x.html"]) == 2


def test_edits_can_be_written_by_hand() -> None:
    assert parse_edit("knock-out-head block=1 head=0 by=mean") == KnockOutHead(1, 0, "mean")
    assert parse_edit("scale-temperature block=0 factor=2") == ScaleTemperature(0, 2.0)
    for text in ("", "knock-out-head", "knock-out-head block", "knock-out block=1"):
        with pytest.raises(UserError):
            parse_edit(text)


def test_the_bundle_holds_every_module_once_and_imports_none() -> None:
    modules = {n: t.decode() for n, t in front_end().items() if n.endswith(".js")}
    text = bundled(modules)
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith(("import ", "export "))]
    names = [line.split("(")[0].split()[-1] for line in lines if line.startswith("function ")]
    assert len(set(names)) == len(names)
    for module in modules:
        assert f'from "./{module}"' not in text


def test_without_the_extra_the_command_says_what_to_install(models: Models) -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from taskhint.cli import main\n"
        f"raise SystemExit(main(['explore', {models.paths[0]!r}, '--no-open']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 2
    assert "taskhint[explore]" in done.stderr


@pytest.mark.parametrize("kind", sorted(Task.kinds()))
def test_inputs_of_every_task_can_be_drawn_and_written(kind: str, models: Models) -> None:
    """Any model does here: what is read for an input depends on the task alone."""
    recipe = find_recipe("sort/tempered")
    run = Run(Path(), replace(recipe, task=Task.kinds()[kind]()))
    run.__dict__["model"] = models.runs[0].model
    subject = Subject(kind, run)
    if kind == "fill":
        with pytest.raises(UserError, match="more than what a person writes"):
            subject.random(4, "uniform", 0)
        return
    words = subject.random(4, subject.distributions[0], 0)
    reading = subject.sequence(words)
    assert any(reading.asked)
    assert subject.written(reading.tokens[: reading.asked.index(True) + 1]) == words


def test_models_of_one_name_are_told_apart(models: Models) -> None:
    names = [subject.name for subject in subjects([models.paths[0], models.paths[0]])]
    assert names == ["built", "built (2)"]


def test_too_many_tokens_for_a_wide_model_are_refused(models: Models) -> None:
    subject = Subject("one", models.runs[1])
    with pytest.raises(UserError, match="too many"):
        subject.check_tokens([0] * 4001)
