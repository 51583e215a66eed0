"""Curves over seeds, from the results of runs: what figures, tables and reports show. Reads no
model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from taskhint.evaluation.results import Result, one_per_run
from taskhint.recipes.recipe import Recipe, differing_keys
from taskhint.runs.curve import PLAIN, Score
from taskhint.system.dotted import short_keys
from taskhint.system.errors import UserError
from taskhint.system.stats import OverSeeds
from taskhint.system.tables import text_table


@dataclass(frozen=True)
class Point:
    """The accuracy of all seeds at one length, and the edit distance of those that have one."""

    accuracy: OverSeeds
    edit_distance: float | None


@dataclass(frozen=True)
class Series:
    """One recipe's curve on one test distribution."""

    label: str
    recipe: Recipe
    distribution: str
    points: dict[int, Point]
    precision: str = PLAIN  # with which it was measured


_UPDATE_KEYS = {"steps", "warmup_steps", "main_updates", "checkpoint_every", "log_every"}


def summarise(results: Iterable[Result]) -> list[Series]:
    """The curves of all evaluated runs; runs that differ only in their seed are one series, as
    far as they were measured with one precision.
    """
    families: dict[str, list[Result]] = {}
    for result in one_per_run(results):
        families.setdefault(result.family, []).append(result)
    recipes = {family: runs[0].recipe.change(seed=0) for family, runs in families.items()}
    labels = _labels(dict.fromkeys(recipes.values()))
    series = []
    for family, runs in families.items():
        recipe, precision = recipes[family], runs[0].precision
        label = labels[recipe] if precision == PLAIN else f"{labels[recipe]}, in {precision}"
        for distribution in sorted({name for run in runs for name in run.curves}):
            same = [run.curves[distribution] for run in runs if distribution in run.curves]
            lengths = sorted({length for curve in same for length in curve.scores})
            points = {n: _point([c.scores[n] for c in same if n in c.scores]) for n in lengths}
            series.append(Series(label, recipe, distribution, points, precision))
    if not series:
        raise UserError("none of the runs has been evaluated; use `taskhint evaluate` first")
    return series


def _labels(recipes: Iterable[Recipe]) -> dict[Recipe, str]:
    """The recipe's name; where several share a name, also the settings in which they differ."""
    same: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        same.setdefault(recipe.name, []).append(recipe)
    return {recipe: text for group in same.values() for recipe, text in _told_apart(group)}


def _told_apart(recipes: Sequence[Recipe]) -> Iterator[tuple[Recipe, str]]:
    keys = [key for key in differing_keys(recipes) if key not in _UPDATE_KEYS]
    settings = [{key: recipe.setting(key) for key in keys} for recipe in recipes]
    names = short_keys(key for key in keys if not _follows(key, settings))
    updates = len({(recipe.steps, recipe.main_updates) for recipe in recipes}) > 1
    for recipe, found in zip(recipes, settings, strict=True):
        parts = [f"{name} {found[key]}" for key, name in names.items() if found[key]]
        if updates:
            parts.insert(0, updates_text(recipe))
        yield recipe, ", ".join([recipe.name, *parts])


def _follows(key: str, settings: Sequence[Mapping[str, str]]) -> bool:
    """Whether a setting says nothing beyond the choice of kind that it belongs to."""
    kind = f"{key.rpartition('.')[0]}.kind"
    if key == kind or kind not in settings[0]:
        return False
    by_kind: dict[str, set[str]] = {}
    for one in settings:
        by_kind.setdefault(one[kind], set()).add(one[key])
    return all(len(values) == 1 for values in by_kind.values())


def updates_text(recipe: Recipe) -> str:
    share = int(recipe.steps * recipe.main_share())
    return (
        f"{share} main + {recipe.steps - share} hint updates"
        if recipe.hints
        else f"{share} updates"
    )


def _point(scores: list[Score]) -> Point:
    accuracy = OverSeeds(
        tuple(score.accuracy for score in scores), tuple(score.examples for score in scores)
    )
    distances = [score.edit_distance for score in scores if score.edit_distance is not None]
    return Point(accuracy, sum(distances) / len(distances) if distances else None)


def series_table(series: Sequence[Series], intervals: bool = False) -> str:
    """All curves, a table per test distribution, a row per recipe: accuracy in percent by
    length; with intervals on request.
    """
    text = ""
    for distribution in sorted(
        {one.distribution for one in series}, key=lambda name: (name != "uniform", name)
    ):
        chosen = [one for one in series if one.distribution == distribution]
        lengths = sorted({length for one in chosen for length in one.points})
        rows = [[one.label, *(_percent(one, n, intervals) for n in lengths)] for one in chosen]
        about = f"{distribution} sequences, accuracy % by length"
        text += about + (f", with 95% intervals ({_basis(chosen)})\n" if intervals else "\n")
        text += text_table(["", *(str(length) for length in lengths)], rows) + "\n"
    return text


def _percent(series: Series, length: int, interval: bool) -> str:
    if length not in series.points:
        return ""
    accuracy = series.points[length].accuracy
    text = f"{100 * accuracy.mean:.1f}"
    low, high = accuracy.interval * 100
    return f"{text} ({low:.1f}–{high:.1f})" if interval else text


def _basis(series: Sequence[Series]) -> str:
    """On how many seeds and sequences the numbers stand."""
    points = [point.accuracy for one in series for point in one.points.values()]
    seeds = sorted({point.seeds for point in points})
    counts = sorted({count for point in points for count in point.sequences})
    return f"{_span(seeds)} seed{'s' if seeds != [1] else ''}, {_span(counts)} sequences each"


def _span(numbers: Sequence[int]) -> str:
    first, last = f"{numbers[0]:,}", f"{numbers[-1]:,}"
    return first if first == last else f"{first} to {last}"
