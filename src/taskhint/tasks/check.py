"""Whether a task keeps its promises: `make` against `solve`, in training and in every test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.random_bits import RandomBits
from taskhint.tasks.task import Examples, SymbolTask, Task, WrongTaskError, solved
from taskhint.tasks.vocab import DELIMITER, PAD

EXAMPLES = 200
BEFORE_TRAINING = 16
LONGER = 2  # times the longest training length: what is measured is longer than what is trained
SHOWN = 3
WIDEST = 90  # characters of an example that is shown

Pair = tuple[str, str]
"""A prompt and its answer, as a person reads them."""


class Checked(int):
    """How many examples were right; printed, it shows some of them and what may be amiss."""

    kind: str
    examples: tuple[str, ...]
    remarks: tuple[str, ...]

    def __new__(cls, count: int, task: Task, trained: dict[int, list[Pair]]) -> Self:
        """`trained`: the examples as trained, by length."""
        checked = super().__new__(cls, count)
        checked.kind = task.kind
        checked.examples = tuple(" ".join(made[0]) for made in list(trained.values())[:SHOWN])
        checked.remarks = tuple(_remarks(task, trained))
        return checked

    def __str__(self) -> str:
        shown = [text if len(text) <= WIDEST else f"{text[:WIDEST]} …" for text in self.examples]
        lines = [f"{self.kind}: {int(self)} examples are right, such as", *shown, *self.remarks]
        return "\n  ".join(lines)

    __repr__ = __str__


def _remarks(task: Task, trained: dict[int, list[Pair]]) -> list[str]:
    remarks = []
    if type(task).make is SymbolTask.make:
        remarks.append("no `make` of its own: nothing to compare `solve` with")
    answers = [{answer for _, answer in made} for made in trained.values()]
    if answers and all(len(different) == 1 for different in answers):
        remarks.append("every answer of a length is the same")
    return [f"remark: {remark}" for remark in remarks]


def check_task(
    task: Task, lengths: Sequence[int] | None = None, examples: int = EXAMPLES
) -> Checked:
    """Compare `make` with `solve`, as trained and in every test distribution; how many were right.

    The first thing that is wrong raises a UserError that shows it. By default the lengths are
    those of training and two longer ones. Print what it returns to see examples and remarks.
    """
    if not isinstance(task, Task):
        raise UserError(f"check_task takes a task, got {task!r:.60}")
    longest = task.lengths.max_length
    chosen = lengths or [*task.lengths.shares(), longest + 1, LONGER * longest]
    _check_prompt(task, task.worked_example(), f"{task.kind}, its worked example")
    found: dict[tuple[str, int], list[Pair]] = {}
    refused = None
    for where, variant in _variants(task).items():
        for length in chosen:
            try:
                found[where, length] = _check_length(variant, where, length, examples)
            except WrongTaskError:
                raise
            except UserError as error:  # such as more distinct symbols than there are
                refused = error
    if refused is not None and not found:
        raise refused
    trained = {length: made for (where, length), made in found.items() if where == "training"}
    return Checked(sum(map(len, found.values())), task, trained)


def check_own_tasks(tasks: Sequence[Task]) -> None:
    """Refuse a user's task that is wrong, by a few examples of its shortest and longest length."""
    for task in tasks:
        if type(task).__module__.partition(".")[0] != "taskhint":
            drawn = [length for length, share in task.lengths.shares().items() if share > 0.0]
            for length in sorted({min(drawn), max(drawn)}):
                _check_length(task, "training", length, BEFORE_TRAINING)


def _variants(task: Task) -> dict[str, Task]:
    tests = {name.replace(":R", ":2") for name in task.distributions}
    variants = {f"test distribution {name}": task.for_test(name) for name in sorted(tests)}
    return {"training": task, **variants}


def _check_length(task: Task, where: str, length: int, count: int) -> list[Pair]:
    made = task.make(_bits(range(count)), length)
    where = f"{task.kind}, {where}, length {length}"
    _check_arrays(task, made, count, where)
    pairs = [_check_example(task, made, row, where) for row in range(count)]
    _check_repeats(task, made, length, where)
    return pairs


def _bits(rows: Sequence[int]) -> RandomBits:
    return RandomBits(0, 0, np.array(rows))


def _check_arrays(task: Task, made: Examples, count: int, where: str) -> None:
    if not isinstance(made, Examples):
        raise WrongTaskError(f"{where}: `make` must give Examples, got {made!r:.60}")
    if made.tokens.ndim != 2 or len(made) != count:
        raise WrongTaskError(
            f"{where}: `make` must give an example per row of `bits`: tokens of shape "
            f"({count}, T), got {made.tokens.shape}"
        )
    for name in ("prompts", "sizes", "inputs"):
        shape = getattr(made, name).shape
        if shape != (count,):
            raise WrongTaskError(f"{where}: {name} must be ({count},), got {shape}")
    if not ((made.prompts >= 1) & (made.prompts < made.sizes)).all():
        raise WrongTaskError(f"{where}: a prompt or an answer is empty")
    if made.sizes.max() > made.tokens.shape[1]:
        raise WrongTaskError(f"{where}: sizes say more tokens than there are")
    _check_ids(task, made.tokens.ravel().tolist(), where)


def _check_ids(task: Task, tokens: Sequence[int], where: str) -> None:
    wrong = [token for token in tokens if not 0 <= token < task.vocab.size]
    if wrong:
        raise WrongTaskError(
            f"{where}: token {wrong[0]} is not in 0..{task.vocab.size - 1}; "
            f"symbol {task.vocab.first_symbol} has the id 0"
        )


def _check_example(task: Task, made: Examples, row: int, where: str) -> Pair:
    tokens, end = made.tokens[row].tolist(), int(made.sizes[row])
    prompt, answer = tokens[: made.prompts[row]], tokens[made.prompts[row] : end]
    _check_prompt(task, prompt, where)
    right = solved(task, prompt)
    _check_ids(task, right, f"{where}, an answer of `solve`")
    shown, given, wanted = (" ".join(task.vocab.words(ids)) for ids in (prompt, answer, right))
    if answer != right:
        raise WrongTaskError(
            f"{where}: for the prompt {shown} `make` answers {given}, `solve` {wanted}"
        )
    for mark in (DELIMITER, PAD):
        if task.vocab.mark(mark) in answer:
            raise WrongTaskError(
                f"{where}: for the prompt {shown} the answer {given} contains {mark}"
            )
    if any(token != task.vocab.pad for token in tokens[end:]):
        raise WrongTaskError(f"{where}: after the answer there must be PAD alone")
    return shown, given


def _check_prompt(task: Task, prompt: Sequence[int], where: str) -> None:
    if task.vocab.delimiter not in prompt:
        raise WrongTaskError(f"{where}: a prompt without {DELIMITER}")


def _check_repeats(task: Task, made: Examples, length: int, where: str) -> None:
    """The same bits give the same example, whatever stands beside it."""
    rows = range(1, len(made), 2)
    again = task.make(_bits(rows), length)
    if len(again) != len(rows):
        raise WrongTaskError(f"{where}: `make` gives {len(again)} examples for {len(rows)} rows")
    for row, mine in zip(rows, range(len(again)), strict=True):
        before, after = (
            made.tokens[row, : made.sizes[row]],
            again.tokens[mine, : again.sizes[mine]],
        )
        if before.tolist() != after.tolist():
            raise WrongTaskError(
                f"{where}: example {row} is another one beside other examples; it must depend on "
                "its own row of `bits` alone"
            )
