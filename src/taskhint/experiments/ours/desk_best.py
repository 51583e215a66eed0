"""The hint at desk scale with each arm at its own best: weight decay, learning rate and the hint's
share of the updates are those that the rule of `taskhint choose` ranks first for that arm.

    python -m tools.choose_desk --out chosen/desk
    taskhint reproduce desk-hint-best --scale desk --seeds 5 --out desk

The first command trains every candidate on inputs of at most 10 symbols, ranks them by accuracy at
11 to 20, and keeps the ranking in results/choose/desk.json and what it says in desk_best.json
beside this file. Without that there is no such experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from taskhint.experiments.arm import Arm, plain_name
from taskhint.experiments.claims import AtLeast, AtMost
from taskhint.experiments.experiment import Experiment
from taskhint.experiments.ours.desk import DECAY, LENGTHS, PANELS, better
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Muon
from taskhint.recipes.recipe import Recipe
from taskhint.system.files import read_json
from taskhint.system.settings import Settings, conform

BEST = Path(__file__).parent / "desk_best.json"
ARMS = {
    "no hint": "sort/standard",
    "successor": "sort/successor",
    "tempered": "sort/tempered",
    "successor, tempered": "sort/successor-tempered",
}


@dataclass(frozen=True)
class Setting(Settings):
    """What is chosen for an arm."""

    label: ClassVar[str] = "setting"

    decay: float = DECAY
    rate: float = 0.02
    turns: int = 1  # of the main task to each of the hint's

    def text(self, hinted: bool) -> str:
        share = f", share 1/{self.turns + 1}" if hinted else ""
        return f"decay {self.decay:g}, rate {self.rate:g}{share}"


Chosen = dict[str, Setting]


def recipe_of(arm: str, setting: Setting) -> Recipe:
    return find_recipe(ARMS[arm], "desk").change(
        optimiser=Muon(weight_decay=setting.decay),
        learning_rate=setting.rate,
        main_updates=setting.turns,
    )


def hinted(arm: str) -> bool:
    return bool(find_recipe(ARMS[arm], "desk").hints)


def read_chosen(path: Path = BEST) -> Chosen:
    """Nothing, if nobody has chosen yet."""
    if not path.exists():
        return {}
    chosen: Chosen = conform(Chosen, read_json(path), str(path))
    return chosen


def experiments(chosen: Chosen) -> tuple[Experiment, ...]:
    """Every hinted arm against the plain one of its temperature, at equal total and at equal
    main-task updates; each at its own best.
    """
    if set(chosen) != set(ARMS):
        return ()
    best = {arm: _arm(arm, setting) for arm, setting in chosen.items()}
    fewer = {arm: _fewer(arm, chosen) for arm in ARMS if hinted(arm)}
    plain, successor, tempered, both = (best[arm] for arm in ARMS)
    return (
        Experiment(
            "desk-hint-best",
            "Does the hint still give anything when each arm is trained as well as it can be?",
            (*best.values(), *fewer.values()),
            panels=PANELS,
            lengths=LENGTHS,
            claims=(
                *better(successor, plain, fewer["successor"]),
                *better(both, tempered, fewer["successor, tempered"]),
                *better(tempered, plain),
                AtLeast(successor, 100, 50),
                AtMost(plain, 100, 1),
            ),
            note="Each arm has the settings that the rule of `taskhint choose` ranks first for "
            f"it. {_in_words(chosen)}",
        ),
    )


def _arm(arm: str, setting: Setting) -> Arm:
    return Arm(arm, recipe_of(arm, setting), f"desk-best-{plain_name(arm)}")


def _fewer(arm: str, chosen: Chosen) -> Arm:
    """The arm without the hint, at its own best, for as many updates of the main task as the
    hinted one makes.
    """
    plain = "tempered" if "tempered" in arm else "no hint"
    share = recipe_of(arm, chosen[arm]).main_share()
    recipe = recipe_of(plain, chosen[plain])
    steps = round(recipe.steps * share)
    return Arm(
        f"{plain}, {steps:,} updates",
        recipe.with_steps(steps),
        f"desk-best-fewer-{plain_name(plain)}",
    )


def _in_words(chosen: Chosen) -> str:
    texts = (f"{arm}: {setting.text(hinted(arm))}" for arm, setting in chosen.items())
    return "; ".join(texts) + "."


EXPERIMENTS = experiments(read_chosen())
