"""The construction as the paper prints it, in plain NumPy, with each mend as a switch. It shares
no code with ours.

Vectors are kept apart by kind: e, e' (token), t, t' (mark), h, h' (answer), each with an entry per
symbol and ⊥. Shapes: T tokens, q symbols, d = 6 (q + 1) coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
KINDS = ("e", "e'", "t", "t'", "h", "h'")


@dataclass(frozen=True)
class Printed:
    """`symbols` are 1..q.

    marks: block 2 reads the marks where block 1's MLP left them (t', not t). denominator: a
    softmax row sums to 1. norm: None, or the printed layer normalisation with mirrored
    coordinates; mean: it subtracts the mean. count: the printed value of block 2's first head, a
    difference of counts, instead of the average that a softmax is. own: how strongly a symbol
    looks for its own kind, and three times as strongly for ⊥; printed as 1.
    """

    q: int
    epsilon: float = 0.5
    marks: bool = True
    denominator: bool = True
    norm: bool = False
    mean: bool = True
    count: bool = False
    own: float = 1.0

    def answer(self, inputs: Sequence[int]) -> list[int]:
        """What the model predicts at each step of the right answer: greedy decoding is right if
        this is.
        """
        end = self.q
        tokens = np.array([*(x - 1 for x in inputs), end, *(x - 1 for x in sorted(inputs)[:-1])])
        x = {kind: np.zeros((len(tokens), self.q + 1)) for kind in KINDS}
        x["e"][np.arange(len(tokens)), tokens] = x["e'"][np.arange(len(tokens)), tokens] = 1.0
        tau = 3.0 * np.log(len(inputs))
        self._normalise(self._first_block(x, tau))
        self._normalise(self._second_block(x, tau))
        scores = (x["h"] + x["h'"])[len(inputs) :, : self.q]
        return [int(best) + 1 for best in scores.argmax(axis=1)]

    def sorts(self, inputs: Sequence[int]) -> bool:
        return self.answer(inputs) == sorted(inputs)

    def _first_block(self, x: dict[str, Array], tau: float) -> dict[str, Array]:
        q = self.q
        ask = self.own * np.eye(q + 1)  # row: token, column: what it asks for
        ask[:q, q] = 3.0 * self.own
        find_mark = self._softmax(tau * (x["e"] @ ask) @ x["e"].T) @ x["e"]
        ask = self.own * np.eye(q + 1)
        ask[q] = [*range(q, 0, -1), 0]
        found = self._softmax(tau * (x["e'"] @ ask) @ x["e'"].T) @ x["e'"]
        found[:, q] = 0.0
        x["t"] += find_mark
        x["h'"] += found
        after = np.maximum(
            x["e"][:, :q] + x["t"][:, q:] - 1.0, 0.0
        )  # both formulas of the MLP read the same x
        moved = x["t"][:, :q].copy()
        x["t'"][:, :q] += moved - after
        x["t"][:, :q] -= moved
        x["t"][:, q] -= after.sum(axis=1)
        return x

    def _second_block(self, x: dict[str, Array], tau: float) -> dict[str, Array]:
        q = self.q
        marks = x["t'" if self.marks else "t"].copy()
        marks[:, q] = 0.0
        weights = self._softmax(tau * self.own * x["e"] @ x["e"].T)
        if self.count:
            own = x["e"] @ x["e"].T * np.tri(len(weights))
            weights = weights * own.sum(axis=1, keepdims=True)
        ask = np.triu(
            np.tile(np.arange(q, -1.0, -1.0), (q + 1, 1)), 1
        )  # symbol a asks for every b > a
        ask[:, q] = ask[q] = 0.0
        ask[q, q] = self.own
        found = self._softmax(tau * (x["e'"] @ ask) @ x["e'"].T) @ x["e'"]
        found[:, q] = 0.0
        x["h"] += weights @ marks
        x["h'"] += self.epsilon * found
        x["h'"][:, :q] -= np.maximum(-marks[:, :q], 0.0)
        return x

    def _softmax(self, logits: Array) -> Array:
        seen = np.tri(len(logits), dtype=bool)
        raised = np.exp(
            np.where(
                seen, logits - np.where(seen, logits, -np.inf).max(axis=1, keepdims=True), -np.inf
            )
        )
        if self.denominator:
            return raised / raised.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(raised / raised.cumsum(axis=1))

    def _normalise(self, x: dict[str, Array]) -> None:
        if not self.norm:
            return
        both = np.concatenate(
            [np.concatenate([sign * x[kind] for kind in KINDS], axis=1) for sign in (1, -1)],
            axis=1,
        )
        both = both - (both if self.mean else np.abs(both)).mean(axis=1, keepdims=True)
        both /= np.sqrt((both**2).mean(axis=1, keepdims=True))
        for i, kind in enumerate(KINDS):
            x[kind] = both[:, i * (self.q + 1) : (i + 1) * (self.q + 1)]
