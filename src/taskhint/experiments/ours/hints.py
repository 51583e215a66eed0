"""Where the successor hint helps and where it hurts: the paper's central claim in other regimes.

A hinted run shares its updates between two tasks. So it is compared twice: with a run without the
hint of as many updates in all, and with one of as many updates of the main task, which is half of
them. All of it is at pocket scale: the paper has one optimiser and one number of updates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import AtLeast, Better
from taskhint.experiments.experiment import Experiment, Panel
from taskhint.experiments.ours.best import BEST, BEST_HALF
from taskhint.experiments.paper.sort import LENGTHS, STANDARD, TEMPERED
from taskhint.experiments.quantity import ACCURACY, MECHANISMS
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Adam
from taskhint.recipes.recipe import Hint, Recipe
from taskhint.tasks import Successor
from taskhint.tasks.lengths import Skewed

ADAM = {"optimiser": Adam(), "learning_rate": 0.001}
FASTER_ADAM = {"optimiser": Adam(), "learning_rate": 0.006}
AMOUNTS = {
    0.5: (", half the updates", "-half"),
    0.75: (", three quarters of the updates", "-three-quarters"),
    0.875: (", seven eighths of the updates", "-seven-eighths"),
    1.0: ("", ""),
    2.0: (", twice the updates", "-x2"),
    3.0: (", three times the updates", "-x3"),
    4.0: (", four times the updates", "-x4"),
    6.0: (", six times the updates", "-x6"),
}
COMPARED_AT = (30, 50, 100)
FAR = (50, 70, 100)
INSIDE = tuple(map(Panel, MECHANISMS))
TEMPERED_HINTED = "sort/successor-tempered"
FEW = 32  # symbols


def trained(recipe: str, label: str, amount: float = 1.0, what: str = "", **changes: Any) -> Arm:
    """A recipe at pocket scale, for so many times its updates."""
    base = find_recipe(recipe)
    words, suffix = AMOUNTS[amount]
    changed = base.change(**changes)
    if amount != 1.0:
        changed = changed.with_steps(round(base.steps * amount))
    name = f"{recipe.replace('/', '-')}{what}{suffix}"
    return Arm(label + words, changed, name, counterpart=partial(find_recipe, recipe))


def hinted(label: str, what: str, weight: float = 1.0, turns: int = 1, **changes: Any) -> Arm:
    """The tempered recipe with another successor hint; the main task has so many turns to each of
    its.
    """
    hint = Hint(replace(Successor(), **changes), weight=weight)
    return trained(TEMPERED_HINTED, label, what=what, hints=(hint,), main_updates=turns)


HINTED = hinted("hint, every second update", "")


def _better(lengths: Iterable[int], *pairs: tuple[Arm, Arm]) -> tuple[Better, ...]:
    """The first arm of every pair against the second, at every length."""
    return tuple(Better(*pair, length) for pair in pairs for length in lengths)


def _variants(name: str, question: str, variants: tuple[Arm, ...]) -> Experiment:
    """The tempered recipe with the hint changed, beside the usual hint and none."""
    shares = {arm: _recipe(arm).main_share() for arm in variants}
    amounts = (1.0, *sorted({0.5, *shares.values()}))
    plain = {share: trained("sort/tempered", "no hint", share) for share in amounts}
    return Experiment(
        name=name,
        question=question,
        arms=(*plain.values(), HINTED, *variants),
        lengths=LENGTHS,
        claims=(
            *(Better(arm, plain[1.0], length) for arm in variants for length in (50, 100)),
            *(
                Better(arm, plain[share], length)
                for arm, share in shares.items()
                for length in (50, 100)
            ),
            *(Better(arm, HINTED, 100) for arm in variants),
        ),
    )


def _recipe(arm: Arm) -> Recipe:
    return arm.at("pocket")


def _regime(
    name: str,
    question: str,
    amounts: tuple[float, ...],
    what: str = "",
    settings: Mapping[str, Any] | None = None,
    tempered: bool = False,
    more: tuple[Panel, ...] = (),
) -> Experiment:
    """With the hint, for so many times the usual updates, and without it for as many and for half
    as many.
    """
    without, with_hint = (
        ("sort/tempered", TEMPERED_HINTED) if tempered else ("sort/standard", "sort/successor")
    )
    totals = sorted({*amounts, *(amount / 2 for amount in amounts)})
    changes = settings or {}
    plain = {n: trained(without, "no hint", n, what, **changes) for n in totals}
    helped = {n: trained(with_hint, "hint", n, what, **changes) for n in amounts}
    return Experiment(
        name=name,
        question=question,
        arms=(*plain.values(), *helped.values()),
        panels=(Panel(ACCURACY), *more),
        lengths=LENGTHS,
        claims=tuple(
            Better(helped[amount], plain[other], length)
            for amount in amounts
            for other in (amount, amount / 2)
            for length in COMPARED_AT
        ),
    )


def few_symbols(recipe: str, label: str) -> Arm:
    """A recipe on a third of the symbols: then the bases of the symbols and of a hint's head fit
    at right angles at width 128.
    """
    main, *others = (
        replace(task, symbols=FEW)  # type: ignore[call-arg]
        for task in find_recipe(recipe).tasks
    )
    hints = tuple(map(Hint, others))
    return trained(recipe, label, 2.0, f"-{FEW}-symbols", task=main, hints=hints)


FEW_PLAIN = few_symbols("sort/standard", "no hint")
FEW_SUCCESSOR = few_symbols("sort/successor", "hint")
FEW_COUNT, FEW_FILL = (few_symbols(f"sort/{name}", f"{name} hint") for name in ("count", "fill"))

LONG_PLAIN = trained("sort/standard", "no hint", 4.0)
LONG_HINTED = trained("sort/successor", "hint", 4.0)
LONG_OTHERS = tuple(trained(f"sort/{kind}", f"{kind} hint", 4.0) for kind in ("count", "fill"))
NO_DECAY = trained("sort/no-decay", "no hint, no weight decay")
LONG_NO_DECAY = trained("sort/no-decay", "no hint, no weight decay", 4.0)
LONG_TEMPERED = trained("sort/tempered", "tempered, no hint", 4.0)
LONG_BOTH = trained(TEMPERED_HINTED, "tempered, hint", 4.0)

FASTER = _regime(
    "hint-adam-faster",
    "Does it help with Adam at six times that rate, long after plain training is perfect at the "
    "training lengths?",
    (4.0,),
    "-faster-adam",
    FASTER_ADAM,
)
*FASTER_PLAIN, FASTER_HINTED = FASTER.arms
LONG = Skewed(**{**vars(Successor().lengths), "short_share": 0.2})
BEST_PLAIN, BEST_PLAIN_HALF = BEST.called("no hint"), BEST_HALF.called("no hint, half the updates")
BEST_HINTED = Arm(
    "hint",
    find_recipe("sort/best-successor"),
    "sort-best-successor",
    counterpart=partial(find_recipe, TEMPERED_HINTED),
)

EXPERIMENTS = (
    _regime("hint-muon", "Does the successor hint help with Muon?", (1.0, 2.0)),
    _regime(
        "hint-tempered",
        "Does it help with Muon and tempered attention?",
        (1.0, 2.0),
        tempered=True,
        more=(Panel(ACCURACY, "rep:3"),),
    ),
    _variants(
        "hint-share",
        "Does a smaller share or a smaller weight make the hint help?",
        (
            hinted("hint, every fourth update", "-every-fourth", turns=3),
            hinted("hint, every eighth update", "-every-eighth", turns=7),
            hinted("hint, a fifth of its weight", "-fifth-weight", weight=0.2),
        ),
    ),
    _variants(
        "hint-definition",
        "Does another length distribution or another definition make the hint help?",
        (
            hinted("hint, long inputs", "-long-inputs", lengths=LONG),
            hinted("hint, counted copies", "-counted", repeated="counted"),
            hinted("hint, repeated symbols unasked", "-unasked", repeated="unasked"),
            hinted("hint, next distinct symbol", "-next-distinct", repeated="next-distinct"),
            hinted(
                "hint, every fourth update, counted copies",
                "-every-fourth-counted",
                turns=3,
                repeated="counted",
            ),
            hinted(
                "hint, every fourth update, repeated symbols unasked",
                "-every-fourth-unasked",
                turns=3,
                repeated="unasked",
            ),
        ),
    ),
    Experiment(
        name="hint-32-symbols",
        question="Does it help with Muon on 32 symbols, which leave more room in the width?",
        arms=(FEW_PLAIN, FEW_SUCCESSOR, FEW_COUNT, FEW_FILL),
        lengths=LENGTHS[1:],
        claims=tuple(
            Better(FEW_SUCCESSOR, other, length)
            for other in (FEW_PLAIN, FEW_COUNT, FEW_FILL)
            for length in (50, 70, 100)
        ),
    ),
    _regime(
        "hint-long",
        "Does it help long after the training lengths are perfect?",
        (4.0,),
        more=INSIDE,
    ),
    _regime(
        "hint-long-tempered",
        "Does it help long after, with tempered attention?",
        (4.0,),
        tempered=True,
        more=INSIDE,
    ),
    Experiment(
        name="hint-long-kinds",
        question="Is it the successor hint, or would another do as well?",
        arms=(LONG_PLAIN, LONG_HINTED, *LONG_OTHERS),
        panels=(Panel(ACCURACY), *INSIDE),
        lengths=LENGTHS,
        claims=_better(
            COMPARED_AT,
            (LONG_HINTED, LONG_PLAIN),
            *((LONG_HINTED, other) for other in LONG_OTHERS),
            *((other, LONG_PLAIN) for other in LONG_OTHERS),
        ),
    ),
    Experiment(
        name="hint-each-best",
        question="Does the hint still help when every arm has the weight decay that suits it?",
        arms=(LONG_PLAIN, LONG_NO_DECAY, LONG_HINTED, LONG_TEMPERED, LONG_BOTH),
        panels=(Panel(ACCURACY), *INSIDE),
        lengths=LENGTHS,
        claims=_better(
            FAR,
            (LONG_HINTED, LONG_NO_DECAY),
            (LONG_NO_DECAY, LONG_PLAIN),
            (LONG_TEMPERED, LONG_NO_DECAY),
        ),
    ),
    Experiment(
        name="weight-decay",
        question=(
            "How far does plain training carry without weight decay, and does tempering "
            "help beyond that?"
        ),
        arms=(STANDARD, NO_DECAY, TEMPERED),
        panels=(Panel(ACCURACY), *INSIDE),
        lengths=LENGTHS,
        claims=_better(FAR, (NO_DECAY, STANDARD), (TEMPERED, NO_DECAY)),
    ),
    _regime(
        "hint-adam", "Does it help with Adam, the paper's optimiser?", (2.0, 6.0), "-adam", ADAM
    ),
    _regime(
        "hint-adam-tempered",
        "Does it help with Adam and tempered attention?",
        (4.0,),
        "-adam",
        ADAM,
        tempered=True,
    ),
    FASTER,
    Experiment(
        name="mechanisms-adam",
        question=(
            "Are min-finding and Identity+Successor there with Adam, and does the hint "
            "make them more frequent?"
        ),
        arms=FASTER.arms,
        panels=INSIDE,
        lengths=LENGTHS,
        claims=(
            *(
                AtLeast(plain, 10, 50, quantity=mechanism)
                for plain in FASTER_PLAIN
                for mechanism in MECHANISMS
            ),
            *(
                Better(FASTER_HINTED, plain, length, quantity=mechanism)
                for mechanism in MECHANISMS
                for plain in FASTER_PLAIN
                for length in (50, 100)
            ),
        ),
    ),
    Experiment(
        name="hint-best-recipe",
        question="Does the successor hint help the recipe that sorts longest?",
        arms=(BEST_PLAIN, BEST_PLAIN_HALF, BEST_HINTED),
        panels=(Panel(ACCURACY), Panel(ACCURACY, "rep:3"), Panel(ACCURACY, "rep:5")),
        lengths=(10, 20, 50, 100, 200, 300),
        claims=tuple(
            Better(BEST_HINTED, plain, length)
            for plain in (BEST_PLAIN, BEST_PLAIN_HALF)
            for length in (50, 100, 200, 300)
        ),
    ),
)
