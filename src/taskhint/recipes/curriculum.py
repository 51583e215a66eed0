"""Which task an update is of, which lengths it sees and what its loss weighs: a pure function of
the step.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from taskhint.system.settings import Family, setting
from taskhint.tasks.lengths import Cut, Lengths, Primed

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

    def beyond(self, recipe: Recipe) -> int | None:  # noqa: ARG002
        """The longest length that training sees beyond the longest of the task itself, if any.

        A result of such a training is no length generalization up to there, and must say so.
        """
        return None


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


@dataclass(frozen=True)
class Grow(Alternate):
    """Short inputs first: the longest length grows from `start` to the task's own, in even steps
    over a `share` of the updates.

    Tasks take turns as in `alternate`. The lengths that are allowed keep their shares among each
    other.
    """

    kind: ClassVar[str] = "grow"

    start: int = setting(2, at_least=1)
    share: float = setting(0.5, above=0, at_most=1)

    def update(self, recipe: Recipe, step: int) -> Update:
        update = super().update(recipe, step)
        own = next(task.lengths for task in recipe.tasks if task.kind == update.task)
        grown = (own.max_length - self.start + 1) * step / (self.share * recipe.steps)
        longest = self.start + int(grown)
        if longest >= own.max_length:
            return update
        return replace(update, lengths=Cut(own, longest))


@dataclass(frozen=True)
class Prime(Alternate):
    """A share of the main task's inputs is `times` as long as its longest: train set priming
    (Jelassi et al. 2023).

    This breaks the rule that training sees nothing longer. In all, share · batch · updates of the
    main task are such inputs. Tasks take turns as in `alternate`.
    """

    kind: ClassVar[str] = "prime"

    times: float = setting(2.0, above=1, at_most=1000)
    share: float = setting(0.001, above=0, at_most=1)

    def update(self, recipe: Recipe, step: int) -> Update:
        update = super().update(recipe, step)
        if update.task != recipe.task.kind:
            return update
        return replace(
            update, lengths=Primed(recipe.task.lengths, self.beyond(recipe), self.share)
        )

    def beyond(self, recipe: Recipe) -> int:
        longest = recipe.task.lengths.max_length
        return max(longest + 1, round(self.times * longest))


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
