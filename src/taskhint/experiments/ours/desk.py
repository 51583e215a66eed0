"""The hint at desk scale: 32 symbols at width 128, so that the bases of the symbols and of a
hint's head fit at right angles, as in the paper.

    taskhint reproduce desk-hint-decay desk-sharpness --scale desk --seeds 5 --out desk

All arms have the settings of `sort/standard` at desk scale but for what their label says. 6,000
updates are those of all tasks together. A hinted arm is compared at equal total updates, and at
equal main-task updates: with a plain arm of half as many. desk-hint-best, where each arm has the
settings that suit it, is in desk_best.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import AtLeast, AtMost, Better, Claim, NotBetter
from taskhint.experiments.experiment import Experiment, Panel
from taskhint.experiments.quantity import ACCURACY, MECHANISMS, SHARPNESS
from taskhint.model.positions import Rope
from taskhint.model.softmax import Fixed, LogVisible
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Muon
from taskhint.recipes.recipe import Hint
from taskhint.recipes.sort import DESK_UPDATES, SYMBOLS
from taskhint.tasks import Copy, Restricted, Restriction, Sort, Successor
from taskhint.tasks.lengths import EvenLengths

LENGTHS = (10, 20, 30, 50, 70, 100)
COMPARED_AT = (50, 70, 100)
DECAY = 0.1
FACTORS = (1.25, 1.5, 2.0)
TWICE_AS_LONG = 40
DESK_SYMBOLS = SYMBOLS["desk"]
RECIPES = {
    "no hint": "sort/standard",
    "successor": "sort/successor",
    "count": "sort/count",
    "fill": "sort/fill",
    "all hints": "sort/all-hints",
}
AMOUNTS = {
    0.5: (", half the updates", "-half"),
    1.0: ("", ""),
    2.0: (", twice the updates", "-x2"),
}
PANELS = (Panel(ACCURACY), *map(Panel, MECHANISMS), Panel(SHARPNESS))
WIDE = {"width": 256, "heads": 8, "mlp_width": 512}
WIDE_SYMBOLS = 100


def desk(hint: str, amount: float = 1.0, label: str = "", what: str = "", **changes: Any) -> Arm:
    """A hint, or none, for so many times the usual updates; with weight decay if nothing else is
    said.
    """
    words, suffix = AMOUNTS[amount]
    decay = changes.pop("decay", DECAY)
    settings = {"optimiser": Muon(weight_decay=decay), **changes}
    recipe = find_recipe(RECIPES[hint], "desk").change(**settings)
    name = f"desk-{RECIPES[hint].removeprefix('sort/')}{what}"
    name += f"{'' if decay == DECAY else f'-decay-{decay:g}'}{suffix}"
    steps = round(DESK_UPDATES * amount)
    return Arm((label or hint) + words, recipe.with_steps(steps), name)


def aux(label: str, what: str, task: Any, **changes: Any) -> Arm:
    """Any task as the hint."""
    named: dict[str, Any] = {"name": f"sort/{what}", "hints": (Hint(task),)}
    return desk("no hint", label=label, what=f"-{what}-hint", **named, **changes)


def wide(hint: str) -> Arm:
    """The same at twice the width, on as many symbols as in the paper."""
    arm = desk(hint)
    recipe = arm.at("desk")
    tasks = [replace(task, symbols=WIDE_SYMBOLS) for task in recipe.tasks]  # type: ignore[call-arg]
    changed = recipe.change(task=tasks[0], hints=tuple(map(Hint, tasks[1:])), **WIDE)
    return Arm(hint, changed, f"{arm.name}-wide")


def better(arm: Arm, *others: Arm, at: Iterable[int] = COMPARED_AT) -> list[Claim]:
    return [Better(arm, other, length) for other in others for length in at]


PLAIN, PLAIN_HALF = desk("no hint"), desk("no hint", 0.5)
SUCCESSOR, COUNT, FILL = desk("successor"), desk("count"), desk("fill")
ALL_HINTS = desk("all hints")
NO_DECAY, NO_DECAY_HALF = desk("no hint", decay=0.0), desk("no hint", 0.5, decay=0.0)
NO_DECAY_SUCCESSOR = desk("successor", decay=0.0)
NO_DECAY_LONGER = desk("successor", 2.0, decay=0.0)

TEMPERED = desk("no hint", label="tempered", what="-tempered", temperature=LogVisible())
SHARPER = tuple(
    desk("no hint", label=f"logits × {f:g}", what=f"-times-{f:g}", temperature=Fixed(f))
    for f in FACTORS
)

EVEN = Successor(EvenLengths(2, 20), DESK_SYMBOLS)
LONGER = Successor(EvenLengths(2, TWICE_AS_LONG), DESK_SYMBOLS)
EVEN_SUCCESSOR = aux("successor, lengths uniform ≤ 20", "successor-even", EVEN)
LONGER_SUCCESSOR = aux("successor, lengths uniform ≤ 40", "successor-longer", LONGER)
LONGER_COPY = aux(
    "copy, lengths uniform ≤ 32",
    "copy-longer",
    Copy(EvenLengths(2, DESK_SYMBOLS), DESK_SYMBOLS),
)

RESTRICTION = aux("restriction as a hint", "restriction", Restriction(symbols=DESK_SYMBOLS))
RESTRICTED = desk(
    "no hint",
    label="half of the data restricted",
    what="-restricted",
    task=Sort(symbols=DESK_SYMBOLS, inputs=Restricted(share=0.5)),
)

ROPE = desk("no hint", label="RoPE", what="-rope", positions=Rope())
ROPE_SUCCESSOR = desk("successor", label="RoPE, successor", what="-rope", positions=Rope())
WIDE_PLAIN, WIDE_SUCCESSOR = wide("no hint"), wide("successor")

EXPERIMENTS = (
    Experiment(
        "desk-hint-decay",
        "Which hint helps at desk scale, with weight decay and constant attention?",
        (PLAIN, PLAIN_HALF, SUCCESSOR, COUNT, FILL),
        panels=PANELS,
        lengths=LENGTHS,
        claims=(
            *better(SUCCESSOR, PLAIN, PLAIN_HALF, COUNT, FILL),
            AtLeast(SUCCESSOR, 100, 50),
            AtMost(PLAIN, 100, 1),
        ),
        note="At 6,000 updates a hinted arm makes 3,000 of the main task.",
    ),
    Experiment(
        "desk-sharpness",
        "Does the hint add anything once attention is as sharp?",
        (PLAIN, SUCCESSOR, *SHARPER, TEMPERED),
        panels=PANELS,
        lengths=LENGTHS,
        claims=(
            *better(SUCCESSOR, PLAIN),
            *(NotBetter(SUCCESSOR, one, n) for one in SHARPER for n in COMPARED_AT),
            *better(TEMPERED, SUCCESSOR),
        ),
        note="The factor stands on the logits in training and in the test. Which one matches the "
        "hinted models is read from how sharp their attention is, not from accuracies.",
    ),
    Experiment(
        "desk-hint-no-decay",
        "Does the successor hint help at desk scale without weight decay?",
        (NO_DECAY, NO_DECAY_HALF, NO_DECAY_SUCCESSOR, NO_DECAY_LONGER),
        panels=PANELS,
        lengths=LENGTHS,
        claims=(
            *better(NO_DECAY_SUCCESSOR, NO_DECAY, NO_DECAY_HALF),
            *better(NO_DECAY_LONGER, NO_DECAY),
        ),
        note="With twice the updates the hinted arm makes as many of the main task as the plain "
        "one.",
    ),
    Experiment(
        "desk-all-hints",
        "Are three hints better than the successor hint alone?",
        (PLAIN, SUCCESSOR, ALL_HINTS),
        lengths=LENGTHS,
        claims=better(ALL_HINTS, PLAIN, SUCCESSOR),
        note="With all hints 1,500 of the 6,000 updates are the main task's.",
    ),
    Experiment(
        "desk-longer-auxiliary",
        "Does a hint that is trained on longer inputs than the main task carry it along?",
        (PLAIN, SUCCESSOR, EVEN_SUCCESSOR, LONGER_SUCCESSOR, LONGER_COPY),
        lengths=LENGTHS,
        claims=(
            *better(EVEN_SUCCESSOR, PLAIN, SUCCESSOR),
            *better(LONGER_SUCCESSOR, PLAIN, EVEN_SUCCESSOR, LONGER_COPY),
            *(NotBetter(LONGER_COPY, PLAIN, n) for n in COMPARED_AT),
        ),
        note="After Cai et al. 2025. Copying is the control: longer than the main task, but of no "
        "use for sorting. It writes no symbol twice, so its inputs end at 32, as the symbols do.",
    ),
    Experiment(
        "desk-restriction",
        "Do parts of longer sequences, cut down to at most 20 symbols, help?",
        (PLAIN, SUCCESSOR, RESTRICTION, RESTRICTED),
        lengths=LENGTHS,
        claims=(*better(RESTRICTION, PLAIN, SUCCESSOR), *better(RESTRICTED, PLAIN, RESTRICTION)),
        note="After Awasthi et al. 2025. No sequence is longer than 20 symbols, but restricted "
        "ones are as dense and uneven as sequences of up to 100, from which they are cut: "
        "training knows what long inputs look like.",
    ),
    Experiment(
        "desk-hint-rope",
        "Does the hint help models with rotary positions?",
        (PLAIN, ROPE, ROPE_SUCCESSOR),
        lengths=LENGTHS,
        claims=(*better(ROPE_SUCCESSOR, ROPE), *better(PLAIN, ROPE)),
    ),
    Experiment(
        "desk-wide",
        "Is it the same with 100 symbols, at width 256?",
        (WIDE_PLAIN, WIDE_SUCCESSOR),
        panels=PANELS,
        lengths=LENGTHS,
        claims=better(WIDE_SUCCESSOR, WIDE_PLAIN),
        note="Some 20 minutes of one core for each run.",
    ),
)
