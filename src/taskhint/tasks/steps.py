"""One step of an answer, as probes ask a task about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """The input, the right answer, the number of the step from 0 on, and what was predicted."""

    inputs: list[int]
    answer: list[int]
    number: int
    predicted: int

    @property
    def right(self) -> int:
        return self.answer[self.number]

    @property
    def before(self) -> int | None:
        """The right token of the step before; None at the first."""
        return self.answer[self.number - 1] if self.number else None

    @property
    def after(self) -> int | None:
        """The right token of the step after; None at the last."""
        return self.answer[self.number + 1] if self.number + 1 < len(self.answer) else None
