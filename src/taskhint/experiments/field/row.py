"""A row of the field's table: one way to train one task, under several position schemes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taskhint.experiments.arm import Arm
from taskhint.experiments.field.schemes import SCHEMES
from taskhint.recipes import find_recipe
from taskhint.recipes.curriculum import Alternate
from taskhint.recipes.recipe import Recipe
from taskhint.system.errors import UserError
from taskhint.tasks.task import Task

GROUP = "field"
TIMES = (0.5, 1, 1.5, 2, 2.5, 3, 5)  # the longest training length
SHAPE = {"width": 128, "heads": 4, "depth": 2, "mlp_width": 256}
BATCH, UPDATES = 64, 2000


@dataclass(frozen=True)
class Row:
    """`recipe` names the one that is trained, with a budget of its own and other positions.

    `training` says in words how it is trained, if not plainly; `changes` are settings that the
    named recipe does not have. The arms are made when they are first asked for.
    """

    family: str
    recipe: str
    schemes: tuple[str, ...]
    training: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict, compare=False)
    _arms: dict[str, Arm] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def label(self) -> str:
        return f"{self.family}, {self.training}" if self.training else self.family

    @property
    def name(self) -> str:
        """As directories of its runs begin."""
        return self.experiment + (f"-{_word(self.training)}" if self.training else "")

    @property
    def experiment(self) -> str:
        """The name of the experiment that it is part of."""
        return f"{GROUP}-{self.family}"

    @property
    def task(self) -> Task:
        return find_recipe(self.recipe).task

    @property
    def plain(self) -> bool:
        """Whether its task is all that it is trained on, at the task's own lengths."""
        recipe = find_recipe(self.recipe).change(**self.changes)
        return not recipe.hints and recipe.curriculum == Alternate()

    @property
    def arms(self) -> dict[str, Arm]:
        """By the name of the scheme."""
        for scheme in self.schemes:
            if scheme not in self._arms:
                self._arms[scheme] = self._arm(scheme)
        return self._arms

    def _arm(self, scheme: str) -> Arm:
        label = ", ".join(filter(None, (self.training, SCHEMES[scheme].label)))
        return Arm(label, self._recipe(scheme), f"{self.name}-{scheme}")

    def _recipe(self, scheme: str) -> Recipe:
        column = SCHEMES[scheme]
        plain = find_recipe(self.recipe)
        task = replace(plain.task, **dict(column.changes)) if column.changes else plain.task
        hints = tuple(
            replace(hint, task=replace(hint.task, **dict(column.changes))) for hint in plain.hints
        )
        changed: dict[str, Any] = {
            **SHAPE,
            "batch_size": BATCH,
            "steps": UPDATES,
            "task": task,
            "hints": hints,
            "positions": column.build(task, max(lengths_of(plain))),
            "temperature": column.temperature,
        }
        return plain.change(**changed, **self.changes)


def lengths_of(recipe: Recipe) -> tuple[int, ...]:
    """At which a run is tested: from half to five times the longest training length."""
    longest = recipe.task.lengths.max_length
    if longest % 2:
        raise UserError(f"the field's tests need an even longest length, not {longest}")
    return tuple(round(times * longest) for times in TIMES)


def _word(training: str) -> str:
    return training.split(" (")[0].replace(" ", "-")
