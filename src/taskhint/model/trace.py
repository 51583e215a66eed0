"""The named intermediates that a forward pass can return.

Shapes: B examples, T tokens, D width, H heads, V symbols. Blocks count from 0.

| name | shape | what |
|---|---|---|
| embedding | (B, T, D) | token vectors, with positions if there are any |
| blocks.{i}.attention.scale | (B, T, 1 or H) | what logits are multiplied with: temperature / √K |
| blocks.{i}.attention.logits | (B, H, T, T) | scaled; -inf where a key may not be seen |
| blocks.{i}.attention.weights | (B, H, T, T) | after the softmax |
| blocks.{i}.attention.heads | (B, T, H, K) | what each head gathers, before the map back |
| blocks.{i}.attention.out | (B, T, D) | what attention adds to the stream |
| blocks.{i}.after_attention | (B, T, D) | the stream before the MLP ("pre") |
| blocks.{i}.mlp.out | (B, T, D) | what the MLP adds to the stream, if there is one |
| blocks.{i}.after_mlp | (B, T, D) | the stream after the MLP ("post") |
| final | (B, T, D) | the stream that the head reads, after the last norm |
| logits | (B, T, V) | the head's output |

An edit (edits.py) changes the value of any name but attention's logits and weights; the pass goes
on with what it made of it. K is the head width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor

from taskhint.model.attention.paths import Attend, Variant, attend_general, rectangle_of_ids
from taskhint.model.block import Keep
from taskhint.model.edits import Edit, Other
from taskhint.system.errors import UserError, nearest


def trace_names(depth: int, mlp: bool = True) -> list[str]:
    """Every name that a trace holds, in the order of the forward pass; `mlp`: blocks have one."""
    parts = (
        "attention.scale",
        "attention.logits",
        "attention.weights",
        "attention.heads",
        "attention.out",
        "after_attention",
        *(("mlp.out",) if mlp else ()),
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

    def __init__(self, rows: int, edits: Sequence[Edit], other: Other) -> None:
        self._rows = rows
        self._edits = edits
        self._other = other
        self._values: dict[str, Tensor] = {}

    def keep(self, name: str, flat: Tensor) -> Tensor:
        """Keep a value of all flat tokens, (B * T, ...), after the edits that are made there."""
        value = flat.unflatten(0, (self._rows, -1))
        for edit in self._edits:
            if edit.at == name:
                value = edit.change(value, self._other)
        self._values[name] = value
        return value.flatten(0, 1)

    def keep_in(self, block: int) -> Keep:
        """Keeps values under the names of a block."""
        return lambda name, value: self.keep(f"blocks.{block}.{name}", value)

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
            gathered = found.transpose(1, 2).flatten(0, 1)
            return self.keep(f"blocks.{block}.attention.heads", gathered)

        return attend

    def cpu(self) -> Trace:
        """The same trace with its values on the CPU."""
        self._values = {name: value.cpu() for name, value in self._values.items()}
        return self

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._values:
            raise KeyError(f"no trace value {name!r}; {nearest(name, self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def check_edits(edits: Sequence[Edit], names: Sequence[str]) -> None:
    """Refuse an edit of a value that the pass does not have, or that cannot be changed."""
    allowed = [n for n in names if not n.endswith(("attention.logits", "attention.weights"))]
    for edit in edits:
        if edit.at not in allowed:
            raise UserError(
                f"edit {edit.kind!r}: {edit.at!r:.60} is no value of this model that an edit can "
                f"change; {nearest(edit.at, allowed)}"
            )
