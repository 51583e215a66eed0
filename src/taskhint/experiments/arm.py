"""One of the recipes that an experiment compares."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from taskhint.recipes.recipe import SCALES, Recipe, Scale
from taskhint.system.errors import UserError

Source = Recipe | Callable[[Scale], Recipe]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


def plain_name(text: str) -> str:
    """As a file can be called."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")


@dataclass(frozen=True)
class Arm:
    """A label, and the recipe that is trained for it: one, or a function from a scale to one.

    `name` is that of the directory of its runs; without it, the words of the label. `only` is the
    scale of a function that knows no other. `counterpart` is what the paper trains, or the nearest
    to it; without it, that is the function at paper scale.
    """

    label: str
    recipe: Source = field(compare=False, repr=False)
    name: str = ""
    counterpart: Source | None = field(default=None, compare=False, repr=False)
    only: Scale | None = field(default=None, compare=False, repr=False)
    _built: dict[Scale, Recipe] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        for source in (self.recipe, self.counterpart or self.recipe):
            if not isinstance(source, Recipe) and not callable(source):
                raise UserError(
                    f"arm {self.label!r} needs a Recipe, or a function from a scale to one, got "
                    f"{source!r:.60}"
                )
        object.__setattr__(self, "name", self.name or plain_name(self.label))
        if not NAME.fullmatch(self.name):
            raise UserError(
                f"arm {self.label!r} needs a name of letters, digits, '-' and '.', got "
                f"{self.name!r}"
            )

    @property
    def scales(self) -> tuple[Scale, ...]:
        if isinstance(self.recipe, Recipe):
            return (self.recipe.scale,)
        return SCALES if self.only is None else (self.only,)

    def at(self, scale: Scale) -> Recipe:
        if scale not in self._built:
            self._built[scale] = _at(self.recipe, scale, self.label)
        return self._built[scale]

    @property
    def paper_recipe(self) -> Recipe | None:
        """What the paper trains; None if the paper has nothing like it."""
        if self.counterpart is not None:
            return _at(self.counterpart, "paper", self.label)
        return self.at("paper") if "paper" in self.scales and callable(self.recipe) else None

    def called(self, label: str) -> Arm:
        """The same runs under another label."""
        return replace(self, label=label)


def _at(source: Source, scale: Scale, label: str) -> Recipe:
    recipe = source if isinstance(source, Recipe) else source(scale)
    if not isinstance(recipe, Recipe):
        raise UserError(f"arm {label!r}: its function returned {recipe!r:.60}, not a Recipe")
    if recipe.scale != scale:
        raise UserError(f"arm {label!r} has a recipe at scale {recipe.scale}, not {scale}")
    return recipe
