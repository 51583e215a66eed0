"""How long the explore page's server takes to answer, beside the bare forward pass.

The server is a process of its own, asked as the page asks it; every request has a fresh input.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch

from benchmarks.timing import Work, alternate, medians
from taskhint.data.dataset import fresh_examples
from taskhint.recipes import find_recipe
from taskhint.runs.run import Run, create, new_decoder, save_checkpoint
from taskhint.system.errors import UserError
from taskhint.system.extras import need

RECIPE = "sort/tempered"  # at pocket scale; what its weights are does not matter
ALLOWED = {100: 150.0, 500: 2000.0}  # milliseconds for a trace, by length of the input
ROUNDS = 15


def measure(
    rounds: int | None = None, allowed: dict[int, float] = ALLOWED
) -> dict[str, dict[str, float]]:
    """The document under "explore", by length. `trace` is one request that needs a new pass;
    `page` is all that the page asks for a new input: trace, position and heat map.
    """
    need("uvicorn", "the benchmark of taskhint explore")
    with tempfile.TemporaryDirectory() as directory:
        run = _made(Path(directory) / "run")
        with _serving(run) as page:
            works: dict[str, Work] = {}
            for length in allowed:
                works |= {f"{name} {length}": work for name, work in _works(run, page, length)}
            spent = medians(alternate(works, rounds or ROUNDS, "explore"))
    return {
        str(length): _result({n: 1e3 * spent[f"{n} {length}"] for n in NAMES}, allowed[length])
        for length in allowed
    }


NAMES = ("bare", "trace", "page")


def _result(milliseconds: dict[str, float], allowed: float) -> dict[str, float]:
    ratio = milliseconds["trace"] / milliseconds["bare"]
    return {**milliseconds, "against_bare": ratio, "allowed": allowed}


def _made(directory: Path) -> Run:
    recipe = find_recipe(RECIPE)
    run = create(directory, recipe)
    save_checkpoint(run, 0, dict(new_decoder(recipe).named_parameters()), {})
    return run


class _Page:
    """Asks the server for documents, as the page does."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None
        self._base = parts.path
        self._connection = HTTPConnection(parts.hostname, parts.port)

    def close(self) -> None:
        self._connection.close()

    def ask(self, name: str, symbols: list[str], **more: Any) -> None:
        body = json.dumps({"model": 0, "symbols": symbols, "edits": [], **more})
        self._connection.request("POST", f"{self._base}api/{name}", body)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise UserError(f"the server refused: {said.decode():.200}")


@contextmanager
def _serving(run: Run) -> Iterator[_Page]:
    command = [sys.executable, "-m", "taskhint", "explore", str(run.path), "--no-open"]
    threads = ["--threads", str(torch.get_num_threads())]
    with subprocess.Popen([*command, *threads], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().split()
            if len(said) < 2:
                raise UserError("the server of the page did not start")
            with closing(_Page(said[1])) as page:
                yield page
        finally:
            process.terminate()


def _works(run: Run, page: _Page, length: int) -> Iterator[tuple[str, Work]]:
    def bare(number: int) -> None:
        with torch.no_grad():
            run.model(torch.tensor([_tokens(run, length, number)]), run.task.kind, length)

    def trace(number: int, more: bool) -> None:
        # numbers of their own: none of the two finds a pass that the other left behind
        symbols = run.task.vocab.words(_tokens(run, length, 2 * number + more)[:length])
        page.ask("sequence", symbols)
        if more:
            page.ask("position", symbols, position=length)
            page.ask("map", symbols, show="attention", block=0, head=0)

    works = (bare, partial(trace, more=False), partial(trace, more=True))
    return zip(NAMES, works, strict=True)


def _tokens(run: Run, length: int, number: int) -> list[int]:
    """What the model reads: an input, ⊥ and the right answer but for its last token."""
    examples = fresh_examples(run.task.for_test("uniform"), 1, length, number, 1)
    tokens: list[int] = examples.tokens[0, :-1].tolist()
    return tokens
