"""What an experiment is: a question, the arms that are compared, what is measured, and what is
claimed.

    import taskhint as th

    PLAIN = th.Arm("plain", th.recipe("sort/standard"))
    DEEP = th.Arm("deep", th.recipe("sort/standard").change(depth=3))
    DEPTH = th.Experiment("depth", "Does depth help?", (PLAIN, DEEP), lengths=(20, 30, 50),
                          claims=(th.Better(DEEP, PLAIN, 50),))

In a file of one's own, `taskhint reproduce my_file.py:DEPTH --out DIR` runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from taskhint.experiments.arm import NAME, Arm
from taskhint.experiments.claims import Claim
from taskhint.experiments.quantity import ACCURACY, Quantity
from taskhint.recipes.recipe import SCALES, Scale
from taskhint.system.errors import UserError
from taskhint.system.settings import Settings

PAPER_LONGEST = 100
PAPER_EXAMPLES = 100_000


@dataclass(frozen=True)
class Panel(Settings):
    """One set of axes: a quantity by length, on one test distribution."""

    label: ClassVar[str] = "panel"

    quantity: Quantity = ACCURACY
    distribution: str = "uniform"

    title: str = field(init=False, compare=False, default="")

    def __post_init__(self) -> None:
        title = f"{self.quantity.name}, {self.distribution} sequences"
        object.__setattr__(self, "title", title)


@dataclass(frozen=True)
class Published:
    """A number that the paper, or a peer, prints, in percent. `bound`: it is an upper bound."""

    arm: Arm
    length: int
    percent: float
    bound: bool = False
    distribution: str = "uniform"
    quantity: Quantity = ACCURACY


@dataclass(frozen=True)
class Experiment:
    """`examples` is how many test sequences there are of each length. `of_paper`: what it claims
    is what the paper says. `peer` is whose numbers are printed beside ours, if not the paper's;
    `note` is what a reader has to know before any result is there, such as where budgets differ.
    """

    name: str
    question: str
    arms: Sequence[Arm]
    lengths: Sequence[int]
    panels: Sequence[Panel] = (Panel(),)
    claims: Sequence[Claim] = ()
    published: Sequence[Published] = ()
    examples: int = 1000
    of_paper: bool = False
    peer: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("arms", "lengths", "panels", "claims", "published"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise self._error("needs a name of letters, digits, '-' and '.'")
        if not all(isinstance(arm, Arm) for arm in self.arms) or not self.arms:
            raise self._error("needs arms, each an Arm")
        if not all(type(n) is int and n >= 1 for n in self.lengths) or not self.lengths:
            raise self._error("needs lengths, whole numbers of at least 1")
        for what in ("label", "name"):
            if len({getattr(arm, what) for arm in self.arms}) < len(self.arms):
                raise self._error(f"has two arms of the same {what}")
        self._check_claims()

    def _check_claims(self) -> None:
        for claim in self.claims:
            if not isinstance(claim, Claim):
                raise self._error(f"has a claim that is none: {claim!r:.60}")
        named = [(claim.arms, claim.length) for claim in self.claims]
        for arms, length in (*named, *(((one.arm,), one.length) for one in self.published)):
            for arm in arms:
                if arm not in self.arms:
                    raise self._error(f"speaks of {arm!r:.60}, which is none of its arms")
            if length not in self.lengths:
                raise self._error(f"speaks of length {length}, which is none of its lengths")

    def _error(self, problem: str) -> UserError:
        return UserError(f"experiment {self.name!r} {problem}")

    @property
    def scales(self) -> tuple[Scale, ...]:
        """At which all of its arms exist."""
        return tuple(scale for scale in SCALES if all(scale in arm.scales for arm in self.arms))

    def examples_at(self, length: int, scale: Scale) -> int:
        """Sequences longer than the paper's longest are slow: a tenth of them must do."""
        examples = PAPER_EXAMPLES if scale == "paper" else self.examples
        return examples if length <= PAPER_LONGEST else min(examples, max(1000, examples // 10))

    def printed(self, arm: Arm, panel: Panel) -> dict[int, Published]:
        """What the paper prints of an arm in a panel, by length."""
        wanted = (arm, panel.distribution, panel.quantity)
        return {
            p.length: p for p in self.published if (p.arm, p.distribution, p.quantity) == wanted
        }

    @property
    def distributions(self) -> dict[str, bool]:
        """Every test distribution that is evaluated, and whether its edit distance is wanted."""
        wanted: dict[str, bool] = {}
        for panel in self.panels:
            if panel.quantity.needs != "mechanisms":
                distances = panel.quantity.needs == "edit distance"
                wanted[panel.distribution] = wanted.get(panel.distribution, False) or distances
        return wanted

    @property
    def mechanisms(self) -> frozenset[str]:
        """Names of the mechanisms that are counted inside the models."""
        wanted = (panel.quantity for panel in self.panels)
        return frozenset(one.name for one in wanted if one.needs == "mechanisms")
