"""Which way attention is computed. All ways give the same numbers; the fast ones say here what
they support.

| way | file | what it supports |
|---|---|---|
| by symbol counts | symbol_counts.py | softmax, no bias, block 0, no positions, no gradient, CPU |
| packed | packed.py | softmax, no bias, at most LONGEST tokens, gradient, CPU |
| varlen | varlen.py | softmax, no bias, CUDA, bfloat16 |
| torch's own, group by group | here | softmax, no bias |
| general, group by group, in blocks of queries | here | everything |

What turns queries and keys (RoPE) or adds to embeddings leaves logits alone: it takes all ways but
the first.

Shapes: N tokens, M queries (N, or the tail positions only), H heads, K head width; B examples of T
tokens, A queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from taskhint.data.batch import Group
from taskhint.model.attention.packed import LONGEST, PackedAttention, hidden_keys, spans, visible
from taskhint.model.places import Places
from taskhint.model.softmax import Normaliser, Softmax

PAIRS_AT_ONCE = 1 << 18  # pairs of a query and a key for which the general way holds logits
PAIRS_ON_DEVICE = 1 << 22  # the same where there are no caches to stay in
LARGEST_MASK = 1 << 24  # entries of the mask that torch's own attention takes at once


class Variant(NamedTuple):
    """What a block's attention does beside products and a causal softmax."""

    bias: (
        Callable[[Tensor, Tensor], Tensor] | None
    )  # position ids of queries and keys -> added to the logits
    normaliser: Normaliser
    asking: Places  # of the M queries
    seen: Places  # of the N keys

    @property
    def is_plain(self) -> bool:
        return self.bias is None and type(self.normaliser) is Softmax


Attend = Callable[[Tensor, Tensor, Tensor, Variant], Tensor]
"""(M, H, K) queries, (N, 2, H, K) keys and values, (M, 1) or (M, H) factors on logits -> (M, H,
K).
"""


def attend_flat(groups: tuple[Group, ...], *, tail: bool, low: bool = False) -> Attend:
    """Each example attends to itself alone, causally: in the way that suits the device and the
    lengths best; `low`: in bfloat16.
    """
    short = torch.is_grad_enabled() and max(group.length for group in groups) <= LONGEST

    def attend(q: Tensor, kv: Tensor, scale: Tensor, variant: Variant) -> Tensor:
        if not variant.is_plain:
            return attend_by_group(q, kv, scale, groups, tail, variant)
        if q.is_cuda and q.dtype == torch.bfloat16:
            from taskhint.model.attention.varlen import has_kernel, varlen_attend

            if has_kernel():
                return varlen_attend(q, kv, scale, groups, tail)
        if short and q.device.type == "cpu":
            return PackedAttention.apply(q, kv, scale, groups, tail)  # type: ignore[no-untyped-call]
        return attend_by_group(q, kv, scale, groups, tail)

    def attend_low(q: Tensor, kv: Tensor, scale: Tensor, variant: Variant) -> Tensor:
        scaled = (q * scale[:, :, None]).bfloat16()  # the factor itself is not rounded
        return attend(scaled, kv.bfloat16(), scaled.new_ones(len(q), 1), variant).to(q.dtype)

    return attend_low if low else attend


def attend_by_group(
    q: Tensor,
    kv: Tensor,
    scale: Tensor,
    groups: tuple[Group, ...],
    tail: bool,
    variant: Variant | None = None,
) -> Tensor:
    """One group of equally long examples after another; without a variant by torch's own
    attention.
    """
    sizes = [g.count * g.length for g in groups]
    asked = [span.stop - span.start for _, span, _ in spans(groups, tail)]
    scaled = (q * scale[:, :, None]).split(asked)
    if variant is None:
        parts = zip(groups, scaled, kv.split(sizes), strict=True)
        return torch.cat(
            [_rows_of(g.count, part, both, causal_attention) for g, part, both in parts]
        )
    query_ids, key_ids = variant.asking.ids.split(asked), variant.seen.ids.split(sizes)
    found = []
    for g, part, both, of_queries, of_keys in zip(
        groups, scaled, kv.split(sizes), query_ids, key_ids, strict=True
    ):
        ids = rectangle_of_ids(of_queries, of_keys, g.count, variant.seen.equal_ids)
        found.append(
            _rows_of(g.count, part, both, partial(attend_in_blocks, variant=variant, ids=ids))
        )
    return torch.cat(found)


