"""`taskhint train`: the recipe that a person means, then the training loop."""

from __future__ import annotations

import argparse
from dataclasses import MISSING, fields, replace
from inspect import isfunction
from pathlib import Path
from typing import Any

from taskhint.cli.arguments import (
    Parser,
    add_device,
    add_scale,
    add_threads,
    add_track,
    known_scale,
    use_threads,
    whole,
)
from taskhint.recipes import find_recipe, recipe_names
from taskhint.recipes.recipe import Hint, Recipe, Scale
from taskhint.system.devices import speaks
from taskhint.system.errors import UserError, nearest
from taskhint.system.files import read_json
from taskhint.system.plugins import imported_modules, imported_value, split_target
from taskhint.system.settings import UnknownKindError
from taskhint.tasks.task import Task, hints_for

EXAMPLE = "taskhint train sort/tempered --out runs/tempered --seed 1 --set model.width=256"
FROM = (
    "start from the newest checkpoint of this run (weights, optimiser state and step) and go on "
    "to --steps under this recipe's schedule; the recipe may differ in steps, warm-up and "
    "learning rate alone; recorded in recipe.json as origin"
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        help="a name from `taskhint list`, my_file.py:my_recipe, or a recipe.json",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="the run directory")
    add_scale(parser)
    parser.add_argument("--seed", type=whole, metavar="N", help="random seed (default 0)")
    parser.add_argument(
        "--steps",
        type=whole,
        metavar="N",
        help="updates of all tasks together; warm-up scales along",
    )
    parser.add_argument(
        "--hint",
        action="append",
        default=[],
        metavar="NAME",
        help="add a hint of the recipe's task, as in --hint successor (repeatable)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change any part of the recipe (repeatable; checked when all are set)",
    )
    parser.add_argument("--from", dest="origin", metavar="RUN", help=FROM)
    add_track(parser)
    add_threads(parser)
    add_device(parser)


def run(options: argparse.Namespace) -> None:
    recipe = wanted_recipe(options)
    use_threads(options)
    from taskhint.training.loop import train

    run = train(
        recipe,
        options.out,
        progress=speaks(),
        device=options.device,
        precision=options.precision,
        track=options.track,
    )
    if speaks():
        print(f"{run.path}: {recipe.name}, seed {recipe.seed}, {recipe.steps} updates")


def wanted_recipe(options: argparse.Namespace) -> Recipe:
    recipe = find_target_recipe(options.recipe, known_scale(options.scale))
    if options.steps is not None:
        recipe = recipe.with_steps(options.steps)
    if options.seed is not None:
        recipe = recipe.change(seed=options.seed)
    for kind in options.hint:
        recipe = with_hint(recipe, kind)
    recipe = recipe.with_settings(options.set)
    if options.origin is None:
        return recipe
    from taskhint.runs.origin import branched

    return branched(recipe, Path(options.origin), Path(options.out))


def find_target_recipe(target: str, scale: Scale) -> Recipe:
    """`sort/tempered`, `my_file.py:my_recipe` or `recipe.json`."""
    split = split_target(target)
    if split is None and not target.endswith((".json", ".py")):
        own = own_recipes()
        if own and target not in recipe_names():
            raise UserError(
                f"unknown recipe {target!r}; recipes of a file are named FILE:NAME: {own}"
            )
        return find_recipe(target, scale)
    if scale != "pocket":
        raise UserError(f"--scale {scale} is for named recipes; {target} has the scale it says")
    if split is not None:
        recipe: Recipe = imported_value(*split, Recipe)
        return recipe
    if target.endswith(".py"):
        raise UserError(f"{target} has no recipe's name; write {target}:NAME")
    try:
        return Recipe.from_json(read_json(Path(target)), target)
    except UnknownKindError:
        if Path(target).name != "recipe.json":
            raise
        from taskhint.runs.run import read_recipe  # which names the file that the run had

        return read_recipe(Path(target).parent)


def own_recipes() -> str:
    """Names of the recipes in imported files, as in `a.py:plain, a.py:hinted`."""
    found = [
        f"{source}:{name}"
        for source, module in imported_modules().items()
        for name, value in vars(module).items()
        if isinstance(value, Recipe) or _returns_recipe(value, module.__name__)
    ]
    return ", ".join(found)


def _returns_recipe(value: object, module: str) -> bool:
    """As far as can be told without calling it."""
    if not isfunction(value) or value.__module__ != module:
        return False
    says = value.__annotations__.get("return")
    return says is Recipe or (isinstance(says, str) and says.rpartition(".")[2] == "Recipe")


def with_hint(recipe: Recipe, kind: str) -> Recipe:
    """The recipe with one more hint, which draws its data as the main task does."""
    known = hints_for(recipe.task.kind)
    if kind not in known:
        allowed = nearest(kind, known) if known else "it has none"
        raise UserError(f"task {recipe.task.kind!r} has no hint {kind!r}; {allowed}")
    shared = _changed(recipe.task)
    own = {field.name for field in fields(known[kind])}
    task = known[kind](**{name: value for name, value in shared.items() if name in own})
    return replace(recipe, hints=(*recipe.hints, Hint(task)))


def _changed(task: Task) -> dict[str, Any]:
    """The settings of a task that are not those it has when nothing is said."""
    found = {}
    for field in fields(task):
        value = getattr(task, field.name)
        if field.default is MISSING or value != field.default:
            found[field.name] = value
    return found
