"""The paper's charts: hidden states of single tokens read as symbols, by their dot products with
both bases before and after each MLP.

Shapes: S stages, q symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from taskhint.probe.probe import About, Looked, Probe, Shown
from taskhint.probe.shares import Floats
from taskhint.probe.stages import stage_label, stages
from taskhint.probe.traced import Subject, Traced, trace_of_prompt
from taskhint.system.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASES = ("encoder", "decoder")
ROLE_STYLE = {
    "token": (BLUE, "o"),
    "successor": (VERMILION, "s"),
    "right next": (VERMILION, "s"),
    "minimum": (GREEN, "^"),
    "⊥": (PURPLE, "D"),
}
OTHER_ROLE = (ORANGE, "v")
PRESENT_STYLE: dict[str, Any] = {"marker": "^", "ls": "", "color": "#000000", "ms": 4.5}
PLACES = {"input": "in the input", "answer": "in the answer", "delimiter": "the end of the input"}
TITLES = {
    "input": "A symbol in the input",
    "answer": "A symbol in the answer",
    "delimiter": "⊥, the end of the input",
}
CAPTIONS = {
    "input": "A symbol before ⊥. A spike at the token itself in the encoder basis is a copy.",
    "answer": "A symbol of the answer. A spike in the decoder basis at the right next symbol is "
    "the answer found; the last MLP should leave only that one.",
    "delimiter": "⊥ itself. A spike in the decoder basis at the right next symbol is the first "
    "symbol of the answer, found.",
}
SUCCESSOR_CAPTION = (
    "The same symbol in the answer. Two spikes in the decoder basis after the last attention, at "
    "the token and at its successor, are Identity+Successor; the last MLP should leave only the "
    "right one."
)
MINIMUM_CAPTION = (
    "⊥ itself. A spike at the smallest input symbol in the decoder basis is the minimum found."
)


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
    """A token before ⊥, one in the answer, and ⊥ itself."""

    sequence: tuple[str, ...]  # prompt and right answer
    inputs: tuple[str, ...]  # the different input symbols, in order
    symbols: tuple[str, ...]  # the q symbols and ⊥, as on the last axis of the values
    stages: tuple[str, ...]
    bases: tuple[str, ...]
    positions: tuple[PositionProjection, ...]


@dataclass(frozen=True)
class ProjectionCharts(Probe):
    kind: ClassVar[str] = "projections"

    def result(self, looked: Looked) -> Projections:
        return project(looked.subject, looked.prompt)

    def draw(self, found: Projections, about: About) -> list[Shown]:  # noqa: ARG002
        return [
            Shown(f"projection-{one.place}", *_words(one), projection_figure(found, one))
            for one in found.positions
        ]


def _words(position: PositionProjection) -> tuple[str, str]:
    """Title and caption: of a step that the paper names, in its words."""
    if position.place == "answer" and "successor" in position.roles:
        return "The same symbol in the answer", SUCCESSOR_CAPTION
    if position.place == "delimiter" and "minimum" in position.roles:
        return TITLES["delimiter"], MINIMUM_CAPTION
    return TITLES[position.place], CAPTIONS[position.place]


@torch.no_grad()
def project(subject: Subject, prompt: list[int]) -> Projections:
    """Project the prompt's chosen positions, with the right answer behind it."""
    vocab = subject.task.vocab
    traced = trace_of_prompt(subject, prompt)
    ids = [*range(vocab.symbols), vocab.delimiter]
    sequence = traced.sequences[0].tolist()
    places = subject.task.chosen_places(sequence, traced.inputs) | {"delimiter": traced.inputs}
    return Projections(
        sequence=tuple(vocab.words(sequence)),
        inputs=tuple(vocab.words(sorted(set(sequence[: traced.inputs])))),
        symbols=tuple(vocab.words(ids)),
        stages=tuple(stages(subject.depth)),
        bases=BASES,
        positions=tuple(_project(traced, place, at, ids) for place, at in places.items()),
    )


