"""A row of the field's table: one way to train one task, under several position schemes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from taskhint.experiments.arm import Arm
from taskhint.experiments.field.schemes import SCHEMES
from taskhint.recipes import find_recipe
from taskhint.recipes.curriculum import Alternate
from taskhint.recipes.recipe import Recipe, Scale
from taskhint.system.errors import UserError
from taskhint.tasks.task import Task

GROUP = "field"
TIMES = (0.5, 1, 1.5, 2, 2.5, 3, 5)  # the longest training length
SHAPE = {"heads": 4, "depth": 2}


@dataclass(frozen=True)
class Budget:
    """What every arm of a family gets, whatever its scheme. The MLP is twice as wide."""

    width: int
    batch: int
    updates: int

    @property
    def settings(self) -> dict[str, int]:
        sizes = {"width": self.width, "mlp_width": 2 * self.width}
        return {**SHAPE, **sizes, "batch_size": self.batch, "steps": self.updates}

    def __str__(self) -> str:
        return f"width {self.width}, {self.updates:,} updates of {self.batch} sequences"


SMALL = Budget(64, 32, 1500)
BUDGETS = {
    "copy": Budget(128, 64, 3000),  # learned vectors of 200 places and 100 symbols take their time
    "recall": Budget(64, 64, 3000),  # an answer is one token
}


@dataclass(frozen=True)
class Row:
    """`recipe` names the one that is trained, with a budget of its own and other positions.

    `training` says in words how it is trained, if not plainly; `changes` are fields of its task
    that are not as usual. The arms are made when they are first asked for.
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
    def budget(self) -> Budget:
        return BUDGETS.get(self.family, SMALL)

    @property
    def task(self) -> Task:
        return self.plain_recipe.task

    @property
    def plain_recipe(self) -> Recipe:
        """The named recipe with the row's task."""
        recipe = find_recipe(self.recipe)
        return recipe.change(task=replace(recipe.task, **self.changes))

    @property
    def plain(self) -> bool:
        """Whether its task is all that it is trained on, at the task's own lengths."""
        recipe = find_recipe(self.recipe)
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
        return Arm(label, partial(self._recipe, scheme), f"{self.name}-{scheme}", only="pocket")

    def _recipe(self, scheme: str, scale: Scale) -> Recipe:  # noqa: ARG002
        column = SCHEMES[scheme]
        plain = self.plain_recipe
        task = replace(plain.task, **dict(column.changes)) if column.changes else plain.task
        hints = tuple(
            replace(hint, task=replace(hint.task, **dict(column.changes))) for hint in plain.hints
        )
        changed: dict[str, Any] = {
            **self.budget.settings,
            "task": task,
            "hints": hints,
            "positions": column.build(task, max(lengths_of(plain))),
            "temperature": column.temperature,
        }
        return plain.change(**changed)


def lengths_of(recipe: Recipe) -> tuple[int, ...]:
    """At which a run is tested: from half to five times the longest training length."""
    longest = recipe.task.lengths.max_length
    if longest % 2:
        raise UserError(f"the field's tests need an even longest length, not {longest}")
    return tuple(round(times * longest) for times in TIMES)


def _word(training: str) -> str:
    return training.split(" (")[0].replace(" ", "-")
