"""Attention over flat tokens on a GPU: one call of torch's variable-length kernel for the whole
batch.

The kernel works in bfloat16 and aligns the last query of each example with its last key, which is
what a tail needs. Older versions of torch lack it, or its windows.

Shapes: N tokens, M queries, H heads, K head width, E examples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from taskhint.data.batch import Group

varlen_attn: Callable[..., Any] | None
try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:
    varlen_attn = None


def has_kernel() -> bool:
    return varlen_attn is not None and "window_size" in inspect.signature(varlen_attn).parameters


def varlen_attend(
    q: Tensor, kv: Tensor, scale: Tensor, groups: Sequence[Group], tail: bool
) -> Tensor:
    """q (M, H, K), kv (N, 2, H, K), scale (M, 1) or (M, H) -> (M, H, K)."""
    queries = [group.tail if tail else group.length for group in groups]
    keys = [group.length for group in groups]
    scaled, k, v = (x.bfloat16().contiguous() for x in (q * scale[:, :, None], *kv.unbind(1)))
    assert varlen_attn is not None
    found = varlen_attn(
        scaled,
        k,
        v,
        cu_seq_q=boundaries(groups, queries).to(q.device),
        cu_seq_k=boundaries(groups, keys).to(q.device),
        max_q=max(queries),
        max_k=max(keys),
        scale=1.0,
        window_size=(-1, 0),  # causal
    )
    assert isinstance(found, Tensor)
    return found.to(q.dtype)


def boundaries(groups: Sequence[Group], sizes: Sequence[int]) -> Tensor:
    """(E + 1,) where each example begins among the flat ones, and where the last one ends."""
    counts = torch.tensor([group.count for group in groups])
    return torch.nn.functional.pad(
        torch.tensor(sizes).repeat_interleave(counts).cumsum(0), (1, 0)
    ).int()
