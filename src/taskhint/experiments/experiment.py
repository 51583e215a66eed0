"""What an experiment is: a question, the recipes that are compared, what is measured, and what the
paper says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import SCALES, Recipe, Scale

Quantity = Literal["accuracy", "edit distance", "min-finding", "identity+successor"]
PAPER_LONGEST = 100
PAPER_EXAMPLES = 100_000
MECHANISMS: tuple[Quantity, ...] = ("min-finding", "identity+successor")


@dataclass(frozen=True)
class Arm:
    """One line of a figure: a named recipe with some settings changed, and a multiple of its usual
    updates.
    """

    label: str
    recipe: str
    pocket: tuple[str, ...] = ()
    paper: tuple[str, ...] = ()
    updates: float = 1.0
    counterpart: str = ""  # the paper's recipe nearest to it, if that has another name

    def at(self, scale: Scale) -> Recipe:
        recipe = find_recipe(self.recipe, scale).with_settings(
            self.pocket if scale == "pocket" else self.paper
        )
        return (
            recipe
            if self.updates == 1.0
            else recipe.with_steps(round(recipe.steps * self.updates))
        )

    @property
    def paper_recipe(self) -> Recipe:
        """What the paper trains, or the nearest to it."""
        return find_recipe(self.counterpart or self.recipe, "paper")

    def folder(self, scale: Scale) -> str:
        """Where its runs stand: the same for every experiment that has the same arm."""
        settings = self.pocket if scale == "pocket" else self.paper
        more = (f"updates={self.updates:g}",) if self.updates != 1.0 else ()
        return "_".join([self.recipe.replace("/", "-"), *settings, *more]).replace("=", "-")


@dataclass(frozen=True)
class Panel:
    """One set of axes: a quantity by length, on one test distribution."""

    quantity: Quantity
    distribution: str = "uniform"

    @property
    def title(self) -> str:
        return f"{self.quantity}, {self.distribution} sequences"


@dataclass(frozen=True)
class Published:
    """A number that the paper prints, in percent. `bound`: it is an upper bound."""

    arm: str
    length: int
    percent: float
    bound: bool = False
    distribution: str = "uniform"

    @property
    def text(self) -> str:
        return f"{'under ' if self.bound else ''}{self.percent:g}"


@dataclass(frozen=True)
class Better:
    """The paper says that one arm does better than another."""

    better: str
    worse: str
    length: int
    distribution: str = "uniform"
    quantity: Quantity = "accuracy"


@dataclass(frozen=True)
class NotBetter:
    """The paper says that one arm does no better than another."""

    other: str
    base: str
    length: int
    distribution: str = "uniform"


@dataclass(frozen=True)
class AtMost:
    """The paper says that an arm stays below so many percent."""

    arm: str
    length: int
    percent: float
    distribution: str = "uniform"


@dataclass(frozen=True)
class AtLeast:
    """The paper says that an arm reaches about so many percent."""

    arm: str
    length: int
    percent: float
    distribution: str = "uniform"
    quantity: Quantity = "accuracy"


Claim = Better | NotBetter | AtMost | AtLeast


@dataclass(frozen=True)
class Experiment:
    name: str
    question: str
    arms: tuple[Arm, ...]
    panels: tuple[Panel, ...]
    lengths: tuple[int, ...]
    claims: tuple[Claim, ...]
    published: tuple[Published, ...] = ()
    examples: int = 1000  # test sequences per length
    beyond: bool = False  # not the paper's, but about its claims
    scales: tuple[Scale, ...] = SCALES  # at which it makes sense
    remark: str = ""  # what a reader of the numbers has to know

    def examples_at(self, length: int, scale: Scale) -> int:
        """Sequences longer than the paper's longest are slow: a tenth of them must do."""
        examples = PAPER_EXAMPLES if scale == "paper" else self.examples
        return examples if length <= PAPER_LONGEST else max(1000, examples // 10)

    def printed(self, arm: str, panel: Panel) -> dict[int, Published]:
        """What the paper prints of an arm in a panel, by length."""
        if panel.quantity != "accuracy":
            return {}
        return {
            p.length: p
            for p in self.published
            if (p.arm, p.distribution) == (arm, panel.distribution)
        }

    @property
    def distributions(self) -> dict[str, bool]:
        """Every test distribution, and whether its edit distance is wanted."""
        wanted = {
            panel.distribution: False for panel in self.panels if panel.quantity not in MECHANISMS
        }
        for panel in self.panels:
            if panel.quantity == "edit distance":
                wanted[panel.distribution] = True
        return wanted

    @property
    def probes(self) -> bool:
        """Whether mechanisms inside the models are counted."""
        return any(panel.quantity in MECHANISMS for panel in self.panels)
