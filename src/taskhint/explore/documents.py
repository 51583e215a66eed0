"""What the page is told: requests that are checked as they are read, and documents with arrays.

A document is JSON and named arrays in one piece: four bytes with the length of the JSON, the JSON,
zero bytes up to a multiple of 8, then the arrays, little-endian. Under `arrays` the JSON has type,
shape and place of each. Shapes: T tokens that the model reads, L blocks, H heads, S streams, V
vocabulary, p + 1 keys that position p sees.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from taskhint.explore.passes import Pass, Passes
from taskhint.explore.subject import LONGEST, Subject
from taskhint.model.edits import Edit
from taskhint.system.errors import UserError
from taskhint.system.settings import Settings, default_of, to_json
from taskhint.tasks.task import Task

Arrays = dict[str, npt.NDArray[Any]]
MAP_SIDE = 512  # cells of a heat map on either side; more are put together by their largest


@dataclass(frozen=True)
class RandomRequest(Settings):
    """One fresh test input of a model's task."""

    label: ClassVar[str] = "request"

    model: int
    length: int
    distribution: str = "uniform"
    number: int = 0


@dataclass(frozen=True)
class SequenceRequest(Settings):
    """What a model reads and says at every position."""

    label: ClassVar[str] = "request"

    model: int
    symbols: tuple[str, ...]
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class PositionRequest(SequenceRequest):
    """Everything at one position."""

    position: int = 0


@dataclass(frozen=True)
class MapRequest(SequenceRequest):
    """One value of the whole sequence: the attention of a head, or a stream on a basis."""

    show: Literal["attention", "encoder", "decoder"] = "attention"
    block: int = 0
    head: int = 0
    stream: str = "embedding"


