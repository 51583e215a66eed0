"""What a person means by a recipe or an experiment: a name, an object in a file, or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe, Scale
from taskhint.system.errors import UserError
from taskhint.system.files import read_json
from taskhint.system.plugins import imported_objects, imported_value, split_target

if TYPE_CHECKING:
    from taskhint.experiments.experiment import Experiment


def find_target_recipe(target: str, scale: Scale) -> Recipe:
    """`sort/tempered`, `my_file.py:my_recipe` or `recipe.json`."""
    split = split_target(target)
    if split is None and not target.endswith((".json", ".py")):
        return find_recipe(target, scale)
    if scale != "pocket":
        raise UserError(f"--scale {scale} is for named recipes; {target} has the scale it says")
    if split is not None:
        recipe: Recipe = imported_value(*split, Recipe)
        return recipe
    if target.endswith(".py"):
        raise UserError(f"{target} has no recipe's name; write {target}:NAME")
    return Recipe.from_json(read_json(Path(target)), target)


def find_experiments(targets: Iterable[str], scale: Scale) -> list[Experiment]:
    """Experiments by their names, `my_file.py:MY_EXPERIMENT`, or `all`."""
    from taskhint.experiments import EXPERIMENTS, find_experiment
    from taskhint.experiments.experiment import Experiment

    add_imported_experiments()
    found: dict[str, Experiment] = {}
    for target in targets:
        split = split_target(target)
        if target == "all":
            chosen = [one for one in EXPERIMENTS.values() if scale in one.scales]
        elif split is None:
            chosen = [find_experiment(target)]
        else:
            chosen = [_added(imported_value(*split, Experiment))]
        found |= {experiment.name: experiment for experiment in chosen}
    return list(found.values())


def add_imported_experiments() -> None:
    """Those that imported files hold, so that reports find them by name."""
    from taskhint.experiments.experiment import Experiment

    for experiment in imported_objects(Experiment):
        _added(experiment)


def _added(experiment: Experiment) -> Experiment:
    from taskhint.experiments import EXPERIMENTS

    if EXPERIMENTS.setdefault(experiment.name, experiment) != experiment:
        raise UserError(f"there is another experiment {experiment.name!r}; choose another name")
    return experiment
