"""Position ids that come from what the tokens are: coupling and Abacus.

Shapes: B examples, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from taskhint.model.positions.absolute import LARGEST_TABLE, Learned
from taskhint.model.positions.drawn import Inner
from taskhint.model.positions.scheme import Positions
from taskhint.system.errors import UserError
from taskhint.system.settings import setting
from taskhint.tasks.random_bits import Ints, RandomBits

if TYPE_CHECKING:
    from taskhint.model.config import ModelConfig
    from taskhint.tasks.task import Task


@dataclass(frozen=True)
class Coupling(Inner):
    """Position coupling (Cho et al. 2024): tokens that belong together share a place.

    The task says which do (`Task.coupled`). In training a random number is added to those of an
    example, such that none is larger than `span`; in a test none is. What a place does is the
    matter of `scheme`.
    """

    kind: ClassVar[str] = "coupling"
    reads_tokens: ClassVar[bool] = True

    scheme: Positions = field(default_factory=partial(Learned, 512))
    span: int = setting(255, at_least=1, at_most=LARGEST_TABLE)

    def check(self, model: ModelConfig) -> None:
        super().check(model)
        if isinstance(self.scheme, Learned) and self.scheme.max_positions <= self.span:
            raise UserError(
                f"model.positions.span={self.span} needs more than "
                f"model.positions.scheme.max_positions={self.scheme.max_positions}"
            )

    def check_task(self, task: Task) -> None:
        task.coupled(np.array([task.worked_example()]))

    def token_ids(self, tokens: Ints, task: Task) -> Ints:
        ids = task.coupled(np.pad(tokens, ((0, 0), (0, 1)), constant_values=-1))
        if ids.shape != (len(tokens), tokens.shape[1] + 1) or ids.min(initial=0) < 0:
            raise UserError(
                f"task {task.kind!r}: coupled must give a number of at least 0 for each token"
            )
        return ids

    def training_ids(self, bits: RandomBits, tokens: Ints, task: Task) -> Ints:
        ids = self.token_ids(tokens, task)
        room = np.maximum(0, self.span - ids.max(axis=1, keepdims=True))
        return ids + bits.integers(room + 1, 1)


@dataclass(frozen=True)
class Abacus(Learned):
    """Abacus (McLeish et al. 2024): learned vectors for the place of a digit in its number.

    A number is a row of symbols between marks of the vocabulary; marks have place 0. In training
    all numbers of an example begin at the same random place from 1 to `largest_offset` + 1, in a
    test at 1.
    """

    kind: ClassVar[str] = "abacus"
    reads_tokens: ClassVar[bool] = True

    largest_offset: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.largest_offset < self.max_positions:
            raise UserError(
                f"model.positions.largest_offset={self.largest_offset} is not in "
                f"0..max_positions-1={self.max_positions - 1}"
            )

    def token_ids(self, tokens: Ints, task: Task) -> Ints:
        index = np.arange(tokens.shape[1])
        marks = tokens >= task.vocab.symbols
        last_mark = np.maximum.accumulate(np.where(marks, index, -1), axis=1)
        return np.pad(index - last_mark, ((0, 0), (0, 1)))  # of the next token nothing is known

    def training_ids(self, bits: RandomBits, tokens: Ints, task: Task) -> Ints:
        ids = self.token_ids(tokens, task)
        return np.where(ids > 0, ids + bits.integers(self.largest_offset + 1, 1), 0)