def pack(document: dict[str, Any], arrays: Arrays) -> bytes:
    """A document and its arrays as bytes."""
    places, end = {}, 0
    for name, array in arrays.items():
        places[name] = {"type": array.dtype.name, "shape": array.shape, "at": end}
        end += -(-array.nbytes // 8) * 8
    head = json.dumps({**document, "arrays": places}, ensure_ascii=False, allow_nan=False).encode()
    head += b" " * (-(4 + len(head)) % 8)
    body = b"".join(a.tobytes() + b"\0" * (-a.nbytes % 8) for a in arrays.values())
    return len(head).to_bytes(4, "little") + head + body


def models_document(subjects: list[Subject]) -> dict[str, Any]:
    """What there is to look at."""
    return {
        "models": [_model(subject) for subject in subjects],
        "edits": [
            {"kind": kind, "settings": _template(edit)}
            for kind, edit in Edit.kinds().items()
            if not edit.__module__.startswith("taskhint.")
        ],
        "longest": LONGEST,
    }


def _template(edit: type[Edit]) -> str:
    """The settings of an edit of a user's own, to be filled in: `block= share=1.0`."""
    said = []
    for field in fields(edit):
        default = default_of(field)
        given = "" if default is MISSING else to_json(default)
        text = given if isinstance(given, str) else json.dumps(given, separators=(",", ":"))
        said.append(f"{field.name}={text}")
    return " ".join(said)


def _model(subject: Subject) -> dict[str, Any]:
    config, task, recipe = subject.decoder.config, subject.task, subject.run.recipe
    return {
        "name": subject.name,
        "recipe": recipe.name,
        "seed": recipe.seed,
        "updates": subject.run.checkpoint.step,
        "task": task.kind,
        "about": task.about,
        "depth": config.depth,
        "heads": config.heads,
        "mlp": config.mlp_width > 0,
        "temperature": config.temperature.kind,
        "positions": config.positions.kind,
        "words": task.vocab.words(range(task.vocab.size)),
        "symbols": task.vocab.symbols,
        "distributions": subject.distributions,
        "example": subject.written(task.worked_example()),
        "ordered": _orders(task),
        "drawable": task.vocab.symbols > 1 and not task.vocab.written,
    }


def _orders(task: Task) -> bool:
    """Whether answers are the input in order: then minimum and successor are worth marking."""
    prompt = task.worked_example()
    symbols = [token for token in prompt if token < task.vocab.symbols]
    return symbols != sorted(symbols) == list(task.solve(prompt))


def random_document(passes: Passes, request: RandomRequest) -> tuple[dict[str, Any], Arrays]:
    subject = passes.subject(request.model)
    return {"input": subject.random(request.length, request.distribution, request.number)}, {}


def sequence_document(passes: Passes, request: SequenceRequest) -> tuple[dict[str, Any], Arrays]:
    """Tokens, which of them are asked, what the model says, and how sure it is; (T,) each."""
    found = passes.get(request.model, request.symbols, request.edits)
    reading, logits = found.reading, found.logits
    right = torch.tensor(reading.tokens[1:])
    shares = logits.softmax(dim=1)
    said = logits.argmax(dim=1)
    document = {"inputs": reading.inputs, "asked": reading.asked, "streams": found.streams}
    return document, {
        "tokens": np.array(reading.tokens, dtype=np.int32),
        "said": _int32(said),
        "said_share": _float32(shares.gather(1, said[:, None])[:, 0]),
        "right_share": _float32(shares.gather(1, right[:, None])[:, 0]),
    }


def position_document(passes: Passes, request: PositionRequest) -> tuple[dict[str, Any], Arrays]:
    """Attention of every head, the streams on both bases, and the logits, at one position."""
    found = passes.get(request.model, request.symbols, request.edits)
    at, count = request.position, len(found.reading.read)
    if not 0 <= at < count:
        raise UserError(f"position {at} is not in 0..{count - 1}")
    document = {"position": at, "streams": found.streams, **_landmarks(found, at)}
    arrays = {
        "weights": _of_heads(found, "weights", at),
        "attention_logits": _of_heads(found, "logits", at),
        "logits": _float32(found.logits[at]),
        "shares": _float32(found.logits[at].softmax(dim=0)),
    }
    for basis in ("encoder", "decoder"):
        rows = [found.projected(name, basis, at) for name in found.streams]
        arrays[basis] = _float32(torch.stack(rows))
    return document, arrays


def _of_heads(found: Pass, what: str, at: int) -> npt.NDArray[np.float32]:
    """(L, H, p + 1) what position p's heads make of the keys that they see."""
    depth = found.subject.decoder.config.depth
    names = [f"blocks.{i}.attention.{what}" for i in range(depth)]
    return _float32(torch.stack([found.trace[name][0, :, at, : at + 1] for name in names]))


def _landmarks(found: Pass, at: int) -> dict[str, int]:
    """The ids that the page marks; -1 where there is none."""
    reading, symbols = found.reading, found.subject.task.vocab.symbols
    here = reading.tokens[at]
    inputs = [token for token in reading.tokens[: reading.inputs] if token < symbols]
    larger = [token for token in inputs if token > here] if here < symbols else []
    return {
        "token": here,
        "right": reading.tokens[at + 1],
        "said": int(found.logits[at].argmax()),
        "minimum": min(inputs, default=-1),
        "successor": min(larger, default=-1),
    }


def map_document(passes: Passes, request: MapRequest) -> tuple[dict[str, Any], Arrays]:
    """(rows, columns) levels 0..255 between `low` and `high`; `steps` values share a cell. Levels
    of attention are square roots: among many keys all weights are small.
    """
    found = passes.get(request.model, request.symbols, request.edits)
    values = _map_values(found, request)
    steps = [-(-side // MAP_SIDE) for side in values.shape]
    pooled = torch.nn.functional.max_pool2d(
        values[None, None], (steps[0], steps[1]), ceil_mode=True
    )[0, 0]
    low = min(0.0, float(pooled.min()))
    high = max(0.0, float(pooled.max()))
    power = 0.5 if request.show == "attention" else 1.0
    levels = ((pooled - low) / (high - low or 1.0)) ** power * 255.0
    document = {"low": low, "high": high, "power": power, "steps": steps, "shape": values.shape}
    return document, {"cells": levels.round().to(torch.uint8).contiguous().numpy()}


def _map_values(found: Pass, request: MapRequest) -> Tensor:
    config = found.subject.decoder.config
    if request.show == "attention":
        for name, number, count in (
            ("block", request.block, config.depth),
            ("head", request.head, config.heads),
        ):
            if not 0 <= number < count:
                raise UserError(f"{name} {number} is not in 0..{count - 1}")
        return found.trace[f"blocks.{request.block}.attention.weights"][0, request.head].float()
    if request.stream not in found.streams:
        raise UserError(f"stream {request.stream!r:.60} is not one of {', '.join(found.streams)}")
    return found.projected(request.stream, request.show, slice(None)).float()


def _float32(values: Tensor) -> npt.NDArray[np.float32]:
    return values.float().contiguous().numpy()


def _int32(values: Tensor) -> npt.NDArray[np.int32]:
    return values.to(torch.int32).contiguous().numpy()
