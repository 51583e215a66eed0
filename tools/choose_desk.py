"""Chooses weight decay, learning rate and share of the hint for each arm of desk-hint-best.

    python -m tools.choose_desk --out chosen/desk [--arms]

By the rule of `taskhint choose`: 2,000 updates on inputs of at most 10 symbols, three seeds,
ranked by accuracy at 11 to 20. First every arm with every decay; then, with the decay that was
best for an arm, its other rates and shares. With --arms the other arms of the desk experiments are
ranked too: nothing is chosen among them, but they say how well the rule predicts
(tools/rank_signals.py). What is done in --out is not done again. The ranking goes to
results/choose/desk.json with its cost beside it, what it says to experiments/ours/desk_best.json.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

from taskhint.experiments.ours.desk import EXPERIMENTS, WIDE
from taskhint.experiments.ours.desk_best import ARMS, BEST, Chosen, Setting, hinted, recipe_of
from taskhint.recipes.recipe import Recipe
from taskhint.sweeps.choice import FILE, Choice
from taskhint.sweeps.choose import choose
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.settings import to_json
from tools.rank_signals import key

RESULTS = Path(__file__).parent.parent / "results" / "choose"
UPDATES = 2000
DECAYS = (0.0, 0.03, 0.1, 0.3)
RATES = (0.01, 0.02, 0.04)
TURNS = (1, 3, 7)  # shares of 1/2, 1/4, 1/8
COST = "cost.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=UPDATES)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--best", type=Path, default=BEST)
    parser.add_argument("--arms", action="store_true")
    options = parser.parse_args()

    def rank(recipes: Mapping[str, Recipe]) -> Choice:
        try:
            return choose(
                recipes,
                options.out,
                seeds=options.seeds,
                steps=options.steps,
                examples=options.examples,
            )
        finally:
            note_cost(options.out)

    first = with_decays()
    chosen = chosen_by(rank(recipes_of(first)))
    every = recipes_of(first | around(chosen))
    choice = rank(every)
    if options.arms:
        choice = rank(every | other_arms(every))
    chosen = chosen_by(choice)
    write_atomically(options.best, json_bytes(to_json(chosen)))
    for name, source in (("desk.json", FILE), ("desk-cost.json", COST)):
        write_atomically(options.results / name, (options.out / source).read_bytes())
    for arm, setting in chosen.items():
        print(f"{arm}: {setting}")


def label_of(arm: str, setting: Setting) -> str:
    return f"{arm}: {setting.text(hinted(arm))}"


def with_decays() -> dict[str, tuple[str, Setting]]:
    """The first candidates, by label: every arm with every decay."""
    return {
        label_of(arm, setting): (arm, setting)
        for arm in ARMS
        for setting in (Setting(decay=decay) for decay in DECAYS)
    }


def around(chosen: Chosen) -> dict[str, tuple[str, Setting]]:
    """The next ones: other rates and other shares with the decay that was best."""
    return {
        label_of(arm, setting): (arm, setting)
        for arm, best in chosen.items()
        for setting in _around(best.decay, hinted(arm))
    }


def _around(decay: float, shared: bool) -> Iterator[Setting]:
    yield from (Setting(decay, rate) for rate in RATES)
    if shared:
        yield from (Setting(decay, turns=turns) for turns in TURNS)


def chosen_by(choice: Choice) -> Chosen:
    """Of every arm the setting that is ranked first."""
    every = with_decays() | {
        label_of(arm, setting): (arm, setting)
        for decay in DECAYS
        for arm in ARMS
        for setting in _around(decay, hinted(arm))
    }
    found: Chosen = {}
    for candidate in choice.candidates:  # the best first
        if candidate.name in every:
            arm, setting = every[candidate.name]
            found.setdefault(arm, setting)
    return found


def recipes_of(settings: Mapping[str, tuple[str, Setting]]) -> dict[str, Recipe]:
    return {label: recipe_of(arm, setting) for label, (arm, setting) in settings.items()}


def other_arms(known: Mapping[str, Recipe]) -> dict[str, Recipe]:
    """The other arms of the desk experiments that are trained for the usual number of updates."""
    usual = {recipe.steps for recipe in known.values()}
    seen = {key(recipe) for recipe in known.values()}
    found: dict[str, Recipe] = {}
    for arm in (arm for one in EXPERIMENTS for arm in one.arms):
        recipe = arm.at("desk")
        wide = recipe.model.width == WIDE["width"]
        if recipe.steps in usual and not wide and key(recipe) not in seen:
            found[arm.label] = recipe
            seen.add(key(recipe))
    return found


_counted = 0.0  # processor seconds of this process's children that are noted already


def note_cost(out: Path) -> None:
    """Add what the workers that have ended used to what earlier calls did."""
    global _counted
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    now = used.ru_utime + used.ru_stime
    path = out / COST
    before = read_json(path)["core_minutes"] if path.exists() else 0.0
    write_atomically(path, json_bytes({"core_minutes": round(before + (now - _counted) / 60, 2)}))
    _counted = now


if __name__ == "__main__":
    main()
