"""Which task an update is of, which lengths it sees and what its loss weighs: a pure function of
the step.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from taskhint.system.settings import Family
from taskhint.tasks.lengths import Lengths

if TYPE_CHECKING:
    from taskhint.recipes.recipe import Recipe


@dataclass(frozen=True)
class Update:
    """What one update trains on.

    `task` is the kind of the recipe's main task or of one of its hints. `lengths` replaces the
    task's own. `weight` multiplies the loss, beside the weight of the hint. `batch` is which batch
    of the task's data it is: the number of the update if nothing else is said.
    """

    task: str
    lengths: Lengths | None = None
    weight: float = 1.0
    batch: int | None = None


@dataclass(frozen=True)
class Curriculum(Family):
    """Derive from it, name a `kind`, and say what each update is. It must depend on nothing but
    recipe and step.
    """

    family: ClassVar[str] = "curriculum"
    label: ClassVar[str] = "curriculum"

    @abstractmethod
    def update(self, recipe: Recipe, step: int) -> Update:
        """Update `step`, from 0."""

    def period(self, recipe: Recipe) -> int:  # noqa: ARG002
        """After how many updates every task has had its turn: so many in a row are logged."""
        return 1


@dataclass(frozen=True)
class Alternate(Curriculum):
    """In every cycle the main task has `main_updates` turns and each hint its own number, spread
    evenly.
    """

    kind: ClassVar[str] = "alternate"

    def update(self, recipe: Recipe, step: int) -> Update:
        order = _cycle(recipe.main_updates, tuple(hint.updates for hint in recipe.hints))
        whole, rest = divmod(step, len(order))
        place = order[rest]
        before = whole * order.count(place) + order[:rest].count(place)
        return Update(recipe.tasks[place].kind, batch=before)

    def period(self, recipe: Recipe) -> int:
        return recipe.main_updates + sum(hint.updates for hint in recipe.hints)


@lru_cache(maxsize=64)
def _cycle(main: int, hints: tuple[int, ...]) -> tuple[int, ...]:
    """Whose turn it is in each update of a cycle: 0 for the main task, then the hints."""
    shares = [main, *hints]
    turns = [
        ((turn + 0.5) / share, place)
        for place, share in enumerate(shares)
        for turn in range(share)
    ]
    return tuple(place for _, place in sorted(turns))
