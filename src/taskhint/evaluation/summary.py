"""Curves over seeds, from the result files of runs: what figures, tables and reports show. Reads
no model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from taskhint.evaluation.curve import LengthCurve, Score, load_curves
from taskhint.recipes.recipe import Recipe
from taskhint.system.errors import UserError, warn
from taskhint.system.files import read_json
from taskhint.system.tables import text_table


@dataclass(frozen=True)
class Point:
    """The mean accuracy of all seeds at one length, its 95% interval, and what it rests on.

    With several seeds the interval is Student's t over their accuracies; with one it is Wilson's
    over the sequences, and says nothing of other seeds.
    """

    mean: float
    low: float
    high: float
    seeds: int
    examples: int
    edit_distance: float | None


@dataclass(frozen=True)
class Series:
    """One recipe's curve on one test distribution."""

    label: str
    recipe: Recipe
    distribution: str
    points: dict[int, Point]


_UPDATE_KEYS = {"steps", "warmup_steps", "main_updates", "checkpoint_every", "log_every"}


def find_runs(directory: Path) -> list[tuple[Path, Recipe]]:
    """Every run in a directory that can be read, at any depth."""
    if not directory.is_dir():
        raise UserError(f"{directory} is not a directory")
    paths = sorted(path.parent for path in directory.rglob("recipe.json"))
    if not paths:
        raise UserError(f"{directory} holds no run")
    found: list[tuple[Path, Recipe]] = []
    for path in paths:
        try:
            recipe = Recipe.from_json(read_json(path / "recipe.json"), f"{path}/recipe.json")
            load_curves(path)
            found.append((path, recipe))
        except UserError as error:
            warn(f"{path} is left out: {error}")
    if not found:
        raise UserError(f"{directory} holds no run that can be read")
    return found


def summarise(runs: Iterable[tuple[Path, Recipe]]) -> list[Series]:
    """The curves of all evaluated runs; runs that differ only in their seed are one series."""
    families: dict[Recipe, list[LengthCurve]] = {}
    for path, recipe in runs:
        families.setdefault(recipe.change(seed=0), []).extend(load_curves(path))
    labels = _labels(families)
    series = []
    for recipe, curves in families.items():
        for distribution in sorted({curve.distribution for curve in curves}):
            same = [curve for curve in curves if curve.distribution == distribution]
            lengths = sorted({length for curve in same for length in curve.scores})
            points = {n: _point([c.scores[n] for c in same if n in c.scores]) for n in lengths}
            series.append(Series(labels[recipe], recipe, distribution, points))
    if not series:
        raise UserError("none of the runs has been evaluated; use `taskhint evaluate` first")
    return series


def _labels(recipes: Iterable[Recipe]) -> dict[Recipe, str]:
    """The recipe's name; where several share a name, also the settings in which they differ."""
    all_recipes = list(recipes)
    labels = {}
    for recipe in all_recipes:
        others = [other for other in all_recipes if other.name == recipe.name]
        keys = sorted(
            {key for other in others for key in recipe.differences(other)} - _UPDATE_KEYS
        )
        parts = [f"{key} {recipe.setting(key)}" for key in keys]
        if len({(other.steps, other.main_updates) for other in others}) > 1:
            parts.insert(0, updates_text(recipe))
        labels[recipe] = ", ".join([recipe.name, *parts])
    return labels


def updates_text(recipe: Recipe) -> str:
    share = int(recipe.steps * recipe.main_share())
    return (
        f"{share} main + {recipe.steps - share} hint updates"
        if recipe.hints
        else f"{share} updates"
    )


def _point(scores: list[Score]) -> Point:
    accuracies = [score.accuracy for score in scores]
    mean = sum(accuracies) / len(accuracies)
    low, high = scores[0].interval if len(scores) == 1 else t_interval(accuracies)
    distances = [score.edit_distance for score in scores if score.edit_distance is not None]
    distance = sum(distances) / len(distances) if distances else None
    return Point(mean, low, high, len(scores), min(score.examples for score in scores), distance)


def t_interval(values: Sequence[float], most: float = 1.0) -> tuple[float, float]:
    """Student's 95% interval of a mean of values in 0..`most`."""
    from scipy.stats import t

    mean = sum(values) / len(values)
    spread = math.sqrt(
        sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
    )
    half = float(t.ppf(0.975, len(values) - 1)) * spread
    return max(0.0, mean - half), min(most, mean + half)


def series_table(series: Sequence[Series]) -> str:
    """All curves, a table per test distribution, a row per recipe: accuracy in
    percent by length.
    """
    text = ""
    for distribution in sorted(
        {one.distribution for one in series}, key=lambda name: (name != "uniform", name)
    ):
        chosen = [one for one in series if one.distribution == distribution]
        lengths = sorted({length for one in chosen for length in one.points})
        rows = [[one.label, *(_percent(one, length) for length in lengths)] for one in chosen]
        text += f"{distribution} sequences, accuracy % by length\n"
        text += text_table(["", *(str(length) for length in lengths)], rows) + "\n"
    return text


def _percent(series: Series, length: int) -> str:
    return f"{100 * series.points[length].mean:.1f}" if length in series.points else ""
