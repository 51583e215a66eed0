"""A named recipe, and what was measured of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from taskhint.recipes.recipe import Recipe
from taskhint.system.settings import Settings
from taskhint.tasks import Task

TaskMaker = Callable[..., Task]  # tasks are made when a recipe is, not when modules are imported
DESK_TIMES = 2  # as many updates as at pocket scale


@dataclass(frozen=True)
class Entry:
    """`make` takes the scale and this name."""

    name: str
    about: str
    make: Callable[..., Recipe]


@dataclass(frozen=True)
class Measured(Settings):
    """`minutes` of one pocket run on one core; `result`: accuracies, means over seeds."""

    minutes: float
    result: str
