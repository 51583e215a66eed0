"""Recipes × a grid of settings × seeds, as jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from taskhint.experiments.arm import plain_name
from taskhint.recipes.recipe import Recipe
from taskhint.sweeps.jobs import Job, Measurement
from taskhint.system.dotted import short_keys
from taskhint.system.errors import UserError

MOST_RUNS = 100_000
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Point:
    """One recipe of a sweep, and the name of the directory of its runs."""

    name: str
    recipe: Recipe


def read_grid(texts: Iterable[str]) -> dict[str, list[str]]:
    """`KEY=V1,V2` as `--grid` gives it."""
    grid: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not key or "" in values.split(","):
            raise UserError(f"--grid {text} is not of the form KEY=VALUE,VALUE,...")
        if key in grid:
            raise UserError(f"--grid names {key} twice; give all its values at once")
        grid[key] = values.split(",")
    return grid


def points(recipes: Mapping[str, Recipe], grid: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Every recipe (by name) with every combination of settings."""
    choices = [_choices(key, values) for key, values in grid.items()]
    if len(recipes) * prod(map(len, choices)) > MOST_RUNS:
        raise UserError(f"the grid has more than {MOST_RUNS:,} points")
    short = short_keys(grid)
    found: dict[str, Point] = {}
    for name, recipe in recipes.items():
        for settings in product(*choices):
            changed = recipe.with_settings(f"{key}={value}" for key, value in settings)
            point = Point(_name(name, [(short[key], value) for key, value in settings]), changed)
            found.setdefault(changed.fingerprint(), point)
    names = Counter(point.name for point in found.values())
    ((most, count),) = names.most_common(1)
    if count > 1:
        raise UserError(f"two points of the sweep would be called {most!r}; name them apart")
    return list(found.values())


def _name(base: str, settings: Sequence[tuple[str, str]]) -> str:
    return plain_name("-".join([base, *(f"{key}-{value}" for key, value in settings)]))


def _choices(key: str, values: Sequence[Any]) -> list[tuple[str, str]]:
    """The key with each value as text."""
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise UserError(f"the grid needs a list of values for {key}, got {values!r:.60}")
    for value in values:
        if value is not None and not isinstance(value, str | int | float):
            raise UserError(
                f"the grid takes texts and numbers, got {value!r:.60} for {key}; "
                "give recipes that differ in it instead"
            )
    return [(key, str(value)) for value in values]


def jobs_of(chosen: Sequence[Point], seeds: int, measurements: Sequence[Measurement]) -> list[Job]:
    """The first seed of everything comes first: a stopped sweep then has a little of all."""
    if not 1 <= seeds <= MOST_SEEDS:
        raise UserError(f"--seeds {seeds} is not in 1..{MOST_SEEDS}")
    if len(chosen) * seeds > MOST_RUNS:
        raise UserError(f"a sweep of {len(chosen) * seeds:,} runs; at most {MOST_RUNS:,}")
    return [
        Job(f"{point.name}/seed-{seed}", point.recipe.change(seed=seed), tuple(measurements))
        for seed in range(seeds)
        for point in chosen
    ]
