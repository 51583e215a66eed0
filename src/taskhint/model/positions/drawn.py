"""Positions that are drawn at random in training, so that every one of a long range is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from taskhint.model.positions import scheme
from taskhint.model.positions.absolute import Learned
from taskhint.model.positions.rotary import Rope
from taskhint.model.positions.scheme import PositionHooks, Positions
from taskhint.model.weights import Weight
from taskhint.system.errors import UserError
from taskhint.system.settings import setting
from taskhint.tasks.random_bits import Ints, RandomBits

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig

LARGEST_SPAN = 1 << 16  # each example of a batch draws as many numbers


@dataclass(frozen=True)
class LearnedOffset(Learned):
    """Learned vectors; a training example begins at a random one of the places where it fits, a
    test example at the first.
    """

    kind: ClassVar[str] = "learned-offset"

    def draw(self, bits: RandomBits, length: int) -> Ints:
        room = max(0, self.max_positions - (length - 1))  # nothing is read from the last token
        return bits.integers(room + 1, 1) + np.arange(length)


@dataclass(frozen=True)
class Inner(Positions):
    """A scheme that decides on position ids and leaves it to another one to use them."""

    scheme: Positions

    def check(self, model: ModelConfig) -> None:
        inner = self.scheme
        given = inner.takes_ids and not inner.reads_tokens and not inner.reads_sequence
        if not given or type(inner).draw is not Positions.draw:
            raise UserError(
                f"model.positions.scheme={inner.kind} has places of its own; {self.kind} needs "
                "one that takes them as they are, such as rope or learned"
            )
        inner.check(model)

    def weights(self, model: ModelConfig) -> dict[str, Weight]:
        return self.scheme.weights(model)

    def block_weights(self, model: ModelConfig) -> dict[str, Weight]:
        return self.scheme.block_weights(model)

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> PositionHooks:
        return self.scheme.bind(model, weights)

    def reads_next(self) -> bool:
        return self.scheme.reads_next()


@dataclass(frozen=True)
class Randomised(Inner):
    """Randomised positions (Ruoss et al. 2023): a sorted random choice of 0..span-1 in training.

    In a test they are spread evenly, each where a random choice has it in the mean: an example
    then has one answer. They depend on the number of tokens in the whole example.
    """

    kind: ClassVar[str] = "randomised"
    reads_sequence: ClassVar[bool] = True

    scheme: Positions = field(default_factory=Rope)
    span: int = setting(2048, at_least=2, at_most=LARGEST_SPAN)

    def draw(self, bits: RandomBits, length: int) -> Ints:
        self._check_room(length)
        return np.sort(bits.distinct(self.span, length), axis=1)

    def test_ids(self, index: Tensor, sequence: Tensor) -> Tensor:
        self._check_room(scheme.largest(sequence))
        return (index + 1) * (self.span + 1) // (sequence + 1) - 1

    def _check_room(self, length: int) -> None:
        if length > self.span:
            raise UserError(
                f"an example of {length} tokens is longer than model.positions.span={self.span}"
            )
