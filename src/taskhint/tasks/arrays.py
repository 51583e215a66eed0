"""A task in two functions over whole arrays: which prompts there are, and what their answers are.

Shapes: B examples, P tokens in a prompt, A in an answer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import Examples, Task

AS_TRAINED: Mapping[str, Mapping[str, Any]] = MappingProxyType({"uniform": {}})


@dataclass(frozen=True)
class ArrayTask(Task):
    """All prompts of one length are equally long, and so are their answers.

    `tests` are the test distributions: for each name, the fields that differ.
    """

    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = AS_TRAINED

    @abstractmethod
    def draw(self, bits: RandomBits, length: int) -> Ints:
        """(B, P) prompts. The same bits always give the same prompt."""

    @abstractmethod
    def answers(self, prompts: Ints) -> Ints:
        """(B, A) the right answers to (B, P) prompts whose answers are equally long."""

    def make(self, bits: RandomBits, length: int) -> Examples:
        prompts = self.draw(bits, length)
        tokens = np.concatenate([prompts, self.answers(prompts)], axis=1)
        return Examples(
            tokens,
            prompts=np.full(len(prompts), prompts.shape[1]),
            sizes=np.full(len(prompts), tokens.shape[1]),
            inputs=(prompts == self.vocab.delimiter).argmax(axis=1),
        )

    @property
    def distributions(self) -> tuple[str, ...]:
        return (*self.tests, *(name for name in super().distributions if name not in self.tests))

    def for_test(self, distribution: str) -> Self:
        if distribution in self.tests:
            return replace(self, **self.tests[distribution])
        return super().for_test(distribution)
