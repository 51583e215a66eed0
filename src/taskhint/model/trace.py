"""The named intermediates that a forward pass can return.

Shapes: B examples, T tokens, D width, H heads, V symbols. Blocks count from 0.

| name | shape | what |
|---|---|---|
| embedding | (B, T, D) | token vectors, with positions if there are any |
| blocks.{i}.attention.logits | (B, H, T, T) | scaled; -inf where a key may not be seen |
| blocks.{i}.attention.weights | (B, H, T, T) | after the softmax |
| blocks.{i}.attention.out | (B, T, D) | what attention adds to the stream |
| blocks.{i}.after_attention | (B, T, D) | the stream before the MLP ("pre") |
| blocks.{i}.after_mlp | (B, T, D) | the stream after the MLP ("post") |
| final | (B, T, D) | the stream that the head reads, after the last norm |
| logits | (B, T, V) | the head's output |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor

from taskhint.model.attention.paths import Attend, Variant, attend_general, rectangle_of_ids
from taskhint.system.errors import nearest


def trace_names(depth: int) -> list[str]:
    """Every name that a trace of a decoder of this depth holds, in the order of the
    forward pass.
    """
    parts = (
        "attention.logits",
        "attention.weights",
        "attention.out",
        "after_attention",
        "after_mlp",
    )
    return [
        "embedding",
        *(f"blocks.{i}.{part}" for i in range(depth) for part in parts),
        "final",
        "logits",
    ]


class Trace(Mapping[str, Tensor]):
    """Values by name; see the table above."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._values: dict[str, Tensor] = {}

    def keep(self, name: str, flat: Tensor) -> None:
        """Keep a value of all flat tokens, (B * T, ...)."""
        self._values[name] = flat.unflatten(0, (self._rows, -1))

    def attend(self, block: int) -> Attend:
        """Plain causal attention that keeps its logits and weights."""

        def attend(q: Tensor, kv: Tensor, scale: Tensor, variant: Variant) -> Tensor:
            parts = (q * scale[:, :, None], *kv.unbind(1))
            q, k, v = (x.unflatten(0, (self._rows, -1)).transpose(1, 2) for x in parts)
            ids = rectangle_of_ids(
                variant.asking.ids, variant.seen.ids, self._rows, variant.seen.equal_ids
            )
            found, logits, weights = attend_general(q, k, v, variant, *ids)
            self._values[f"blocks.{block}.attention.logits"] = logits
            self._values[f"blocks.{block}.attention.weights"] = weights
            return found.transpose(1, 2).flatten(0, 1)

        return attend

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._values:
            raise KeyError(f"no trace value {name!r}; {nearest(name, self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
