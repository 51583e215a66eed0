"""The algorithm that the paper reads off its charts, as things to count, by length.

Shapes: B examples, P positions, A answer positions, q symbols.

A mechanism says of traced examples where it is asked for, and where it holds. All of them take
plain dot products of the stream with the embedding rows (encoder basis) or with the main head's
unembedding rows (decoder basis), as the paper does: the last norm and the head's bias are not
applied. Only symbols compete, not ⊥, PAD or NONE. A symbol is largest only if it is larger than
every other; a tie is none.

The first attention is that of block 0, the last attention and the last MLP are those of the last
block: in the paper's depth-2 models the first and the second.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskhint.probe.traced import Traced, stand_out
from taskhint.system.settings import Family
from taskhint.tasks.task import Task


@dataclass(frozen=True)
class Verdict:
    """(B, P) each: whether the mechanism is asked for at a position, and whether it holds
    there.
    """

    asked: Tensor
    held: Tensor


@dataclass(frozen=True)
class Mechanism(Family):
    """A step of an algorithm that can be seen in the stream. Derive and name a `kind`.

    `step` is the kind of answer step that it serves: only tasks with such steps have it; every
    task has one that names none. `name` is what tables call it (its kind, if none is given), and
    its panel says `where` it is looked for. One that is `part_of` another, by name, is drawn in
    that one's panel as `part`.
    """

    family: ClassVar[str] = "mechanism"
    step: ClassVar[str] = ""
    name: ClassVar[str] = ""
    where: ClassVar[str] = ""
    whole: ClassVar[str] = "all"  # what it is called where its parts are drawn too
    part_of: ClassVar[str] = ""
    part: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__dict__.get("name") or cls.__dict__.get("kind", "")

    def has_meaning(self, task: Task) -> bool:
        return not self.step or self.step in task.step_kinds

    @abstractmethod
    def verdict(self, traced: Traced) -> Verdict:
        """Where it is asked for, and where it holds."""


@dataclass(frozen=True)
class MinFinding(Mechanism):
    """At ⊥ after the first attention the smallest input symbol has the largest projection on the
    decoder basis.
    """

    kind: ClassVar[str] = "min-finding"
    step: ClassVar[str] = "minimum"
    where: ClassVar[str] = "⊥, after attention 0"

    def verdict(self, traced: Traced) -> Verdict:
        at_end = slice(traced.inputs, traced.inputs + 1)
        smallest = traced.tokens[:, : traced.inputs].amin(dim=1, keepdim=True)
        held = stand_out(traced.on_decoder("blocks.0.after_attention", at_end), smallest)
        return Verdict(torch.ones_like(held), held)


@dataclass(frozen=True)
class IdentitySuccessor(Mechanism):
    """At answer positions after the last attention the token and the right next symbol have the
    two largest projections on the decoder basis, in either order.

    Where the token must be repeated the two are one symbol, and that one must have the largest
    projection.
    """

    kind: ClassVar[str] = "identity+successor"
    step: ClassVar[str] = "successor"
    where: ClassVar[str] = "answer, after the last attention"

    def verdict(self, traced: Traced) -> Verdict:
        held = two_peaks(traced)
        return Verdict(torch.ones_like(held), held)


@dataclass(frozen=True)
class MovingOn(Mechanism):
    """Identity+Successor where the right next symbol is another one: two peaks are asked for."""

    kind: ClassVar[str] = "identity+successor-moving-on"
    name: ClassVar[str] = "identity+successor, moving on"
    step: ClassVar[str] = "successor"
    part_of: ClassVar[str] = "identity+successor"
    part: ClassVar[str] = "moving on"

    def verdict(self, traced: Traced) -> Verdict:
        return Verdict(_moves(traced), two_peaks(traced))


@dataclass(frozen=True)
class Repeating(Mechanism):
    """Identity+Successor where the token must be repeated: one peak is asked for."""

    kind: ClassVar[str] = "identity+successor-repeating"
    name: ClassVar[str] = "identity+successor, repeating"
    step: ClassVar[str] = "successor"
    part_of: ClassVar[str] = "identity+successor"
    part: ClassVar[str] = "repeating"

    def verdict(self, traced: Traced) -> Verdict:
        return Verdict(~_moves(traced), two_peaks(traced))


@dataclass(frozen=True)
class Denoising(Mechanism):
    """After the last MLP the right next symbol has the largest projection on the decoder basis.

    Asked for where there is something to remove: the right next symbol is another one, both peaks
    stand out before the MLP, and that of the token itself is the higher one.
    """

    kind: ClassVar[str] = "denoising"
    step: ClassVar[str] = "successor"
    where: ClassVar[str] = "answer, last MLP"

    def verdict(self, traced: Traced) -> Verdict:
        token = traced.tokens[:, traced.answer, None]
        successor = traced.following[:, traced.answer, None]
        before = _before_last_mlp(traced)
        higher = (before.gather(2, token) > before.gather(2, successor))[:, :, 0]
        asked = _moves(traced) & two_peaks(traced) & higher
        after = traced.on_decoder(f"blocks.{traced.subject.depth - 1}.after_mlp", traced.answer)
        return Verdict(asked, stand_out(after, successor[:, :, 0]))


@dataclass(frozen=True)
class CopyFirst(Mechanism):
    """At input positions after the first attention the token itself has the largest projection on
    the encoder basis.
    """

    kind: ClassVar[str] = "copy"
    where: ClassVar[str] = "input, after attention 0"
    whole: ClassVar[str] = "after attention 0"

    def verdict(self, traced: Traced) -> Verdict:
        return _copy(traced, 0)


@dataclass(frozen=True)
class CopyLast(Mechanism):
    """The same after the last attention: whether the copy lasts, as the paper's "throughout the
    inference" says.
    """

    kind: ClassVar[str] = "copy-to-the-last-block"
    name: ClassVar[str] = "copy to the last block"
    part_of: ClassVar[str] = "copy"
    part: ClassVar[str] = "after the last attention"

    def verdict(self, traced: Traced) -> Verdict:
        return _copy(traced, traced.subject.depth - 1)


def _copy(traced: Traced, block: int) -> Verdict:
    before = slice(0, traced.inputs)
    tokens = traced.tokens[:, before]
    stream = traced.on_encoder(f"blocks.{block}.after_attention", before)
    return Verdict(tokens < traced.symbols, stand_out(stream, tokens))


def two_peaks(traced: Traced) -> Tensor:
    """(B, A) whether the token and the right next symbol stand out before the last MLP."""
    tokens, following = traced.tokens[:, traced.answer], traced.following[:, traced.answer]
    return stand_out(_before_last_mlp(traced), tokens, following)


def _before_last_mlp(traced: Traced) -> Tensor:
    return traced.on_decoder(f"blocks.{traced.subject.depth - 1}.after_attention", traced.answer)


def _moves(traced: Traced) -> Tensor:
    return traced.tokens[:, traced.answer] != traced.following[:, traced.answer]


def mechanisms_of(task: Task) -> dict[str, Mechanism]:
    """Every mechanism that has a meaning for a task, by name."""
    every = (member() for member in Mechanism.kinds().values())
    return {one.name: one for one in every if one.has_meaning(task)}