def _project(traced: Traced, place: str, position: int, ids: list[int]) -> PositionProjection:
    subject, sequence = traced.subject, traced.sequences[0].tolist()
    bases = [basis[ids] for basis in (subject.encoder_basis, subject.decoder_basis)]
    streams = [
        traced.trace[name][0, position].to(bases[0].dtype)
        for name in stages(subject.depth).values()
    ]
    values = torch.stack([torch.stack([basis @ stream for basis in bases]) for stream in streams])
    roles = subject.task.roles(sequence, traced.inputs, position)
    word = dict(zip(roles, subject.task.vocab.words(list(roles.values())), strict=True))
    (token,) = subject.task.vocab.words([sequence[position]])
    return PositionProjection(place, position, token, word, values.double().numpy())


def projection_figure(projections: Projections, position: PositionProjection) -> Figure:
    """A row per block; encoder basis before and after the MLP, then the decoder basis before and
    after it.
    """
    blocks = len(projections.stages) // 2
    figure = new_figure(14, 2.5 * blocks + 1.2)
    panels: Any = figure.subplots(blocks, 4, squeeze=False, sharex=True)
    for stage in range(len(projections.stages)):
        for basis, basis_name in enumerate(projections.bases):
            panel = panels[stage // 2][2 * basis + stage % 2]
            _draw(panel, projections, position, position.values[stage, basis])
            tidy(panel, f"{basis_name} basis · {stage_label(stage)}")
    for panel in panels[-1]:
        panel.set_xlabel("symbol")
    for row in panels:
        row[0].set_ylabel("dot product")
    _title(figure, projections, position)
    return figure


def _draw(panel: Any, projections: Projections, position: PositionProjection, values: Any) -> None:
    places = range(len(values))
    panel.fill_between(places, values, step="mid", color=GREY, alpha=0.55, lw=0)
    panel.axhline(0, color="#444444", lw=0.6)
    known = projections.symbols
    present = [known.index(symbol) for symbol in projections.inputs if symbol in known]
    panel.plot(
        present,
        [0] * len(present),
        transform=panel.get_xaxis_transform(),
        clip_on=False,
        **PRESENT_STYLE,
    )
    for role, symbol in _marked(position).items():
        if symbol not in known:  # a mark, such as NONE, has no place on the axis
            continue
        colour, marker = ROLE_STYLE.get(role, OTHER_ROLE)
        at = known.index(symbol)
        panel.vlines(at, 0, values[at], color=colour, lw=1.8)
        panel.plot([at], [values[at]], marker, color=colour, ms=6, mec="white", mew=0.7)
    _tick_symbols(panel, projections)


def _marked(position: PositionProjection) -> dict[str, str]:
    """Roles and their symbols; ⊥ marks itself."""
    return {**position.roles, **({"⊥": position.token} if position.place == "delimiter" else {})}


def _tick_symbols(panel: Any, projections: Projections) -> None:
    count = len(projections.symbols)
    every = max(1, (count - 1) // 5)
    ticks = [*range(every - 1 if count > 20 else 0, count - 1, every)]
    ticks = [tick for tick in ticks if tick < count - 1 - every // 3] + [count - 1]
    panel.set_xticks(ticks, [projections.symbols[tick] for tick in ticks])


def _title(figure: Figure, projections: Projections, position: PositionProjection) -> None:
    from matplotlib.lines import Line2D

    sequence = " ".join(
        f"[{word}]" if place == position.position else word
        for place, word in enumerate(projections.sequence[:40])
    )
    ending = " …" if len(projections.sequence) > 40 else ""
    where = PLACES[position.place]
    figure.suptitle(
        f"Token {position.token} at position {position.position}, {where}:   {sequence}{ending}",
        fontsize=12,
    )
    handles = []
    for role, symbol in _marked(position).items():
        colour, marker = ROLE_STYLE.get(role, OTHER_ROLE)
        label = role if role == symbol else f"{role}: {symbol}"
        handles.append(Line2D([], [], color=colour, marker=marker, lw=1.8, label=label))
    handles.append(Line2D([], [], label="every input symbol (on the axis)", **PRESENT_STYLE))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10
    )
