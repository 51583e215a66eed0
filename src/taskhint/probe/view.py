"""One traced pass over prompts and right answers, and what every probe asks of it.

Shapes: B examples, n input symbols, T tokens that the model reads, A answer positions, q symbols,
D width.

Blocks count from 0. Positions 0..n-1 hold the input, position n holds ⊥, and the A = T - n - 1
positions after it hold the answer, without its last token: nothing is predicted from that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from taskhint.data.dataset import fresh_examples
from taskhint.model.decoder import Decoder
from taskhint.model.trace import Trace
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.tasks.task import Examples, Task

MAX_LENGTH = 1000
VALUES_AT_ONCE = (
    1 << 24
)  # of attention logits and weights, all blocks and heads: 128 MB in float32 at their largest


@dataclass(frozen=True)
class Subject:
    """A model, the task whose head is read, and the seed from which fresh test sequences come."""

    decoder: Decoder
    task: Task
    seed: int = 0

    @classmethod
    def of(cls, run: Run) -> Subject:
        """A run's newest checkpoint on uniform test sequences of its main task."""
        if run.task.given:
            raise UserError(
                f"answers of task {run.task.kind!r} contain given tokens; such tasks cannot be "
                "probed"
            )
        return cls(run.model, run.task.for_test("uniform"), run.recipe.seed)

    @property
    def depth(self) -> int:
        return self.decoder.config.depth

    @property
    def heads(self) -> int:
        return self.decoder.config.heads

    @property
    def encoder_basis(self) -> Tensor:
        """(V, D) the embedding's rows."""
        return _exact(self.decoder.embedding.weight)

    @property
    def decoder_basis(self) -> Tensor:
        """(V, D) the unembedding's rows, of the main task's head. Its bias is left out, as in the
        paper.
        """
        weight = self.decoder.head(self.task.kind).weight
        assert isinstance(weight, Tensor)
        return _exact(weight)


@dataclass(frozen=True)
class View:
    """A subject's trace of equally long examples with their right answers."""

    subject: Subject
    tokens: Tensor  # (B, T) what the model read
    following: Tensor  # (B, T) the right next token at each position
    inputs: int
    trace: Trace

    @property
    def answer(self) -> slice:
        """The answer positions: those after ⊥."""
        return slice(self.inputs + 1, self.tokens.shape[1])

    @property
    def symbols(self) -> int:
        return self.subject.task.vocab.symbols

    def on_encoder(self, name: str, positions: slice) -> Tensor:
        """(B, P, q) dot products of a traced stream with each symbol's embedding row: plain,
        nothing is normed.
        """
        return (
            _exact(self.trace[name][:, positions]) @ self.subject.encoder_basis[: self.symbols].T
        )

    def on_decoder(self, name: str, positions: slice) -> Tensor:
        """(B, P, q) dot products of a traced stream with each symbol's unembedding row: no norm
        and no bias.
        """
        return (
            _exact(self.trace[name][:, positions]) @ self.subject.decoder_basis[: self.symbols].T
        )

    @cached_property
    def next_larger(self) -> Tensor:
        """(B, A) the smallest input symbol that is larger than the one at each answer position; -1
        if there is none.
        """
        ordered = self.tokens[:, : self.inputs].sort(dim=1).values
        place = torch.searchsorted(ordered, self.tokens[:, self.answer].contiguous(), right=True)
        ended = torch.nn.functional.pad(ordered, (0, 1), value=-1)
        return ended.gather(1, place)


def views(subject: Subject, length: int, examples: int) -> Iterator[View]:
    """Traces of fresh test sequences of one length, a bounded number of attention weights at a
    time.
    """
    _check(length, examples)
    one = fresh_examples(subject.task, subject.seed, length, 0, 1).tokens.shape[1]
    at_once = max(1, VALUES_AT_ONCE // (2 * subject.depth * subject.heads * one**2))
    for start in range(0, examples, at_once):
        chunk = fresh_examples(
            subject.task, subject.seed, length, start, min(at_once, examples - start)
        )
        for size in np.unique(chunk.sizes):
            rows = chunk.sizes == size
            yield view_of(subject, torch.from_numpy(chunk.tokens[rows, :size]), _inputs(chunk))


@torch.no_grad()
def view_of(subject: Subject, sequences: Tensor, inputs: int) -> View:
    """The trace of (B, T + 1) sequences, prompt and answer."""
    tokens = sequences[:, :-1]
    return View(
        subject,
        tokens,
        sequences[:, 1:],
        inputs,
        subject.decoder.trace(tokens, subject.task.kind, inputs),
    )


def view_of_prompt(subject: Subject, prompt: list[int]) -> View:
    """The trace of one prompt with its right answer."""
    sequence = [*prompt, *subject.task.solve(prompt)]
    return view_of(subject, torch.tensor([sequence]), prompt.index(subject.task.vocab.delimiter))


def _inputs(chunk: Examples) -> int:
    lengths = np.unique(chunk.inputs)
    if len(lengths) > 1:
        raise UserError(
            "examples of one length differ in their input lengths; such tasks cannot be probed"
        )
    return int(lengths[0])


def _check(length: int, examples: int) -> None:
    if not 1 <= length <= MAX_LENGTH:
        raise UserError(
            f"length {length} is not in 1..{MAX_LENGTH}; a probe keeps whole attention maps"
        )
    if examples < 1:
        raise UserError(f"--examples {examples} is too few; at least 1")


def _exact(values: Tensor) -> Tensor:
    """Short number formats are multiplied in float32: what is measured is the model, not the
    measurement.
    """
    return values.detach().to(torch.promote_types(values.dtype, torch.float32))
