"""Whether a task keeps its promises: `make` against `solve`, in training and in every test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.random_bits import RandomBits
from taskhint.tasks.task import Examples, Task
from taskhint.tasks.vocab import DELIMITER

EXAMPLES = 200
LONGER = 2  # times the longest training length: what is measured is longer than what is trained


def check_task(task: Task, lengths: Sequence[int] | None = None, examples: int = EXAMPLES) -> int:
    """Compare `make` with `solve`, as trained and in every test distribution; how many were right.

    The first thing that is wrong raises a UserError that shows it. By default the lengths are
    those of training and two longer ones.
    """
    if not isinstance(task, Task):
        raise UserError(f"check_task takes a task, got {task!r:.60}")
    longest = task.lengths.max_length
    chosen = lengths or [*task.lengths.shares(), longest + 1, LONGER * longest]
    _check_prompt(task, task.worked_example(), "its worked example")
    checked = 0
    for where, variant in _variants(task).items():
        for length in chosen:
            checked += _check_length(variant, where, length, examples)
    return checked


def _variants(task: Task) -> dict[str, Task]:
    tests = {name.replace(":R", ":2") for name in task.distributions}
    variants = {f"test distribution {name}": task.for_test(name) for name in sorted(tests)}
    return {"training": task, **variants}


def _check_length(task: Task, where: str, length: int, count: int) -> int:
    try:
        made = task.make(_bits(range(count)), length)
    except UserError:  # such as more distinct symbols than there are: refused, not wrong
        return 0
    where = f"{task.kind}, {where}, length {length}"
    _check_arrays(task, made, count, where)
    for row in range(count):
        _check_example(task, made, row, where)
    _check_repeats(task, made, length, where)
    return count


def _bits(rows: Sequence[int]) -> RandomBits:
    return RandomBits(0, 0, np.array(rows))


def _check_arrays(task: Task, made: Examples, count: int, where: str) -> None:
    if made.tokens.ndim != 2 or len(made) != count:
        raise UserError(f"{where}: tokens must be ({count}, T), got {made.tokens.shape}")
    for name in ("prompts", "sizes", "inputs"):
        if getattr(made, name).shape != (count,):
            raise UserError(f"{where}: {name} must be ({count},), got {getattr(made, name).shape}")
    if made.tokens.min() < 0 or made.tokens.max() >= task.vocab.size:
        raise UserError(f"{where}: a token is not in 0..{task.vocab.size - 1}")
    if not ((made.prompts >= 1) & (made.prompts < made.sizes)).all():
        raise UserError(f"{where}: a prompt or an answer is empty")
    if made.sizes.max() > made.tokens.shape[1]:
        raise UserError(f"{where}: sizes say more tokens than there are")


def _check_example(task: Task, made: Examples, row: int, where: str) -> None:
    tokens, end = made.tokens[row].tolist(), int(made.sizes[row])
    prompt, answer = tokens[: made.prompts[row]], tokens[made.prompts[row] : end]
    right = list(task.solve(prompt))
    if answer != right:
        shown = " ".join(task.vocab.words(prompt))
        raise UserError(
            f"{where}: for the prompt {shown} `make` answers "
            f"{' '.join(task.vocab.words(answer))}, `solve` {' '.join(task.vocab.words(right))}"
        )
    if any(token != task.vocab.pad for token in tokens[end:]):
        raise UserError(f"{where}: after the answer there must be PAD alone")
    _check_prompt(task, prompt, where)


def _check_prompt(task: Task, prompt: Sequence[int], where: str) -> None:
    if task.vocab.delimiter not in prompt:
        raise UserError(f"{task.kind}: a prompt without {DELIMITER} in {where}")


def _check_repeats(task: Task, made: Examples, length: int, where: str) -> None:
    """The same bits give the same example, whatever stands beside it."""
    rows = range(1, len(made), 2)
    again = task.make(_bits(rows), length)
    for row, mine in zip(rows, range(len(again)), strict=True):
        before, after = (
            made.tokens[row, : made.sizes[row]],
            again.tokens[mine, : again.sizes[mine]],
        )
        if before.tolist() != after.tolist():
            raise UserError(
                f"{where}: example {row} is another one beside other examples; it must depend on "
                "its own row of `bits` alone"
            )
