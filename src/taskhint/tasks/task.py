"""What a task is: random bits and a length in, prompts and answers out.

Shapes: B examples, T tokens (prompt and answer together).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from taskhint.system.errors import UserError
from taskhint.tasks.lengths import Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.vocab import Vocab


@dataclass(frozen=True)
class Examples:
    """Examples of one task. Row b is prompt, then answer, then PAD from `sizes[b]` on (where sizes differ).

    `inputs` counts the symbols before ⊥: the n of "input length".
    """

    tokens: Ints  # (B, T)
    prompts: Ints  # (B,) tokens in the prompt
    sizes: Ints  # (B,) tokens in prompt and answer together
    inputs: Ints  # (B,)

    @classmethod
    def equal(cls, prompt: Ints, answer: Ints, inputs: int) -> Examples:
        """Examples whose prompts are all of one length, and so are their answers."""
        tokens = np.concatenate([prompt, answer], axis=1)
        each = np.repeat(np.array([[prompt.shape[1]], [tokens.shape[1]], [inputs]]), len(prompt), axis=1)
        return cls(tokens, *each)

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class Task(ABC):
    """A task is a frozen dataclass: its fields decide which examples it makes, and stand in the recipe.

    `kind` is its name in the registry, in recipes and on its head. `given` are marks in the answer that are handed to
    the model instead of being asked of it.
    """

    kind: ClassVar[str]
    about: ClassVar[str]
    given: ClassVar[tuple[str, ...]] = ()

    lengths: Lengths

    @property
    @abstractmethod
    def vocab(self) -> Vocab: ...

    @abstractmethod
    def make(self, bits: RandomBits, length: int) -> Examples:
        """One example per row of `bits`, all with inputs of this length; the same bits always give the same example."""

    @abstractmethod
    def solve(self, prompt: Sequence[int]) -> list[int]:
        """The right answer to one prompt, in plain Python: slow, obvious, and used to check `make`."""

    @abstractmethod
    def worked_example(self) -> list[int]:
        """A prompt that shows what the task asks."""

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        """The prompt for an input that a person gave."""
        if not symbols:
            raise UserError("the input is empty; give at least one symbol")
        return [*symbols, self.vocab.delimiter]

    def for_test(self, distribution: str) -> Self:
        """The same task drawing its inputs from a test distribution."""
        raise UserError(f"task {self.kind!r} has no test distribution {distribution!r}")

    def scored(self, examples: Examples) -> npt.NDArray[np.bool_]:
        """(B, T) true where the token must be predicted."""
        place = np.arange(examples.tokens.shape[1])
        answer = (place >= examples.prompts[:, None]) & (place < examples.sizes[:, None])
        if self.given:
            answer &= ~np.isin(examples.tokens, [self.vocab.mark(name) for name in self.given])
        return answer

    @classmethod
    def kinds(cls) -> Mapping[str, type[Any]]:
        """Every registered task by its name."""
        from taskhint.tasks import TASKS

        return TASKS


def delimited(task: Task, inputs: Ints) -> Ints:
    """(B, n + 1) inputs with ⊥ behind them."""
    return np.concatenate([inputs, np.full((len(inputs), 1), task.vocab.delimiter)], axis=1)
