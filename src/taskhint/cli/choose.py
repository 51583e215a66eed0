"""`taskhint choose`: rank hints or recipes by extrapolation inside the allowed lengths."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Sequence

from taskhint.cli.arguments import Parser, add_scale, known_scale, whole
from taskhint.cli.train import find_target_recipe, own_recipes, with_hint
from taskhint.recipes import find_recipe, recipe_names
from taskhint.recipes.recipe import Recipe, Scale
from taskhint.sweeps.choice import SIGNALS, Candidate, Choice
from taskhint.system.errors import UserError
from taskhint.system.settings import to_json
from taskhint.system.tables import text_table
from taskhint.tasks.task import Task

EXAMPLE = (
    "taskhint choose sort --hints successor,count,fill --out chosen\n"
    '  taskhint choose sort/best "sort/best --set model.depth=3" my_file.py:mine --out chosen'
)
NO_HINT = "no hint"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "candidates",
        metavar="TASK_OR_RECIPE",
        nargs="+",
        help="a task, or recipes as `taskhint train` takes them; in quotes with settings of its "
        'own: "sort/best --set model.depth=3"',
    )
    parser.add_argument(
        "--hints",
        metavar="A,B,A+B",
        help="rank these hints of each task or recipe, and none; A+B is both at once",
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="where runs go; what is done there is skipped"
    )
    parser.add_argument("--seeds", type=whole, default=3, metavar="N", help="how many (3)")
    parser.add_argument(
        "--first-seed",
        type=whole,
        default=100,
        metavar="N",
        help="the first of them (100: none that is reported)",
    )
    parser.add_argument(
        "--steps",
        type=whole,
        metavar="N",
        help="updates of each short run (a third of the recipe's, but at least 2000 of them)",
    )
    parser.add_argument(
        "--examples",
        type=whole,
        default=1000,
        metavar="N",
        help="test sequences per length (1000)",
    )
    parser.add_argument("--distribution", default="uniform", help="uniform (default), rep:R, …")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change every candidate (repeatable)",
    )
    add_scale(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document at the end")


def run(options: argparse.Namespace) -> None:
    found = candidates(options.candidates, options.hints, options.set, known_scale(options.scale))
    from taskhint.sweeps.choose import choose

    choice = choose(
        found,
        options.out,
        seeds=options.seeds,
        first_seed=options.first_seed,
        steps=options.steps,
        examples=options.examples,
        distribution=options.distribution,
    )
    print(json.dumps(to_json(choice), indent=2) if options.json else choice_text(choice))


def candidates(
    targets: Sequence[str], hints: str | None, settings: Sequence[str], scale: Scale
) -> dict[str, Recipe]:
    """By label: every target, or every target with each of the hints and without one."""
    found: dict[str, Recipe] = {}
    for target in targets:
        base, own = _base(target, scale)
        for label, recipe in _hinted(base, hints):
            words = [target if len(targets) > 1 or not label else "", label]
            name = ", ".join(filter(None, words))
            if name in found:
                raise UserError(f"candidate {name!r} is given twice")
            found[name] = recipe.with_settings([*own, *settings])
    return found


def _base(target: str, scale: Scale) -> tuple[Recipe, list[str]]:
    """A recipe, and the settings that stand behind it in the same quotes."""
    words = Parser(prog="a candidate", add_help=False)
    words.add_argument("recipe")
    words.add_argument("--set", action="append", default=[])
    words.add_argument("--hint", action="append", default=[])
    try:
        given = words.parse_args(shlex.split(target))
    except ValueError as error:
        raise UserError(f"candidate {target!r}: {error}") from None
    recipe = _of_task(given.recipe, scale) or find_target_recipe(given.recipe, scale)
    for kind in given.hint:
        recipe = with_hint(recipe, kind)
    return recipe, given.set


def _of_task(name: str, scale: Scale) -> Recipe | None:
    """The first recipe of a task, which is plain training."""
    if name not in Task.kinds():
        return None
    named = [recipe for recipe in recipe_names() if recipe.startswith(f"{name}/")]
    if not named:
        own = own_recipes()
        as_in = f", as in {own}" if own else ""
        raise UserError(f"task {name!r} has no named recipe; give a recipe instead{as_in}")
    return find_recipe(named[0], scale)


def _hinted(base: Recipe, hints: str | None) -> Iterator[tuple[str, Recipe]]:
    if hints is None:
        yield "", base
        return
    if base.hints:
        raise UserError(f"recipe {base.name!r} has a hint already; --hints is for one without")
    yield NO_HINT, base
    for group in hints.split(","):
        recipe = base
        for kind in group.split("+"):
            recipe = with_hint(recipe, kind)
        yield group, recipe


def choice_text(choice: Choice) -> str:
    """The ranking, a row per candidate."""
    first, last = choice.measured[0], choice.measured[-1]
    header = [
        "",
        f"accuracy % at {first}–{last}",
        "95% interval",
        "than the best",
        f"at {last}",
        f"loss at {choice.trained_up_to}",
        f"loss at {last}",
        "gradient agreement",
    ]
    rows = [_row(choice, candidate) for candidate in choice.candidates]
    seeds = len(choice.candidates[0].seeds)
    return (
        f"trained up to length {choice.trained_up_to}, {seeds} seeds, {choice.distribution} "
        f"sequences; the best first\n{text_table(header, rows)}"
    )


def _row(choice: Choice, candidate: Candidate) -> list[str]:
    inside, worse = candidate.inside, choice.clearly_worse(candidate)
    best = candidate == choice.candidates[0]
    return [
        candidate.name,
        f"{100 * inside.mean:.1f}",
        (inside.interval * 100).text(),
        "" if best else {True: "worse", False: "inconclusive", None: "one seed"}[worse],
        f"{100 * candidate.at_longest.mean:.1f}",
        *(_number(candidate.mean(name)) for name in list(SIGNALS)[2:]),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
