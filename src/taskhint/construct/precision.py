"""How long an input each number format can sort: measured with the model itself, and in arithmetic
of p bits.

    python -m taskhint.construct.precision results/construction

writes precision.json and precision.svg (about ten minutes on one core). Two kinds of arithmetic:
- a real format: weights and hidden states are rounded to it; torch sums the short ones in float32;
- strict: numbers of p significant bits, and every single addition in the sums over keys is
  rounded to them too.

Shapes: n input symbols, T = 2n tokens, q symbols, K = q + 1 head width, D width.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from taskhint.construct.plan import (
    FORMATS,
    Plan,
    as_dtype,
    exact_length,
    largest_length,
    make_plan,
    significand_bits,
)
from taskhint.construct.sorting import build
from taskhint.data.batch import make_batch
from taskhint.model.decoder import Decoder
from taskhint.system.files import json_bytes, write_atomically
from taskhint.tasks import Sort
from taskhint.tasks.random_bits import Ints
from taskhint.tasks.task import Examples

Array = npt.NDArray[np.float64]
SYMBOLS = 4
REAL_LENGTHS = [2**k for k in range(13)]
STRICT_BITS = range(4, 11)
LONGEST_STRICT = 1100


def hard_inputs(q: int, n: int) -> Ints:
    """(B, n) what is hardest for the construction: long runs to count, close calls,
    every order.
    """
    random = np.random.default_rng(n).integers(0, q, (2, n))
    nearly = np.zeros(n, dtype=np.int64)
    nearly[n // 2] = 1
    halves = np.arange(n) * 2 // n
    ordered = np.sort(random[0])
    return np.stack(
        [*random, nearly, 1 - nearly, halves, 1 - halves, np.arange(n) % 2, ordered, ordered[::-1]]
    )


def examples_of(q: int, inputs: Ints) -> Examples:
    prompts = np.pad(inputs, ((0, 0), (0, 1)), constant_values=q)
    return Examples.equal(prompts, np.sort(inputs, axis=1), inputs.shape[1])


@torch.no_grad()
def sorts(decoder: Decoder, q: int, inputs: Ints) -> bool:
    """Whether every step of every answer is right, one input after another."""
    for row in inputs:
        batch = make_batch(Sort(symbols=q), [examples_of(q, row[None])])
        if not torch.equal(decoder(batch, "sort").argmax(dim=1), batch.targets):
            return False
    return True


def longest_sorted(
    lengths: Sequence[int], sorts_all: Callable[[int], bool]
) -> tuple[int, int | None]:
    """The last length before the first failure, and that failure (None if there was none)."""
    longest = 0
    for n in lengths:
        if not sorts_all(n):
            return longest, n
        longest = n
    return longest, None


def real_format(
    number_format: str, layer_norm: bool, lengths: Sequence[int] = REAL_LENGTHS
) -> dict[str, Any]:
    def sorts_all(n: int) -> bool:
        decoder = build(make_plan(SYMBOLS, n, layer_norm, number_format)).eval()
        return sorts(decoder, SYMBOLS, hard_inputs(SYMBOLS, n))

    longest, failed = longest_sorted(lengths, sorts_all)
    return {
        "format": number_format,
        "layer_norm": layer_norm,
        "significand_bits": significand_bits(as_dtype(number_format)),
        "longest_tried_and_sorted": longest,
        "first_failure": failed,
        "exact_up_to": exact_length(number_format, layer_norm),
        "refused_beyond": largest_length(number_format, layer_norm),
    }


def strict(bits: int, q: int = 2) -> dict[str, Any]:
    """The longest length in strict arithmetic; lengths are tried one by one around the powers of
    two.
    """
    lengths = sorted(
        {n for k in range(12) for n in (2**k - 1, 2**k, 2**k + 1, 2**k + 2) if n >= 1}
    )
    lengths = [n for n in lengths if n <= LONGEST_STRICT]

    def sorts_all(n: int) -> bool:
        arithmetic = Strict(make_plan(q, n, False, "float64"), bits)
        return all(arithmetic.sorts(row) for row in hard_inputs(q, n)[2:7])

    longest, failed = longest_sorted(lengths, sorts_all)
    return {"significand_bits": bits, "longest_tried_and_sorted": longest, "first_failure": failed}


class Strict:
    """The constructed model with every result, and every partial sum over keys, rounded to `bits`
    significant bits.

    The range of the exponent is that of float64. Sums within a token have a handful of terms and
    are rounded once.
    """

    def __init__(self, plan: Plan, bits: int) -> None:
        self.q, self.bits = plan.coordinates.symbols, bits
        # Wider gaps between neighbouring symbols, as make_plan would give a format of so few bits.
        decoder = build(replace(plan, beta=plan.beta / (1 - 2.0**-bits * self.q)))
        self.weights = {
            name: self._round(value.detach().numpy()) for name, value in decoder.named_parameters()
        }

    def sorts(self, inputs: Ints) -> bool:
        answer = np.sort(inputs)
        x = self.weights["embedding.weight"][np.concatenate([inputs, [self.q], answer[:-1]])]
        for block in ("blocks.0.", "blocks.1."):
            x = self._round(x + self._attention(x, block + "attention."))
            hidden = self._linear(x, block + "mlp.up") + self.weights[block + "mlp.up.bias"]
            x = self._round(
                x + self._linear(np.maximum(self._round(hidden), 0.0), block + "mlp.down")
            )
        scores = self._linear(x[len(inputs) :], "heads.sort")
        return bool((scores.argmax(axis=1) == answer).all())

    def _attention(self, x: Array, name: str) -> Array:
        size = self.q + 1
        mixed = self._round(x @ self.weights[name + "qkv"].T).reshape(len(x), 3, 2, size)
        visible = self._round(np.log(np.arange(1, len(x) + 1)))
        scale = self._round(self.weights[name + "temperature.beta"] * visible / np.sqrt(size))
        mixed[:, 0] = self._round(scale[:, None, None] * mixed[:, 0])
        heads = [self._head(*mixed[:, :, head].swapaxes(0, 1)) for head in (0, 1)]
        return self._linear(np.concatenate(heads, axis=1), name + "out")

    def _head(self, query: Array, key: Array, value: Array) -> Array:
        logits = self._round(query @ key.T)
        logits[np.triu_indices(len(logits), 1)] = -np.inf
        raised = self._round(np.exp(self._round(logits - logits.max(axis=1, keepdims=True))))
        terms = np.concatenate([value, np.ones((len(value), 1))], axis=1)
        total = np.zeros_like(terms)
        for j, term in enumerate(terms):  # one key after another: this is where counting ends
            total[j:] = self._round(total[j:] + self._round(raised[j:, j : j + 1] * term))
        return self._round(total[:, :-1] / total[:, -1:])

    def _linear(self, x: Array, name: str) -> Array:
        return self._round(x @ self.weights[name + ".weight"].T)

    def _round(self, x: Array) -> Array:
        """To the nearest number of so many bits, ties to even."""
        fraction, exponent = np.frexp(x)
        return np.ldexp(np.rint(np.ldexp(fraction, self.bits)), exponent - self.bits)


def measure(report: Callable[[str], None]) -> dict[str, Any]:
    def reported(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
        done = []
        for row in rows:
            report(str(row))
            done.append(row)
        return done

    real = (real_format(name, norm) for norm in (False, True) for name in FORMATS)
    return {
        "symbols": {"real": SYMBOLS, "strict": 2},
        "strict": reported(strict(bits) for bits in STRICT_BITS),
        "real": reported(real),
    }


def main(folder: str) -> None:
    from taskhint.construct.precision_figure import precision_figure
    from taskhint.system.drawing import as_svg

    results = measure(lambda line: print(line, file=sys.stderr))
    write_atomically(Path(folder) / "precision.json", json_bytes(results))
    write_atomically(Path(folder) / "precision.svg", as_svg(precision_figure(results)).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
