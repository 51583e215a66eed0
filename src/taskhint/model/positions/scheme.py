"""What a position scheme is: it may change embeddings, queries and keys, or attention logits.

Shapes: N tokens, M queries, D width, H heads, K head width; B examples, A queries and T keys of
each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.model.weights import Weight
from taskhint.system.settings import Family
from taskhint.tasks.random_bits import Ints, RandomBits

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig
    from taskhint.model.places import Places
    from taskhint.tasks.task import Task


class PositionHooks:
    """Where a scheme can act. Each hook leaves things as they are unless it is overridden."""

    def add(self, x: Tensor, places: Places) -> Tensor:  # noqa: ARG002
        """(N, D) token vectors -> (N, D): what the first block reads."""
        return x

    def turn(self, x: Tensor, places: Places) -> Tensor:  # noqa: ARG002
        """(N, H, K) queries or keys -> (N, H, K)."""
        return x

    def turn_queries(self, q: Tensor, places: Places, scale: Tensor) -> Tensor:  # noqa: ARG002
        """(M, H, K) queries; `scale` is what their logits are multiplied with afterwards."""
        return self.turn(q, places)

    def turn_keys(self, k: Tensor, places: Places) -> Tensor:
        return self.turn(k, places)

    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        """Position ids of queries, (B, 1, A, 1), and keys, (B, 1, 1, T) -> what is added to the
        scaled logits.

        Anything that broadcasts to (B, H, A, T). B is 1 where all examples have the same ids. Keys
        that a query may not see are hidden afterwards: what is added there must be finite.
        """
        raise NotImplementedError

    @classmethod
    def overrides(cls, *names: str) -> bool:
        """Whether a scheme acts at one of these hooks."""
        return any(getattr(cls, name) is not getattr(PositionHooks, name) for name in names)


def largest(numbers: Tensor) -> int:
    """The largest number: the one value that a scheme may need off the device; 0 on `meta`."""
    return 0 if numbers.is_meta else int(numbers.max())


@dataclass(frozen=True)
class Positions(Family, PositionHooks):
    """A positional encoding. Derive from it, name a `kind`, override the hooks that are needed.

    A scheme with learned weights declares them in `weights` (one set for the model) or
    `block_weights` (one for every block), and returns from `bind` an object that has the hooks and
    holds the weights. A scheme that needs to know the model, such as its number of heads, does the
    same.
    """

    family: ClassVar[str] = "position scheme"
    label: ClassVar[str] = "model.positions"
    reads_sequence: ClassVar[bool] = (
        False  # whether `test_ids` looks at the number of tokens in the whole example
    )
    takes_ids: ClassVar[bool] = True  # whether the hooks go by `places.ids`
    reads_tokens: ClassVar[bool] = False  # whether ids come from `token_ids`, not from `test_ids`

    def check(self, model: ModelConfig) -> None:
        """Refuse a model that the scheme cannot serve, with a UserError."""

    def check_task(self, task: Task) -> None:
        """Refuse a task that the scheme cannot serve, with a UserError."""

    def weights(self, model: ModelConfig) -> dict[str, Weight]:  # noqa: ARG002
        return {}

    def block_weights(self, model: ModelConfig) -> dict[str, Weight]:  # noqa: ARG002
        return {}

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> PositionHooks:  # noqa: ARG002
        """The hooks of a block, with the weights of the model and of the block."""
        return self

    def reads_next(self) -> bool:
        """Whether the hooks look at `places.next_ids`: where the token after each one stands."""
        return False

    def draw(self, bits: RandomBits, length: int) -> Ints | None:  # noqa: ARG002
        """(B, length) position ids of whole training examples, from random bits; None for
        0, 1, 2, ...
        """
        return None

    def test_ids(self, index: Tensor, sequence: Tensor) -> Tensor:  # noqa: ARG002
        """Position ids outside training: of the tokens with these numbers in examples of so many
        tokens.
        """
        return index

    def token_ids(self, tokens: Ints, task: Task) -> Ints:
        """(B, T) tokens -> (B, T + 1) position ids outside training, where `reads_tokens`.

        The last one is that of the token still to come. A prompt is always whole; an id may not
        depend on tokens of the answer that stand after it.
        """
        raise NotImplementedError

    def training_ids(self, bits: RandomBits, tokens: Ints, task: Task) -> Ints | None:  # noqa: ARG002
        """(B, T) tokens -> (B, T + 1) position ids in training; None if they are as in a test."""
        return self.draw(bits, tokens.shape[1] + 1)


@dataclass(frozen=True)
class NoPositions(Positions):
    """Tokens know nothing of their place but what causal attention lets them find out."""

    kind: ClassVar[str] = "none"
