"""Attention of the first block over symbols instead of tokens, for long examples.

Where a token is nothing but its symbol, the keys of equal symbols are equal, and c of them weigh
as much as one whose logit is larger by ln c. So a query looks at each symbol once, however long
the example is.

Shapes: N tokens, M queries (N, or the tail positions only), V symbols, H heads, K head width; in a
group B examples, T tokens, A queries of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from taskhint.data.batch import Group
from taskhint.model.attention.packed import spans

LARGEST_LOGIT = 1000.0  # beyond it, float32 has no room for ln c beside a logit


def attend_by_counts(
    q: Tensor, kv: Tensor, scale: Tensor, tokens: Tensor, groups: Sequence[Group], tail: bool
) -> Tensor | None:
    """(V, H, K) queries, (V, 2, H, K) keys and values, (M, 1) or (M, H) factors, (N,) tokens ->
    (M, H, K).

    None where it is no gain, or not exact.
    """
    short = min(group.length for group in groups) < len(q)
    if (
        short
        or torch.is_grad_enabled()
        or tokens.device.type != "cpu"
        or q.dtype not in (torch.float32, torch.float64)
    ):
        return None
    keys, values = kv.unbind(1)
    logits = torch.bmm(q.transpose(0, 1), keys.permute(1, 2, 0))  # (H, V, V)
    if not logits.abs().amax() * scale.amax() < LARGEST_LOGIT:
        return None
    out = torch.empty(len(scale), *q.shape[1:], dtype=q.dtype)
    for group, asked, seen in spans(groups, tail):
        symbols = tokens[seen].view(group.count, -1)
        counts = (
            symbols.new_zeros(*symbols.shape, len(q))
            .scatter_(2, symbols[:, :, None], 1)
            .cumsum_(1)
        )
        first = -group.tail if tail else 0
        logarithms = torch.arange(
            group.length + 1, dtype=q.dtype
        ).log()  # of few numbers: log is slow at zero
        more = logarithms.index_select(0, counts[:, first:].flatten()).view(
            -1, len(q)
        )  # (B * A, V)
        asking = symbols[:, first:].flatten()
        for head, table in enumerate(logits):
            factor = scale[asked, head % scale.shape[1], None]
            weights = torch.addcmul(more, table.index_select(0, asking), factor).softmax(dim=1)
            out[asked, head] = weights @ values[:, head]
    return out
