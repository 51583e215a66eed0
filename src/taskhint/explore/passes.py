"""Forward passes that the page asks about: each is made once and kept while there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from taskhint.explore.subject import Reading, Subject
from taskhint.model.edits import Edit, ReplaceStream
from taskhint.model.trace import Trace
from taskhint.system.errors import UserError

MOST_EDITS = 8
MOST_KEPT = 1 << 28  # bytes of all kept passes together


@dataclass(frozen=True)
class Pass:
    """One traced pass of a model over an input and its right answer."""

    subject: Subject
    reading: Reading
    trace: Trace

    @property
    def size(self) -> int:
        return sum(value.numel() * value.element_size() for value in self.trace.values())

    @property
    def streams(self) -> list[str]:
        """The names of the streams that are projected, in the order of the pass."""
        parts = ("after_attention", "after_mlp")
        depth = self.subject.decoder.config.depth
        return ["embedding", *(f"blocks.{i}.{part}" for i in range(depth) for part in parts)]

    @cached_property
    def bases(self) -> dict[str, Tensor]:
        """(V, D) the rows of the embedding and of the main head's unembedding."""
        decoder, task = self.subject.decoder, self.subject.task
        unembedding = decoder.head(task.kind).weight
        assert isinstance(unembedding, Tensor)
        rows = {"encoder": decoder.embedding.weight, "decoder": unembedding}
        return {name: exact(row).cpu() for name, row in rows.items()}

    def projected(self, stream: str, basis: str, positions: slice | int) -> Tensor:
        """(..., V) plain dot products of a stream with a basis: nothing is normed, no bias."""
        return exact(self.trace[stream][0, positions]) @ self.bases[basis].T

    @cached_property
    def logits(self) -> Tensor:
        """(T, V)"""
        return exact(self.trace["logits"][0])


class Passes:
    """The newest passes, as many as there is room for."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.subjects = subjects
        self._kept: OrderedDict[tuple[int, tuple[str, ...], tuple[Edit, ...]], Pass] = (
            OrderedDict()
        )

    def subject(self, model: int) -> Subject:
        if not 0 <= model < len(self.subjects):
            raise UserError(f"model {model} is not in 0..{len(self.subjects) - 1}")
        return self.subjects[model]

    def get(self, model: int, symbols: tuple[str, ...], edits: tuple[Edit, ...]) -> Pass:
        key = (model, symbols, edits)
        if key not in self._kept:
            self._kept[key] = traced(self.subject(model), symbols, edits)
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(p.size for p in self._kept.values()) > MOST_KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]


@torch.no_grad()
def traced(subject: Subject, symbols: Sequence[str], edits: Sequence[Edit] = ()) -> Pass:
    """A model's pass over an input that a person wrote, with edits on the way."""
    reading = subject.sequence(symbols)
    _check(subject, edits)
    tokens = torch.tensor([reading.read], device=subject.decoder.device)
    trace = subject.decoder.trace(tokens, subject.task.kind, reading.inputs, edits=edits).cpu()
    if not trace["logits"].isfinite().all():
        raise UserError("the pass gave numbers that are not finite; make the edits smaller")
    return Pass(subject, reading, trace)


def _check(subject: Subject, edits: Sequence[Edit]) -> None:
    if len(edits) > MOST_EDITS:
        raise UserError(f"{len(edits)} edits are too many; at most {MOST_EDITS}")
    for edit in edits:
        if isinstance(edit, ReplaceStream):
            subject.check_tokens(edit.tokens)


def exact(values: Tensor) -> Tensor:
    """Short number formats are multiplied in float32: what is measured is the model."""
    return values.detach().to(torch.promote_types(values.dtype, torch.float32))
