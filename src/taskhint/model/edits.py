"""Interventions: an edit changes one value of a forward pass, and everything after it follows.

    from taskhint.model.edits import KnockOutHead
    trace = run.model.trace(tokens, "sort", 4, edits=[KnockOutHead(block=1, head=0)])

The values that an edit can change are those of the table in trace.py, by name. Shapes: B examples,
T tokens, H heads, K head width, D width.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from taskhint.system.errors import UserError
from taskhint.system.settings import Family

Other = Callable[[tuple[int, ...], int], Mapping[str, Tensor]]
"""Tokens of another input and how many of them stand before ⊥ -> their trace without edits."""

By = Literal["zero", "mean"]


@dataclass(frozen=True)
class Edit(Family):
    """Derive from it, name a `kind`, say where it acts and what becomes of the value there."""

    family: ClassVar[str] = "edit"
    label: ClassVar[str] = "edit"

    @property
    @abstractmethod
    def at(self) -> str:
        """The Trace name of the value that is changed."""

    @abstractmethod
    def change(self, value: Tensor, other: Other) -> Tensor:
        """(B, T, ...) the value -> what the pass goes on with; the value itself stays as it is."""


@dataclass(frozen=True)
class KnockOutHead(Edit):
    """What a head gathers becomes zero, or its mean over all tokens of the pass."""

    kind: ClassVar[str] = "knock-out-head"

    block: int
    head: int
    by: By = "zero"

    def __post_init__(self) -> None:
        _not_negative(self, "block", "head")

    @property
    def at(self) -> str:
        return f"blocks.{self.block}.attention.heads"

    def change(self, value: Tensor, other: Other) -> Tensor:  # noqa: ARG002
        _inside("head", self.head, value.shape[2])
        changed = value.clone()
        changed[:, :, self.head] = _instead(value[:, :, self.head], self.by)
        return changed


@dataclass(frozen=True)
class KnockOutMlp(Edit):
    """What an MLP adds to the stream becomes zero, or its mean over all tokens of the pass."""

    kind: ClassVar[str] = "knock-out-mlp"

    block: int
    by: By = "zero"

    def __post_init__(self) -> None:
        _not_negative(self, "block")

    @property
    def at(self) -> str:
        return f"blocks.{self.block}.mlp.out"

    def change(self, value: Tensor, other: Other) -> Tensor:  # noqa: ARG002
        return _instead(value, self.by).expand_as(value)


@dataclass(frozen=True)
class ScaleTemperature(Edit):
    """All attention logits of a block are multiplied; what positions add to them is not."""

    kind: ClassVar[str] = "scale-temperature"

    block: int
    factor: float

    def __post_init__(self) -> None:
        _not_negative(self, "block")
        if not 0.0 <= self.factor <= 1e6:
            raise UserError(f"edit.factor={self.factor} is not in 0..1000000")

    @property
    def at(self) -> str:
        return f"blocks.{self.block}.attention.scale"

    def change(self, value: Tensor, other: Other) -> Tensor:  # noqa: ARG002
        return value * self.factor


@dataclass(frozen=True)
class ReplaceStream(Edit):
    """The stream at one position becomes that of another input (activation patching).

    stream: a Trace name of shape (B, T, D), such as `blocks.0.after_attention`. tokens, inputs:
    what the model reads in the other pass, and how many of these tokens stand before ⊥. source:
    the position there.
    """

    kind: ClassVar[str] = "replace-stream"

    stream: str
    position: int
    tokens: tuple[int, ...]
    inputs: int
    source: int

    def __post_init__(self) -> None:
        _not_negative(self, "position", "inputs", "source")
        if not self.tokens:
            raise UserError("edit.tokens is empty")
        _inside("source", self.source, len(self.tokens))
        _inside("inputs", self.inputs, len(self.tokens) + 1)
        if min(self.tokens) < 0:
            raise UserError(f"edit.tokens: {min(self.tokens)} is negative")

    @property
    def at(self) -> str:
        return self.stream

    def change(self, value: Tensor, other: Other) -> Tensor:
        _inside("position", self.position, value.shape[1])
        changed = value.clone()
        changed[:, self.position] = other(self.tokens, self.inputs)[self.stream][0, self.source]
        return changed


def _instead(value: Tensor, by: By) -> Tensor:
    """(B, T, ...) -> (1, 1, ...)"""
    mean = value.mean(dim=(0, 1), keepdim=True)
    return mean if by == "mean" else mean.new_zeros(mean.shape)


def _not_negative(edit: Edit, *names: str) -> None:
    for name in names:
        if getattr(edit, name) < 0:
            raise UserError(f"edit.{name}={getattr(edit, name)} is negative")


def _inside(name: str, number: int, count: int) -> None:
    if number >= count:
        raise UserError(f"edit.{name}={number} is not in 0..{count - 1}")
