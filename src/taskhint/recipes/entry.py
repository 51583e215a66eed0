"""A named recipe with what a user wants to know before starting it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from taskhint.recipes.recipe import Recipe, Scale


@dataclass(frozen=True)
class Entry:
    """`minutes` is one pocket run on one core, from results/times.json; `result` is its mean
    accuracy over the seeds in results/reproduce; 0 and empty where nothing was measured yet.
    """

    name: str
    about: str
    build: Callable[[Scale], Recipe]
    minutes: float = 0.0
    result: str = ""