def attend_rectangle(
    q: Tensor, k: Tensor, v: Tensor, variant: Variant, ids: tuple[Tensor, Tensor]
) -> Tensor:
    """(B, H, A, K) scaled queries, (B, H, T, K) keys and values of equally long examples."""
    if variant.is_plain:
        return causal_attention(q, k, v)
    return attend_in_blocks(q, k, v, variant, ids)


def _rows_of(
    rows: int, scaled: Tensor, kv: Tensor, attend: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> Tensor:
    """(rows * A, H, K) scaled queries, (rows * T, 2, H, K) keys and values of equally long
    examples.
    """
    q, k, v = (x.unflatten(0, (rows, -1)).transpose(1, 2) for x in (scaled, *kv.unbind(1)))
    return attend(q, k, v).transpose(1, 2).flatten(0, 1)


def rectangle_of_ids(
    queries: Tensor, keys: Tensor, rows: int, equal: bool
) -> tuple[Tensor, Tensor]:
    """Flat ids of equally long examples -> (B, 1, A, 1) and (B, 1, 1, T); B is 1 if all have the
    same.
    """
    rows_of = 1 if equal else rows
    return (
        queries.view(rows, 1, -1, 1)[:rows_of],
        keys.view(rows, 1, 1, -1)[:rows_of],
    )


def attend_in_blocks(
    q: Tensor, k: Tensor, v: Tensor, variant: Variant, ids: tuple[Tensor, Tensor]
) -> Tensor:
    """As `attend_general`, some queries at a time, so that memory does not grow with the square of
    the length.
    """
    rows, keys = len(q), k.shape[2]
    at_once = PAIRS_AT_ONCE if q.device.type == "cpu" else PAIRS_ON_DEVICE
    if rows > 1 and rows * keys > at_once:
        query_ids, key_ids = (of.expand(rows, -1, -1, -1) for of in ids)
        halves = (slice(None, rows // 2), slice(rows // 2, None))
        return torch.cat(
            [
                attend_in_blocks(q[h], k[h], v[h], variant, (query_ids[h], key_ids[h]))
                for h in halves
            ]
        )
    found = []
    for asking, end in query_blocks(q.shape[2], keys, max(1, at_once // (rows * keys))):
        some = q[:, :, asking], k[:, :, :end], v[:, :, :end]
        found.append(attend_general(*some, variant, ids[0][:, :, asking], ids[1][..., :end])[0])
    return torch.cat(found, dim=2) if len(found) > 1 else found[0]


def query_blocks(queries: int, keys: int, size: int) -> Iterator[tuple[slice, int]]:
    """Some of the last positions at a time, each with the number of keys that they may see."""
    for start in range(0, queries, size):
        stop = min(start + size, queries)
        yield slice(start, stop), keys - queries + stop


def attend_general(
    q: Tensor, k: Tensor, v: Tensor, variant: Variant, query_ids: Tensor, key_ids: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(B, H, A, K) scaled queries, (B, H, T, K) keys and values -> what is gathered, the logits
    and the weights.
    """
    logits = q @ k.transpose(2, 3)
    if variant.bias is not None:
        logits = logits + variant.bias(query_ids, key_ids).to(logits.dtype)
    # Masks of long examples are not worth keeping.
    mask = hidden_keys if logits.shape[3] <= LONGEST else hidden_keys.__wrapped__
    logits = logits + mask(*logits.shape[2:], logits.dtype, logits.device)
    weights = variant.normaliser.weights(logits)
    return weights @ v, logits, weights


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(B, H, A, K) queries, (B, H, T, K) keys and values; the last query sees all keys, the one
    before one less.
    """
    queries, keys = q.shape[2], k.shape[2]
    if queries == 1:
        return functional.scaled_dot_product_attention(q, k, v, scale=1.0)
    if queries == keys:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    found = []
    for asking, end in query_blocks(queries, keys, max(1, LARGEST_MASK // keys)):
        mask = visible(asking.stop - asking.start, end, q.device)
        found.append(
            functional.scaled_dot_product_attention(
                q[:, :, asking], k[:, :, :end], v[:, :, :end], attn_mask=mask, scale=1.0
            )
        )
    return torch.cat(found, dim=2) if len(found) > 1 else found[0]
