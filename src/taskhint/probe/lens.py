"""Hidden states read as symbols: their dot products with both bases before and after each MLP.

Shapes: B examples, A answer positions, T tokens, S stages, q symbols, D width.

A stage is a place in the stream: after the attention of a block (before its MLP) or after the
block's MLP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from taskhint.probe.gather import Gathered, Rows, gather
from taskhint.probe.mechanisms import stand_out
from taskhint.probe.shares import Floats, Share, share_of
from taskhint.probe.view import Subject, View, view_of_prompt
from taskhint.tasks import Sort

BASES = ("encoder", "decoder")


def stages(depth: int) -> dict[str, str]:
    """What to call each stage, and its name in the trace, in the order of the forward pass."""
    names: dict[str, str] = {}
    for block in range(depth):
        names[f"block {block + 1}, before MLP"] = f"blocks.{block}.after_attention"
        names[f"block {block + 1}, after MLP"] = f"blocks.{block}.after_mlp"
    return names


@dataclass(frozen=True)
class PositionProjection:
    """The projections at one position. `roles` are the symbols to look for: "token", "successor",
    "minimum", ..
    """

    place: str  # "input", "answer" or "delimiter"
    position: int
    token: str
    roles: dict[str, str]
    values: Floats  # (S, 2, q + 1): stages, bases, symbols and ⊥


@dataclass(frozen=True)
class Projections:
    """The paper's charts: a token before ⊥, the same one in the answer, and ⊥ itself."""

    sequence: tuple[str, ...]  # prompt and right answer
    inputs: tuple[str, ...]  # the different input symbols, in order
    symbols: tuple[str, ...]  # the q symbols and ⊥, as on the last axis of the values
    stages: tuple[str, ...]
    bases: tuple[str, ...]
    positions: tuple[PositionProjection, ...]


@torch.no_grad()
def project(subject: Subject, prompt: list[int]) -> Projections:
    """Project the prompt's chosen positions, with the right answer behind it."""
    vocab = subject.task.vocab
    view = view_of_prompt(subject, prompt)
    ids = [*range(vocab.symbols), vocab.delimiter]
    sequence = [*view.tokens[0].tolist(), int(view.following[0, -1])]
    return Projections(
        sequence=tuple(vocab.words(sequence)),
        inputs=tuple(vocab.words(sorted(set(sequence[: view.inputs])))),
        symbols=tuple(vocab.words(ids)),
        stages=tuple(stages(subject.depth)),
        bases=BASES,
        positions=tuple(_project(view, place, at, ids) for place, at in _chosen(view).items()),
    )


def _project(view: View, place: str, position: int, ids: list[int]) -> PositionProjection:
    subject = view.subject
    bases = [basis[ids] for basis in (subject.encoder_basis, subject.decoder_basis)]
    streams = [
        view.trace[name][0, position].to(bases[0].dtype) for name in stages(subject.depth).values()
    ]
    values = torch.stack([torch.stack([basis @ stream for basis in bases]) for stream in streams])
    words = subject.task.vocab.words
    return PositionProjection(
        place=place,
        position=position,
        token=words([int(view.tokens[0, position])])[0],
        roles={role: words([symbol])[0] for role, symbol in _roles(view, position).items()},
        values=values.double().numpy(),
    )


def _chosen(view: View) -> dict[str, int]:
    """Positions by place. Sorting: the middle symbol, and its last copy that the answer goes on
    from.
    """
    tokens, n = view.tokens[0].tolist(), view.inputs
    answers = range(n + 1, len(tokens))
    if isinstance(view.subject.task, Sort):
        middle = sorted(tokens[:n])[(n - 1) // 2]
        before = tokens.index(middle)
        inside = [at for at in answers if tokens[at] == middle]
    else:
        before = n // 2
        inside = [
            at for at in answers if at == 2 * n - before
        ]  # an answer with its last digit first mirrors the input
    return {"input": before, **({"answer": inside[-1]} if inside else {}), "delimiter": n}


def _roles(view: View, position: int) -> dict[str, int]:
    """The symbols that the algorithm needs at a position. Where two are the same, both roles name
    it.
    """
    token, following, n = (
        int(view.tokens[0, position]),
        int(view.following[0, position]),
        view.inputs,
    )
    roles = {"token": token} if position != n else {}
    if not isinstance(view.subject.task, Sort):
        return roles if position < n else {**roles, "right next": following}
    ordered = sorted(view.tokens[0, :n].tolist())
    if position == n:
        return {"minimum": ordered[0]}
    if position > n:
        return {**roles, "right next" if following == token else "successor": following}
    larger = [symbol for symbol in ordered if symbol > token]
    return {**roles, **({"successor": larger[0]} if larger else {}), "minimum": ordered[0]}


@dataclass(frozen=True)
class StageCurves:
    """For each stage, how often the right next symbol has the largest projection on the decoder
    basis, by length.

    `start` counts the step from ⊥ to the first answer symbol, `answer` all later ones.
    """

    start: dict[str, dict[int, Share]]
    answer: dict[str, dict[int, Share]]


def answer_by_stage(subject: Subject, lengths: Sequence[int], examples: int) -> StageCurves:
    """Where in the stream the answer appears."""
    return stage_curves(subject, gather(subject, lengths, examples, [stage_rows]))


def stage_rows(view: View) -> Rows:
    """Of each sequence at each stage: right at ⊥, right at later positions, and how many of these
    there are.
    """
    asked = slice(view.inputs, view.tokens.shape[1])
    rows: Rows = {}
    for name, traced in stages(view.subject.depth).items():
        right = stand_out(view.on_decoder(traced, asked), view.following[:, asked])
        later = torch.full((len(right),), right.shape[1] - 1)
        rows[f"stage {name}"] = torch.stack(
            [right[:, 0], right[:, 1:].sum(dim=1), later], dim=1
        ).numpy()
    return rows


def stage_curves(subject: Subject, gathered: Gathered) -> StageCurves:
    start: dict[str, dict[int, Share]] = {}
    answer: dict[str, dict[int, Share]] = {}
    for name in stages(subject.depth):
        counts = {length: rows[f"stage {name}"].T for length, rows in gathered.items()}
        start[name] = {
            n: share_of(at_start, np.ones(len(at_start))) for n, (at_start, _, _) in counts.items()
        }
        answer[name] = {n: share_of(right, later) for n, (_, right, later) in counts.items()}
    return StageCurves(start, answer)
