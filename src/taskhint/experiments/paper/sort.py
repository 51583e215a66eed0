"""The paper's experiments on sorting. Where its figure gives no number in print, the claim is what
its text says.

Pocket sizes of the training set are the paper's divided by 133, and twice that at desk scale, so
that every example is visited equally often; its largest one is visited less than once, so that
below paper scale the recipe's own, as good as endless, stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import AtLeast, AtMost, Better, NotBetter
from taskhint.experiments.experiment import Experiment, Panel, Published
from taskhint.experiments.quantity import ACCURACY, EDIT_DISTANCE, MECHANISMS
from taskhint.model.positions import Learned, Sinusoidal
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Hint, Recipe, Scale
from taskhint.tasks.task import Task

LENGTHS = (5, 10, 20, 30, 50, 70, 100)
SIZES: dict[str, dict[Scale, int]] = {
    "1M": {"pocket": 7_500, "desk": 15_000, "paper": 1_000_000},
    "10M": {"pocket": 75_000, "desk": 150_000, "paper": 10_000_000},
    "40M": {"pocket": 300_000, "desk": 600_000, "paper": 40_000_000},
}
DEPTHS = (2, 4, 8, 12)
SMALLEST = "1M"


def named(name: str, label: str = "") -> Arm:
    """A recipe as it is."""
    return Arm(label or name, partial(find_recipe, name), name.replace("/", "-"))


def changed(base: Arm, label: str, what: str, **changes: Any) -> Arm:
    """An arm with the same changes at every scale; `what` goes behind its name."""
    return Arm(label, lambda scale: base.at(scale).change(**changes), f"{base.name}-{what}")


def of_size(base: Arm, label: str, size: str) -> Arm:
    """Trained on a limited set."""
    sizes = SIZES[size]
    return Arm(
        label,
        lambda scale: base.at(scale).change(dataset_size=sizes[scale]),
        f"{base.name}-{size}",
    )


def distinct(base: Arm) -> Arm:
    """At paper scale without sequences of repeated symbols, which the paper adds after these
    experiments.
    """
    own = base.at("paper").dataset_size < STANDARD.at("paper").dataset_size
    name = base.name if own else f"{base.name}-distinct"  # whole sets are used with repeats too
    return replace(base, recipe=_without_repeats(base.at), name=name)


def _without_repeats(build: Callable[[Scale], Recipe]) -> Callable[[Scale], Recipe]:
    def without(task: Any) -> Task:
        return replace(task, inputs=replace(task.inputs, repetition=0.0))

    def at(scale: Scale) -> Recipe:
        recipe = build(scale)
        if scale != "paper":
            return recipe
        hints = tuple(Hint(without(hint.task)) for hint in recipe.hints)
        return recipe.change(task=without(recipe.task), hints=hints)

    return at


STANDARD = named("sort/standard", "no hint")
SUCCESSOR = named("sort/successor", "successor hint")
TEMPERED = named("sort/tempered", "tempered, no hint")
TEMPERED_SUCCESSOR = named("sort/successor-tempered", "tempered, successor hint")
HALF = Arm(
    "no hint, as many main-task updates",
    lambda scale: STANDARD.at(scale).change(steps=STANDARD.at(scale).steps // 2),
    "sort-standard-half",
    counterpart=STANDARD.recipe,
)
COUNT, FILL = named("sort/count", "count hint"), named("sort/fill", "fill hint")
ALL_HINTS = named("sort/all-hints", "all three hints")


def _sizes(base: Arm) -> tuple[Arm, ...]:
    small = (of_size(base, f"{size} examples", size) for size in SIZES)
    return tuple(map(distinct, (*small, base.called("160M examples"))))


PLAIN_SIZES, HINTED_SIZES = _sizes(STANDARD), _sizes(SUCCESSOR)
SMALL = of_size(STANDARD, "depth 2", SMALLEST)
DEPTH_2, DEPTH_4, DEPTH_8, DEPTH_12 = BY_DEPTH = (
    distinct(SMALL),
    *(distinct(changed(SMALL, f"depth {n}", f"depth-{n}", depth=n)) for n in DEPTHS[1:]),
)
D_STANDARD, D_TEMPERED, D_SUCCESSOR, D_BOTH = TEMPERATURES = tuple(
    map(distinct, (STANDARD, TEMPERED, SUCCESSOR, TEMPERED_SUCCESSOR))
)
SMALL_STANDARD = distinct(of_size(STANDARD, "constant, 1M examples", SMALLEST))
SMALL_TEMPERED = distinct(of_size(TEMPERED, "tempered, 1M examples", SMALLEST))
NO_POSITIONS = STANDARD.called("none")
LEARNED = changed(STANDARD, "learned", "learned-positions", positions=Learned())
SINUSOIDAL = changed(STANDARD, "sinusoidal", "sinusoidal-positions", positions=Sinusoidal())
MIN_FINDING, IDENTITY_SUCCESSOR = MECHANISMS

EXPERIMENTS = (
    Experiment(
        name="data-scaling",
        question="Does more data make a plainly trained sorter carry over to longer inputs?",
        arms=PLAIN_SIZES,
        lengths=LENGTHS,
        claims=(
            Better(PLAIN_SIZES[-1], PLAIN_SIZES[0], 50),
            *(AtMost(arm, 100, 1.0) for arm in PLAIN_SIZES),
        ),
        published=(
            Published(PLAIN_SIZES[0], 50, 64),
            Published(PLAIN_SIZES[-1], 50, 90),
            *(Published(arm, 100, 1, bound=True) for arm in PLAIN_SIZES),
        ),
        of_paper=True,
    ),
    Experiment(
        name="depth-scaling",
        question="Does more depth make a plainly trained sorter carry over to longer inputs?",
        arms=BY_DEPTH,
        lengths=LENGTHS,
        claims=(
            Better(DEPTH_4, DEPTH_2, 50),
            NotBetter(DEPTH_8, DEPTH_4, 50),
            NotBetter(DEPTH_12, DEPTH_4, 50),
            *(AtMost(arm, 100, 1.0) for arm in BY_DEPTH),
        ),
        published=tuple(Published(arm, 100, 1, bound=True) for arm in BY_DEPTH),
        of_paper=True,
    ),
    Experiment(
        name="data-scaling-hinted",
        question="Does more data help a sorter that is trained with the successor hint?",
        arms=HINTED_SIZES,
        lengths=LENGTHS,
        claims=(
            Better(HINTED_SIZES[-1], HINTED_SIZES[0], 50),
            Better(HINTED_SIZES[-1], HINTED_SIZES[0], 100),
            AtLeast(HINTED_SIZES[-1], 100, 52.4),
        ),
        published=(Published(HINTED_SIZES[-1], 100, 52.4),),
        of_paper=True,
    ),
    Experiment(
        name="hint",
        question="How do models with and without the successor hint do as inputs grow longer?",
        arms=(STANDARD, SUCCESSOR, HALF),
        panels=(Panel(ACCURACY), Panel(EDIT_DISTANCE)),
        lengths=LENGTHS,
        claims=(
            Better(SUCCESSOR, STANDARD, 50),
            Better(SUCCESSOR, STANDARD, 100),
            Better(SUCCESSOR, STANDARD, 100, quantity=EDIT_DISTANCE),
            AtLeast(SUCCESSOR, 100, 92.6),
        ),
        published=(Published(STANDARD, 100, 1, bound=True), Published(SUCCESSOR, 100, 92.6)),
        of_paper=True,
    ),
    Experiment(
        name="repetitions",
        question="Are models stable on rep(i, r), where every symbol occurs r times?",
        arms=(STANDARD, SUCCESSOR),
        panels=tuple(
            Panel(quantity, f"rep:{copies}")
            for quantity in (ACCURACY, EDIT_DISTANCE)
            for copies in (2, 3, 4, 5)
        ),
        lengths=(20, 30, 50, 70, 100),
        claims=tuple(Better(SUCCESSOR, STANDARD, 100, f"rep:{copies}") for copies in (2, 3, 4, 5)),
        of_paper=True,
    ),
    Experiment(
        name="hint-against-hint",
        question="Which auxiliary task helps, and which one hurts?",
        arms=(STANDARD, SUCCESSOR, COUNT, FILL, ALL_HINTS),
        lengths=LENGTHS,
        claims=(
            Better(SUCCESSOR, STANDARD, 50),
            Better(SUCCESSOR, FILL, 50),
            Better(FILL, STANDARD, 50),
            Better(STANDARD, COUNT, 50),
            NotBetter(ALL_HINTS, SUCCESSOR, 50),
        ),
        of_paper=True,
    ),
    Experiment(
        name="tempered",
        question="What does attention that sharpens with ln n add, without and with the hint?",
        arms=TEMPERATURES,
        lengths=LENGTHS,
        claims=(
            Better(D_TEMPERED, D_STANDARD, 50),
            Better(D_TEMPERED, D_STANDARD, 100),
            AtLeast(D_TEMPERED, 100, 45.2),
            Better(D_BOTH, D_SUCCESSOR, 50),
            Better(D_BOTH, D_SUCCESSOR, 100),
            Better(D_BOTH, D_TEMPERED, 100),
        ),
        published=(
            Published(D_STANDARD, 50, 89),
            Published(D_STANDARD, 100, 0),
            Published(D_TEMPERED, 50, 99.4),
            Published(D_TEMPERED, 100, 45.2),
            Published(D_SUCCESSOR, 50, 99.2),
            Published(D_SUCCESSOR, 100, 52.4),
            Published(D_BOTH, 50, 99.7),
            Published(D_BOTH, 100, 64.8),
        ),
        of_paper=True,
    ),
    Experiment(
        name="tempered-small-data",
        question="Does tempered attention still help with the smallest training set?",
        arms=(SMALL_STANDARD, SMALL_TEMPERED),
        lengths=LENGTHS,
        claims=(
            Better(SMALL_TEMPERED, SMALL_STANDARD, 50),
            Better(SMALL_TEMPERED, SMALL_STANDARD, 100),
            AtLeast(SMALL_TEMPERED, 100, 42),
        ),
        published=(Published(SMALL_STANDARD, 100, 0), Published(SMALL_TEMPERED, 100, 42)),
        of_paper=True,
    ),
    Experiment(
        name="positions",
        question="Do positional embeddings help?",
        arms=(NO_POSITIONS, LEARNED, SINUSOIDAL),
        lengths=LENGTHS,
        claims=tuple(
            NotBetter(kind, NO_POSITIONS, length)
            for kind in (LEARNED, SINUSOIDAL)
            for length in (30, 50)
        ),
        of_paper=True,
    ),
    Experiment(
        name="mechanisms",
        question=(
            "Does the hint make min-finding and Identity+Successor more frequent inside the model?"
        ),
        arms=(STANDARD, SUCCESSOR, TEMPERED, TEMPERED_SUCCESSOR),
        panels=tuple(map(Panel, MECHANISMS)),
        lengths=LENGTHS,
        claims=(
            Better(SUCCESSOR, STANDARD, 50, quantity=MIN_FINDING),
            Better(SUCCESSOR, STANDARD, 100, quantity=MIN_FINDING),
            AtLeast(SUCCESSOR, 50, 50, quantity=MIN_FINDING),
            AtLeast(SUCCESSOR, 100, 75, quantity=MIN_FINDING),
            Better(SUCCESSOR, STANDARD, 50, quantity=IDENTITY_SUCCESSOR),
            Better(SUCCESSOR, STANDARD, 100, quantity=IDENTITY_SUCCESSOR),
        ),
        of_paper=True,
    ),
)
