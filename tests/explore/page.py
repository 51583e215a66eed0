"""What the tests of the page share: models, a server of its own process, a browser."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

from taskhint.construct import construct
from taskhint.recipes import find_recipe
from taskhint.runs.run import Run, create, load, new_decoder, save_checkpoint
from taskhint.system.plugins import import_source

RESULTS = Path(__file__).parents[2] / "results" / "models"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "no Chromium with its chromedriver on this machine; the page cannot be tested without them. "
    "On Debian: apt-get install chromium chromium-driver"
)

PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar

from taskhint import Edit
from taskhint.tasks.task import SymbolTask


@dataclass(frozen=True)
class KnockOutLater(Edit):
    """What a head gathers from a position on becomes zero."""

    kind: ClassVar[str] = "explored-knock-out-later"

    block: int
    head: int
    start: int

    @property
    def at(self):
        return f"blocks.{self.block}.attention.heads"

    def change(self, value, other):
        changed = value.clone()
        changed[:, self.start :, self.head] = 0
        return changed


@dataclass(frozen=True)
class Backwards(SymbolTask):
    """The input from its end to its beginning."""

    kind: ClassVar[str] = "explored-backwards"
    about: ClassVar[str] = "x1 .. xn ⊥ -> xn .. x1"

    def solve(self, prompt):
        return list(reversed(prompt[:-1]))
'''


@dataclass(frozen=True)
class Models:
    """Four runs: hand-built, two that were trained, and one of a plug-in's task."""

    runs: tuple[Run, ...]
    plugin: Path

    @property
    def paths(self) -> list[str]:
        return [str(run.path) for run in self.runs]


@cache
def _plugin() -> Path:
    """One file for a whole process: a kind can be registered once."""
    plugin = Path(mkdtemp(prefix="taskhint-test-")) / "explored_plugin.py"
    plugin.write_text(PLUGIN)
    return plugin


def make_models(directory: Path) -> Models:
    plugin = _plugin()
    task = import_source(str(plugin)).Backwards(symbols=12)
    recipe = find_recipe("sort/tempered").change(task=task)
    own = create(directory / "own", recipe)
    save_checkpoint(own, 0, dict(new_decoder(recipe).named_parameters()), {})
    built = construct(directory / "built", 20, 600)
    return Models(
        (built, load(RESULTS / "sort-best"), load(RESULTS / "increment-best"), own), plugin
    )


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[str]
    address: str  # with the token

    @property
    def origin(self) -> str:
        return self.address[: self.address.index("/", 8)]

    @property
    def memory(self) -> int:
        """Bytes that the server has in memory, at the most so far."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024


@contextmanager
def serving(paths: Sequence[str], *options: str) -> Iterator[Server]:
    """`taskhint explore` in a process of its own, ended by Ctrl-C."""
    command = [sys.executable, "-m", "taskhint", "explore", *paths, "--no-open", "--threads", "1"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line.startswith("Open http://127.0.0.1:"), process.communicate()[1]
            yield Server(process, line.split()[1].partition("#")[0])
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


@contextmanager
def browsing(width: int = 1600, dark: bool = False) -> Iterator[Page]:
    """A fresh headless browser; a machine without one fails in one line."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.fail(MISSING, pytrace=False)
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        page = Page(chrome)
        yield page
        page.check_quiet()
    finally:
        chrome.quit()


class Page:
    """The page in a browser, as a person sees and uses it."""

    def __init__(self, chrome: webdriver.Chrome) -> None:
        self.chrome = chrome
        self.allowed: tuple[str, ...] = ("data:",)

    def open(self, address: str, state: str = "") -> None:
        self.allowed = (*self.allowed, address.partition("#")[0].rpartition("/")[0] + "/")
        self.chrome.get("about:blank")
        self.chrome.get(address + state)
        self.wait("return document.body.dataset.ready")

    def wait(self, script: str, *arguments: Any) -> Any:
        return WebDriverWait(self.chrome, 60, 0.05).until(lambda _: self.run(script, *arguments))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.chrome.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        found = self.run(
            "return document.querySelector(arguments[0])?.textContent ?? ''", selector
        )
        return str(found)

    def wait_text(self, selector: str, part: str) -> str:
        script = "return document.querySelector(arguments[0]).textContent.includes(arguments[1])"
        self.wait(script, selector, part)
        return self.text(selector)

    def at(self, position: int) -> None:
        """Wait until the page shows a position."""
        self.wait_text("#where", f"Position {position} of")

    def reload(self, action: str, *arguments: Any) -> None:
        """Do something that loads anew, and wait for it."""
        before = self.run("return document.body.dataset.ready")
        self.run(action, *arguments)
        self.wait("return document.body.dataset.ready !== arguments[0]", before)

    def tables(self, side: int) -> list[list[list[str]]]:
        """The numbers of a side: attention, logits, streams; rows of cells with a head row."""
        script = """
        const side = document.querySelectorAll("article")[arguments[0]];
        const boxes = [...side.querySelectorAll("details.numbers")];
        for (const box of boxes) box.open = true;
        const full = boxes.every((box) => box.querySelector("table"));
        return full && boxes.map((box) => [...box.querySelectorAll("tr")].map(
          (row) => [...row.cells].map((cell) => cell.textContent)));
        """
        found: list[list[list[str]]] = self.wait(script, side)
        return found

    def check_quiet(self) -> None:
        """No error in the console, and no request to anybody else."""
        console = self.chrome.get_log("browser")  # type: ignore[no-untyped-call]
        assert [entry for entry in console if entry["level"] == "SEVERE"] == []
        for entry in self.chrome.get_log("performance"):  # type: ignore[no-untyped-call]
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                assert url.startswith(self.allowed), url


@dataclass(frozen=True)
class Wanted:
    """What the page must show at a position, computed here without the page's own code."""

    weights: Any  # (L, H, p + 1)
    attention_logits: Any
    encoder: Any  # (S, V)
    decoder: Any
    logits: Any  # (V,)
    said: str


@torch.no_grad()
def wanted(run: Run, symbols: Sequence[str], position: int, edits: Sequence[Any] = ()) -> Wanted:
    task, model = run.task, run.model
    first = task.vocab.first_symbol
    prompt = task.prompt([int(word) - first for word in symbols])
    tokens = torch.tensor([[*prompt, *task.solve(prompt)][:-1]])
    trace = model.trace(tokens, task.kind, len(symbols), edits=edits)
    depth = model.config.depth
    names = ["embedding"]
    for i in range(depth):
        names += [f"blocks.{i}.after_attention", f"blocks.{i}.after_mlp"]
    stream = np.stack([trace[name][0, position].double().numpy() for name in names])
    weight = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def heads(what: str) -> Any:
        rows = [trace[f"blocks.{i}.attention.{what}"][0, :, position] for i in range(depth)]
        return torch.stack(rows)[:, :, : position + 1].numpy()

    logits = trace["logits"][0, position].numpy()
    return Wanted(
        heads("weights"),
        heads("logits"),
        stream @ weight["embedding.weight"].T,
        stream @ weight[f"heads.{task.kind}.weight"].T,
        logits,
        task.vocab.words([int(logits.argmax())])[0],
    )


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
