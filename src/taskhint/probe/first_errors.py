"""Where a model first goes wrong, at which kind of step, and in which way.

Only the first error of a sequence is counted: until there the answer is the right one, so greedy
decoding comes to the same place in the same way. Steps count from 0, the prediction made at ⊥.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import TOKENS_AT_ONCE, judge
from taskhint.probe.shares import wilson
from taskhint.probe.view import Subject
from taskhint.tasks import Increment, Sort
from taskhint.tasks.vocab import Vocab

TENTHS = 10


@dataclass(frozen=True)
class Step:
    """One step of an answer: the sequence's input, the right answer, the step's number and what
    was predicted.
    """

    inputs: list[int]
    answer: list[int]
    number: int
    predicted: int

    @property
    def right(self) -> int:
        return self.answer[self.number]


@dataclass(frozen=True)
class Naming:
    """How a task's steps and errors are called. Every step is of one kind, every error too."""

    steps: tuple[str, ...]
    errors: tuple[str, ...]
    step_of: Callable[[Step], str]
    error_of: Callable[[Step, Vocab], str]


def sort_step(step: Step) -> str:
    """The minimum (at ⊥), the end (the last symbol), and between them: repeat the symbol or move
    to its successor.
    """
    if step.number == 0:
        return "minimum"
    if step.number == len(step.answer) - 1:
        return "end"
    return "repeat" if step.right == step.answer[step.number - 1] else "successor"


def sort_error(step: Step, vocab: Vocab) -> str:
    if step.predicted >= vocab.symbols or step.predicted not in step.inputs:
        return "not in the input"
    if step.number == 0:
        return "wrong minimum"
    here = step.answer[step.number - 1]
    if step.predicted == here:
        return "repeated too often"
    if step.predicted < here:
        return "went back"
    moved = min(symbol for symbol in step.inputs if symbol > here)
    return "moved on too early" if step.predicted == moved else "skipped a symbol"


def increment_step(step: Step) -> str:
    """Turn a trailing 9 into 0, add the one, copy a digit, or write the digit that an overflow
    adds.
    """
    if step.number == len(step.inputs):
        return "new digit"
    nines = next(
        (k for k, digit in enumerate(reversed(step.inputs)) if digit != 9), len(step.inputs)
    )
    return "carry" if step.number < nines else "add one" if step.number == nines else "copy"


def increment_error(step: Step, vocab: Vocab) -> str:
    if step.predicted >= vocab.symbols:
        return "not a digit"
    own = step.inputs[-1 - step.number] if step.number < len(step.inputs) else None
    if step.predicted == own:
        return "dropped the carry"
    if own is not None and step.predicted == (own + 1) % 10:
        return "carried too far"
    around = [
        step.inputs[-1 - k]
        for k in (step.number - 1, step.number + 1)
        if 0 <= k < len(step.inputs)
    ]
    return "neighbouring digit" if step.predicted in around else "other digit"


def any_step(step: Step) -> str:
    return "first" if step.number == 0 else "later"


def any_error(_: Step, __: Vocab) -> str:
    return "wrong"


SORT = Naming(
    ("minimum", "successor", "repeat", "end"),
    (
        "wrong minimum",
        "moved on too early",
        "repeated too often",
        "skipped a symbol",
        "went back",
        "not in the input",
    ),
    sort_step,
    sort_error,
)
INCREMENT = Naming(
    ("carry", "add one", "copy", "new digit"),
    ("dropped the carry", "carried too far", "neighbouring digit", "other digit", "not a digit"),
    increment_step,
    increment_error,
)
ANY = Naming(("first", "later"), ("wrong",), any_step, any_error)


@dataclass(frozen=True)
class ErrorsAtLength:
    """Of `sequences` sequences `right` have no error. The others are counted once, at their first
    error.
    """

    sequences: int
    right: int
    reached: dict[
        str, int
    ]  # steps of each kind that were reached, up to the first error of each sequence
    counts: dict[str, dict[str, int]]  # step kind -> error kind -> sequences
    places: tuple[int, ...]  # first errors by tenth of the answer

    def share_of_error(self, kind: str) -> float:
        """The share of all sequences whose first error is of this kind."""
        return sum(errors[kind] for errors in self.counts.values()) / self.sequences

    @property
    def share_right(self) -> float:
        return self.right / self.sequences

    def risk_of_step(self, kind: str) -> float | None:
        """First errors at such steps per step that was reached; None if none was."""
        return sum(self.counts[kind].values()) / self.reached[kind] if self.reached[kind] else None

    def risk_interval(self, kind: str) -> tuple[float, float]:
        """Its 95% Wilson interval."""
        risk = self.risk_of_step(kind)
        return (0.0, 1.0) if risk is None else wilson(risk, self.reached[kind])

    @property
    def share_of_places(self) -> list[float]:
        """The shares of all sequences that first fail in each tenth of the answer."""
        return [count / self.sequences for count in self.places]


@dataclass(frozen=True)
class FirstErrors:
    """First errors by input length."""

    steps: tuple[str, ...]
    errors: tuple[str, ...]
    lengths: dict[int, ErrorsAtLength]


def first_errors(subject: Subject, lengths: Sequence[int], examples: int) -> FirstErrors:
    naming = _naming(subject)
    found = {
        length: _at_length(subject, naming, length, examples) for length in sorted(set(lengths))
    }
    return FirstErrors(naming.steps, naming.errors, found)


def _naming(subject: Subject) -> Naming:
    if isinstance(subject.task, Sort):
        return SORT
    return INCREMENT if isinstance(subject.task, Increment) else ANY


def _at_length(subject: Subject, naming: Naming, length: int, examples: int) -> ErrorsAtLength:
    reached: Counter[str] = Counter()
    errors: Counter[tuple[str, str]] = Counter()
    places = [0] * TENTHS
    right = 0
    for steps, failed in _walk(subject, length, examples):
        reached.update(naming.step_of(step) for step in steps)
        right += not failed
        if failed:
            last = steps[-1]
            errors[naming.step_of(last), naming.error_of(last, subject.task.vocab)] += 1
            places[TENTHS * last.number // len(last.answer)] += 1
    return ErrorsAtLength(
        sequences=examples,
        right=right,
        reached={kind: reached[kind] for kind in naming.steps},
        counts={
            step: {kind: errors[step, kind] for kind in naming.errors} for step in naming.steps
        },
        places=tuple(places),
    )


def _walk(subject: Subject, length: int, examples: int) -> Iterator[tuple[list[Step], bool]]:
    """Of each sequence its steps up to the first error, and whether there is one."""
    size = fresh_examples(subject.task, subject.seed, length, 0, 1).tokens.shape[1]
    at_once = max(1, TOKENS_AT_ONCE // size)
    for start in range(0, examples, at_once):
        chunk = fresh_examples(
            subject.task, subject.seed, length, start, min(at_once, examples - start)
        )
        verdicts = judge(subject.decoder, subject.task, chunk)
        for row, first in enumerate(verdicts.first_error.tolist()):
            tokens = chunk.tokens[row, : chunk.sizes[row]].tolist()
            inputs, answer = tokens[: chunk.inputs[row]], tokens[chunk.prompts[row] :]
            predicted = verdicts.predicted[row].tolist()
            last = len(answer) - 1 if first < 0 else first
            yield [Step(inputs, answer, k, predicted[k]) for k in range(last + 1)], first >= 0
