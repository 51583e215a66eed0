"""One traced pass over prompts and right answers, what every probe asks of it, and the rows that
probes keep of many such passes.

Shapes: B examples, n input symbols, T tokens that the model reads, P positions, A answer
positions, q symbols, V vocabulary, D width.

Blocks count from 0. Positions 0..n-1 hold the input, position n holds ⊥, and the A = T - n - 1
positions after it hold the answer, without its last token: nothing is predicted from that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from taskhint.data.dataset import fresh_examples
from taskhint.model.decoder import Decoder
from taskhint.model.trace import Trace
from taskhint.probe.shares import Floats
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.system.progress import Progress
from taskhint.tasks.random_bits import Ints
from taskhint.tasks.task import Task

MAX_LENGTH = 1000
# Of attention logits and weights, all blocks and heads: 128 MB in float32 at their largest.
VALUES_AT_ONCE = 1 << 24


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

    @cached_property
    def encoder_basis(self) -> Tensor:
        """(V, D) the embedding's rows."""
        return _exact(self.decoder.embedding.weight).cpu()

    @cached_property
    def decoder_basis(self) -> Tensor:
        """(V, D) the unembedding's rows of the main task's head. Its bias is left out, as in the
        paper.
        """
        weight = self.decoder.head(self.task.kind).weight
        assert isinstance(weight, Tensor)
        return _exact(weight).cpu()


@dataclass(frozen=True)
class Traced:
    """A subject's trace of equally long examples with their right answers."""

    subject: Subject
    sequences: Tensor  # (B, T + 1) prompts and right answers
    inputs: int  # symbols before ⊥
    prompt: int  # tokens of the prompt
    trace: Trace

    @property
    def tokens(self) -> Tensor:
        """(B, T) what the model read."""
        return self.sequences[:, :-1]

    @property
    def following(self) -> Tensor:
        """(B, T) the right next token at each position."""
        return self.sequences[:, 1:]

    @property
    def answer(self) -> slice:
        """The answer positions: those after ⊥."""
        return slice(self.inputs + 1, self.tokens.shape[1])

    @property
    def predicting(self) -> slice:
        """The positions that predict the answer: from the end of the prompt (⊥) on."""
        return slice(self.prompt - 1, self.tokens.shape[1])

    @property
    def symbols(self) -> int:
        return self.subject.task.vocab.symbols

    def on_encoder(self, name: str, positions: slice) -> Tensor:
        """(B, P, q) plain dot products of a traced stream with each symbol's embedding row."""
        basis = self.subject.encoder_basis[: self.symbols]
        return _exact(self.trace[name][:, positions]) @ basis.T

    def on_decoder(self, name: str, positions: slice) -> Tensor:
        """(B, P, q) plain dot products of a traced stream with each symbol's unembedding row."""
        basis = self.subject.decoder_basis[: self.symbols]
        return _exact(self.trace[name][:, positions]) @ basis.T


def stand_out(projections: Tensor, *tokens: Tensor) -> Tensor:
    """(B, P) whether each named token's projection is larger than that of every symbol that is
    not named.

    (B, P, q) projections; each of `tokens` is (B, P). A mark, such as NONE, never stands out.
    """
    last = projections.shape[2] - 1
    named = torch.zeros_like(projections, dtype=torch.bool)
    for token in tokens:
        named.scatter_(2, token.clamp(max=last)[:, :, None], True)
    highest_other = projections.masked_fill(named, float("-inf")).amax(dim=2)
    held = projections.masked_fill(~named, float("inf")).amin(dim=2) > highest_other
    for token in tokens:
        held &= token <= last
    return held


def traces(subject: Subject, length: int, examples: int) -> Iterator[Traced]:
    """Traces of fresh test sequences of one length, a bounded number of attention weights at a
    time.
    """
    if not 1 <= length <= MAX_LENGTH:
        raise UserError(
            f"length {length} is not in 1..{MAX_LENGTH}; a probe keeps whole attention maps"
        )
    if examples < 1:
        raise UserError(f"--examples {examples} is too few; at least 1")
    one = fresh_examples(subject.task, subject.seed, length, 0, 1).tokens.shape[1]
    at_once = max(1, VALUES_AT_ONCE // (2 * subject.depth * subject.heads * one**2))
    for start in range(0, examples, at_once):
        chunk = fresh_examples(
            subject.task, subject.seed, length, start, min(at_once, examples - start)
        )
        layouts = np.stack([chunk.sizes, chunk.inputs, chunk.prompts], axis=1)
        for layout in np.unique(layouts, axis=0):
            rows = (layouts == layout).all(axis=1)
            size, inputs, prompt = layout.tolist()
            yield trace_of(subject, chunk.tokens[rows, :size], inputs, prompt)


@torch.no_grad()
def trace_of(subject: Subject, sequences: Ints, inputs: int, prompt: int) -> Traced:
    """The trace of (B, T + 1) prompts with their answers: made on the model's device."""
    tokens = torch.from_numpy(sequences)
    there = tokens.to(subject.decoder.device)
    trace = subject.decoder.trace(there[:, :-1], subject.task.kind, inputs)
    return Traced(subject, tokens, inputs, prompt, trace.cpu())


def trace_of_prompt(subject: Subject, prompt: list[int]) -> Traced:
    """The trace of one prompt with its right answer."""
    sequence = np.array([[*prompt, *subject.task.solve(prompt)]])
    inputs = prompt.index(subject.task.vocab.delimiter)
    return trace_of(subject, sequence, inputs, len(prompt))


Rows = dict[str, Floats]
"""Named values of each sequence, (B, ...) each."""

RowsByLength = dict[int, Rows]
"""The rows of all sequences, by input length."""

Measure = Callable[[Traced], Rows]
"""What a probe keeps of traced examples."""


def collect(
    subject: Subject,
    lengths: Sequence[int],
    examples: int,
    measures: Sequence[Measure],
    progress: Progress | None = None,
) -> list[RowsByLength]:
    """Trace each sequence once and let every measure look at it; what each of them kept."""
    collected: list[RowsByLength] = [{} for _ in measures]
    done = 0
    for length in sorted(set(lengths)):
        rows = _rows_at(subject, length, examples, measures)
        for own, found in zip(collected, rows, strict=True):
            own[length] = found
        done += length * examples
        if progress is not None:
            progress.advance_to(done)
    return collected


@torch.no_grad()
def _rows_at(
    subject: Subject, length: int, examples: int, measures: Sequence[Measure]
) -> list[Rows]:
    parts: list[dict[str, list[Floats]]] = [{} for _ in measures]
    for traced in traces(subject, length, examples):
        for own, measure in zip(parts, measures, strict=True):
            for name, values in measure(traced).items():
                _check_rows(name, values, len(traced.sequences))
                own.setdefault(name, []).append(values)
    return [{name: np.concatenate(values) for name, values in own.items()} for own in parts]


def _check_rows(name: str, values: Floats, sequences: int) -> None:
    if not isinstance(values, np.ndarray) or values.shape[:1] != (sequences,):
        raise UserError(
            f"the rows {name!r} of a probe are not a NumPy array with one row for each of "
            f"{sequences} sequences"
        )


def _exact(values: Tensor) -> Tensor:
    """Short number formats are multiplied in float32: what is measured is the model, not the
    measurement.
    """
    return values.detach().to(torch.promote_types(values.dtype, torch.float32))
