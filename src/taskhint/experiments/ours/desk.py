"""The hint at desk scale: width 256 for 100 symbols, so that the bases of the symbols and of each
hint's head fit at right angles, as in the paper.

    taskhint reproduce desk-hint-decay desk-hint --scale desk --seeds 5 --out desk

All arms have the settings of `sort/standard` at desk scale but for what their label says. 6,000
updates are those of all tasks together. A hinted arm is compared at equal total updates, and at
equal main-task updates: with a plain arm of half as many, and itself for twice as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import AtLeast, AtMost, Better, Claim, NotBetter
from taskhint.experiments.experiment import Experiment, Panel
from taskhint.experiments.quantity import ACCURACY, MECHANISMS
from taskhint.model.positions import Rope
from taskhint.model.temperature import Constant, Fixed, LogVisible
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Muon
from taskhint.recipes.recipe import Hint
from taskhint.recipes.sort import DESK_UPDATES, RICH
from taskhint.tasks import Copy, Restricted, Restriction, Sort, Successor
from taskhint.tasks.lengths import EvenLengths

LENGTHS = (10, 20, 30, 50, 70, 100)
COMPARED_AT = (50, 70, 100)
DECAY = 0.1
TWICE_AS_LONG = 40
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
INSIDE = tuple(map(Panel, MECHANISMS))

# Processor seconds of one update, over 20 updates on one busy core of an EPYC: by the name of the
# recipe, and for others as for plain training.
SECONDS = {
    "sort/successor": 0.19,
    "sort/count": 0.18,
    "sort/all-hints": 0.18,
    "sort/successor-longer": 0.24,
    "sort/copy": 0.26,
    "sort/copy-longer": 0.39,
    "sort/successor-longer-rope": 0.30,
}
PLAIN_SECONDS = 0.21
ROPE_TAKES = 1.2  # times as long


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


def cost(arms: Iterable[Arm]) -> str:
    """The text on core minutes, from SECONDS."""
    each = []
    for arm in arms:
        recipe = arm.at("desk")
        seconds = SECONDS.get(recipe.name, PLAIN_SECONDS)
        if isinstance(recipe.model.positions, Rope) and "rope" not in recipe.name:
            seconds *= ROPE_TAKES
        each.append(f"{arm.label}: {recipe.steps * seconds / 60:.0f}")
    return f"Estimated core minutes of one seed – {'; '.join(each)}."


def experiment(
    name: str,
    question: str,
    arms: Sequence[Arm],
    claims: Iterable[Claim],
    note: str = "",
    more: tuple[Panel, ...] = (),
) -> Experiment:
    return Experiment(
        name=name,
        question=question,
        arms=arms,
        panels=(Panel(ACCURACY), *more),
        lengths=LENGTHS,
        claims=tuple(claims),
        note=" ".join(filter(None, (note, cost(arms)))),
    )


def better(arm: Arm, *others: Arm) -> list[Claim]:
    return [Better(arm, other, length) for other in others for length in COMPARED_AT]


def regime(name: str, question: str, decay: float, tempered: bool) -> Experiment:
    """Every hint against none: at equal total updates, and at equal main-task updates."""
    temperature = LogVisible() if tempered else Constant()
    what = "-tempered" if tempered else ""
    make = partial(desk, what=what, decay=decay, temperature=temperature)
    half, plain, double = (make("no hint", amount) for amount in AMOUNTS)
    successor, longer = make("successor"), make("successor", 2.0)
    others = [make(hint) for hint in ("count", "fill", "all hints")]
    others_longer = [make(hint, 2.0) for hint in ("count", "fill", "all hints")]
    return experiment(
        name,
        question,
        (half, plain, double, successor, longer, *others, *others_longer),
        (
            *better(successor, plain, half),
            *better(longer, double, plain),
            *(claim for other in others for claim in better(successor, other)),
            AtLeast(longer, 100, 50),
            AtMost(plain, 100, 1),
        ),
        "At 6,000 updates a hinted arm makes 3,000 of the main task, with all hints 1,500.",
        more=INSIDE,
    )


def aux(label: str, what: str, task: Any, **changes: Any) -> Arm:
    """Any task as the hint."""
    named: dict[str, Any] = {"name": f"sort/{what}", "hints": (Hint(task),)}
    return desk("no hint", label=label, what=f"-{what}-hint", **named, **changes)


PLAIN, PLAIN_HALF = desk("no hint"), desk("no hint", 0.5)
SUCCESSOR = desk("successor")
TEMPERED = desk("no hint", label="tempered", what="-tempered", temperature=LogVisible())
SHARPER = tuple(
    desk("no hint", label=f"logits × {f:g}", what=f"-times-{f:g}", temperature=Fixed(f))
    for f in (1.25, 1.5, 2.0)
)
SHARP_HINTED = desk(
    "successor", label="successor, logits × 1.25", what="-times-1.25", temperature=Fixed(1.25)
)

EVEN = replace(Successor(), lengths=EvenLengths(2, 20))
LONGER = replace(Successor(), lengths=EvenLengths(2, TWICE_AS_LONG))
EVEN_SUCCESSOR = aux("successor, lengths uniform ≤ 20", "successor-even", EVEN)
LONGER_SUCCESSOR = aux("successor, lengths uniform ≤ 40", "successor-longer", LONGER)
COPY = aux("copy, lengths uniform ≤ 20", "copy", Copy())
LONGER_COPY = aux("copy, lengths uniform ≤ 40", "copy-longer", Copy(EvenLengths(2, TWICE_AS_LONG)))

RESTRICTION = aux("restriction as a hint", "restriction", Restriction())
RESTRICTED = desk(
    "no hint",
    label="half of the data restricted",
    what="-restricted",
    task=Sort(inputs=Restricted(share=0.5)),
)
DENSE = desk("no hint", label="dense data of sort/best", what="-dense", task=Sort(inputs=RICH))

ROPE = desk("no hint", label="RoPE", what="-rope", positions=Rope())
ROPE_HALF = desk("no hint", 0.5, label="RoPE", what="-rope", positions=Rope())
ROPE_SUCCESSOR = desk("successor", label="RoPE, successor", what="-rope", positions=Rope())
ROPE_LONGER = aux("RoPE, successor ≤ 40", "successor-longer-rope", LONGER, positions=Rope())

EXPERIMENTS = (
    regime(
        "desk-hint-decay",
        "Which hint helps at width 256, with weight decay?",
        DECAY,
        tempered=False,
    ),
    regime(
        "desk-hint", "Which hint helps at width 256, without weight decay?", 0.0, tempered=False
    ),
    regime(
        "desk-hint-tempered-decay",
        "Which hint helps tempered models at width 256, with weight decay?",
        DECAY,
        tempered=True,
    ),
    regime(
        "desk-hint-tempered",
        "Which hint helps tempered models at width 256, without weight decay?",
        0.0,
        tempered=True,
    ),
    experiment(
        "desk-sharpness",
        "Does the hint add anything once attention is as sharp?",
        (PLAIN, SUCCESSOR, TEMPERED, *SHARPER, SHARP_HINTED),
        (
            *better(SUCCESSOR, PLAIN),
            *(NotBetter(SUCCESSOR, one, n) for one in SHARPER for n in COMPARED_AT),
            *better(SHARP_HINTED, SHARPER[0]),
        ),
        "The factor stands on the logits in training and in the test. Which one matches the "
        "hinted models is to be read from the probe of sharpness, not from accuracies.",
        more=INSIDE,
    ),
    experiment(
        "desk-longer-auxiliary",
        "Does a hint that is trained on longer inputs than the main task carry it along?",
        (PLAIN, PLAIN_HALF, SUCCESSOR, EVEN_SUCCESSOR, LONGER_SUCCESSOR, COPY, LONGER_COPY),
        (
            *better(EVEN_SUCCESSOR, PLAIN, SUCCESSOR),
            *better(LONGER_SUCCESSOR, PLAIN, EVEN_SUCCESSOR, LONGER_COPY),
            *(NotBetter(LONGER_COPY, COPY, n) for n in COMPARED_AT),
        ),
        "After Cai et al. 2025. Copying is the control: as long, but of no use for sorting.",
    ),
    experiment(
        "desk-restriction",
        "Do parts of longer sequences, cut down to at most 20 symbols, help?",
        (PLAIN, PLAIN_HALF, SUCCESSOR, RESTRICTION, RESTRICTED, DENSE),
        (
            *better(RESTRICTION, PLAIN, SUCCESSOR),
            *better(RESTRICTED, PLAIN),
            *better(DENSE, PLAIN, RESTRICTED),
        ),
        "After Awasthi et al. 2025. No sequence is longer than 20 symbols, but restricted ones "
        "are as dense and uneven as sequences of up to 100, from which they are cut: training "
        "knows what long inputs look like.",
    ),
    experiment(
        "desk-hint-rope",
        "Does the hint help models with rotary positions?",
        (PLAIN, ROPE, ROPE_HALF, ROPE_SUCCESSOR, ROPE_LONGER),
        (
            *better(ROPE_SUCCESSOR, ROPE, ROPE_HALF),
            *better(ROPE_LONGER, ROPE, ROPE_SUCCESSOR),
            *better(PLAIN, ROPE),
        ),
    ),
)
