"""What can be claimed of arms, and when a claim holds. A user's own claim derives from `Claim`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from taskhint.experiments.arm import Arm
from taskhint.experiments.quantity import ACCURACY, Quantity
from taskhint.system.stats import OverSeeds, welch

FLOOR = 0.01  # accuracies below it are no better than one another
Look = Callable[[Arm], OverSeeds | None]


@dataclass(frozen=True)
class Outcome:
    """Whether a claim holds here: yes, no, or (None) not to be told from these seeds."""

    text: str
    holds: bool | None


class Claim(ABC):
    """Something said about arms at one length, on one test distribution."""

    length: int
    distribution: str
    quantity: Quantity

    @property
    @abstractmethod
    def arms(self) -> tuple[Arm, ...]: ...

    @property
    @abstractmethod
    def says(self) -> str:
        """In words, without where and of what."""

    @abstractmethod
    def judge(self, *found: OverSeeds) -> tuple[str, bool | None]:
        """What each arm has, in words, and whether the claim holds."""

    def outcome(self, look: Look) -> Outcome:
        where = f" on {self.distribution}" if self.distribution != "uniform" else ""
        what = f" ({self.quantity.name})" if self.quantity != ACCURACY else ""
        wanted = f"{self.says} at {self.length}{where}{what}"
        found = [one for one in map(look, self.arms) if one is not None]
        if len(found) < len(self.arms):
            return Outcome(f"{wanted}: not measured", None)
        text, holds = self.judge(*found)
        return Outcome(f"{wanted}: {text}", holds)


class Comparison(Claim):
    def judge(self, *found: OverSeeds) -> tuple[str, bool | None]:
        ours, theirs = found
        text = " against ".join(self.quantity.text(one.mean) for one in found)
        return text, self.holds(ours, theirs)

    @abstractmethod
    def holds(self, ours: OverSeeds, theirs: OverSeeds) -> bool | None: ...

    def clearly_better(self, ours: OverSeeds, theirs: OverSeeds) -> int:
        """1 if the first arm is better, -1 if worse, 0 if the interval of the difference holds
        zero.
        """
        gap = welch(ours, theirs)
        if gap is None or 0.0 in gap:
            return 0
        return 1 if (gap.low > 0) == self.quantity.larger_is_better else -1


@dataclass(frozen=True)
class Better(Comparison):
    """One arm does better than another."""

    better: Arm
    worse: Arm
    length: int
    distribution: str = "uniform"
    quantity: Quantity = ACCURACY

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.better, self.worse

    @property
    def says(self) -> str:
        return f"{self.better.label} better than {self.worse.label}"

    def holds(self, ours: OverSeeds, theirs: OverSeeds) -> bool | None:
        return {1: True, 0: None, -1: False}[self.clearly_better(ours, theirs)]


@dataclass(frozen=True)
class NotBetter(Comparison):
    """One arm does no better than another."""

    other: Arm
    base: Arm
    length: int
    distribution: str = "uniform"
    quantity: Quantity = ACCURACY

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.other, self.base

    @property
    def says(self) -> str:
        return f"{self.other.label} not better than {self.base.label}"

    def holds(self, ours: OverSeeds, theirs: OverSeeds) -> bool | None:
        if max(ours.mean, theirs.mean) < FLOOR:
            return None
        return self.clearly_better(ours, theirs) <= 0


@dataclass(frozen=True)
class AtMost(Claim):
    """An arm stays below so many percent."""

    arm: Arm
    length: int
    percent: float
    distribution: str = "uniform"
    quantity: Quantity = ACCURACY

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.arm,)

    @property
    def says(self) -> str:
        return f"{self.arm.label} below {self.percent:g}%"

    def judge(self, *found: OverSeeds) -> tuple[str, bool | None]:
        return self.quantity.text(found[0].mean), 100 * found[0].mean < self.percent


@dataclass(frozen=True)
class AtLeast(Claim):
    """An arm reaches about so many percent."""

    arm: Arm
    length: int
    percent: float
    distribution: str = "uniform"
    quantity: Quantity = ACCURACY

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.arm,)

    @property
    def says(self) -> str:
        return f"{self.arm.label} reaches {self.percent:g}%"

    def judge(self, *found: OverSeeds) -> tuple[str, bool | None]:
        return self.quantity.text(found[0].mean), 100 * found[0].mean >= self.percent
