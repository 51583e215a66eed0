"""The algorithm that the paper reads off its charts, as four things to count, by length.

Shapes: B examples, P positions, A answer positions, q symbols.

Every mechanism is one function from a View to a Verdict: where it is asked for, and where it
holds. All of them take plain dot products of the stream with the embedding rows (encoder basis) or
with the main head's unembedding rows (decoder basis), as the paper does: the last norm and the
head's bias are not applied. Only symbols compete, not ⊥, PAD or NONE. A symbol is largest only if
it is larger than every other; a tie is none.

The first attention is that of block 0, the last attention and the last MLP are those of the last
block: in the paper's depth-2 models the first and the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from taskhint.probe.gather import Gathered, Rows, gather
from taskhint.probe.shares import Share, share_of
from taskhint.probe.shares_file import save_shares
from taskhint.probe.view import Subject, View
from taskhint.runs.run import Run
from taskhint.tasks import Sort


@dataclass(frozen=True)
class Verdict:
    """(B, P) each: whether the mechanism is asked for at a position, and whether it
    holds there.
    """

    asked: Tensor
    held: Tensor


def min_finding(view: View) -> Verdict:
    """At ⊥ after the first attention the smallest input symbol has the largest projection on the
    decoder basis.
    """
    smallest = view.tokens[:, : view.inputs].amin(dim=1, keepdim=True)
    held = stand_out(
        view.on_decoder("blocks.0.after_attention", slice(view.inputs, view.inputs + 1)), smallest
    )
    return Verdict(torch.ones_like(held), held)


def identity_successor(view: View) -> Verdict:
    """At answer positions after the last attention the token and the right next symbol have the
    two largest projections on the decoder basis, in either order.

    Where the token must be repeated the two are one symbol, and that one must have the largest
    projection.
    """
    held = stand_out(
        _before_last_mlp(view), view.tokens[:, view.answer], view.following[:, view.answer]
    )
    return Verdict(torch.ones_like(held), held)


def identity_successor_moving(view: View) -> Verdict:
    """Identity+Successor at those answer positions whose right next symbol is another one: two
    peaks are asked for.
    """
    return Verdict(_moves(view), identity_successor(view).held)


def identity_successor_repeating(view: View) -> Verdict:
    """Identity+Successor at those answer positions whose token must be repeated: one peak is asked
    for.
    """
    return Verdict(~_moves(view), identity_successor(view).held)


def denoising(view: View) -> Verdict:
    """After the last MLP the right next symbol has the largest projection on the decoder basis.

    Asked for where there is something to remove: the right next symbol is another one, both peaks
    stand out before the MLP, and that of the token itself is the higher one.
    """
    token, successor = view.tokens[:, view.answer, None], view.following[:, view.answer, None]
    before = _before_last_mlp(view)
    higher = (before.gather(2, token) > before.gather(2, successor))[:, :, 0]
    asked = _moves(view) & identity_successor(view).held & higher
    after = view.on_decoder(f"blocks.{view.subject.depth - 1}.after_mlp", view.answer)
    return Verdict(asked, stand_out(after, successor[:, :, 0]))


def copy_after_first_attention(view: View) -> Verdict:
    """At input positions after the first attention the token itself has the largest projection on
    the encoder basis.
    """
    return _copy(view, 0)


def copy_after_last_attention(view: View) -> Verdict:
    """The same after the last attention: whether the copy lasts, as the paper's "throughout the
    inference" says.
    """
    return _copy(view, view.subject.depth - 1)


def _copy(view: View, block: int) -> Verdict:
    before = slice(0, view.inputs)
    held = stand_out(
        view.on_encoder(f"blocks.{block}.after_attention", before), view.tokens[:, before]
    )
    return Verdict(torch.ones_like(held), held)


def _before_last_mlp(view: View) -> Tensor:
    return view.on_decoder(f"blocks.{view.subject.depth - 1}.after_attention", view.answer)


def _moves(view: View) -> Tensor:
    return view.tokens[:, view.answer] != view.following[:, view.answer]


def stand_out(projections: Tensor, *symbols: Tensor) -> Tensor:
    """(B, P) whether each named symbol's projection is larger than that of every symbol that is
    not named.

    (B, P, q) projections; each of `symbols` is (B, P).
    """
    named = torch.zeros_like(projections, dtype=torch.bool)
    for symbol in symbols:
        named.scatter_(2, symbol[:, :, None], True)
    highest_other = projections.masked_fill(named, float("-inf")).amax(dim=2)
    return projections.masked_fill(~named, float("inf")).amin(dim=2) > highest_other


Mechanism = Callable[[View], Verdict]

MECHANISMS: dict[str, Mechanism] = {
    "min-finding": min_finding,
    "identity+successor": identity_successor,
    "identity+successor, moving on": identity_successor_moving,
    "identity+successor, repeating": identity_successor_repeating,
    "denoising": denoising,
    "copy": copy_after_first_attention,
    "copy to the last block": copy_after_last_attention,
}
FOR_ANY_TASK = ("copy", "copy to the last block")


@dataclass(frozen=True)
class MechanismCurves:
    """For each mechanism how often it held, by input length."""

    shares: dict[str, dict[int, Share]]


def measure_mechanisms(subject: Subject, lengths: Sequence[int], examples: int) -> MechanismCurves:
    """Every mechanism that has a meaning for the subject's task."""
    return mechanism_curves(gather(subject, lengths, examples, [mechanism_rows]))


def keep_mechanisms(run: Run, lengths: Sequence[int], examples: int = 200) -> None:
    """Count the mechanisms of a run and keep their shares with it."""
    curves = measure_mechanisms(Subject.of(run), lengths, examples)
    shares = {
        name: {length: share.share for length, share in row.items() if share.share is not None}
        for name, row in curves.shares.items()
    }
    save_shares(run.path, run.checkpoint.step, examples, shares)


def mechanism_rows(view: View) -> Rows:
    """How often each mechanism was asked for and held in each sequence."""
    rows: Rows = {}
    for name, mechanism in MECHANISMS.items():
        if isinstance(view.subject.task, Sort) or name in FOR_ANY_TASK:
            verdict = mechanism(view)
            counts = torch.stack([verdict.asked & verdict.held, verdict.asked], dim=2).sum(dim=1)
            rows[f"mechanism {name}"] = counts.numpy()
    return rows


def mechanism_curves(gathered: Gathered) -> MechanismCurves:
    shares: dict[str, dict[int, Share]] = {}
    for name in MECHANISMS:
        for length, rows in gathered.items():
            if f"mechanism {name}" in rows:
                shares.setdefault(name, {})[length] = share_of(*rows[f"mechanism {name}"].T)
    return MechanismCurves(shares)
