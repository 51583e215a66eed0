"""How far a run reaches, by bisection: the longest length at which accuracy is at least a share.

The search begins at the longest length of training. It doubles the length until the accuracy is
below the share or `longest` is passed, then halves the gap between the last length that held and
the first that did not. It ends when the gap is 1, or 1% of the length: at 1,000 sequences the
accuracy itself says no more. Three such searches share what they measure: with the accuracy, and
with the lower and the upper end of its interval. Each measures at most log2(longest / trained) + 8
lengths, or log2(trained) + 1 where the trained length itself fails.

A length between those that were measured is taken to lie between them in accuracy too. Look at the
curve where that is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from taskhint.data.dataset import MAX_TEST_LENGTH
from taskhint.evaluation.exact import check_examples, curve_of, score
from taskhint.runs.curve import Score, measured_in, save_curve
from taskhint.runs.reach import Reach, save_reach
from taskhint.runs.run import Run, load
from taskhint.system.errors import UserError
from taskhint.system.settings import conform
from taskhint.tasks.task import Task
from taskhint.training.limits import check_evaluation

TIMES_TRAINED = 50  # how far is looked, if nobody says
FINEST = 100  # the search ends within a hundredth of the length


def reach(
    run: Run | str | Path,
    share: float = 0.99,
    longest: int | None = None,
    examples: int = 1000,
    distribution: str = "uniform",
    save: bool = True,
    report: Callable[[int, Score], None] | None = None,
    device: str | None = None,
    precision: str | None = None,
) -> Reach:
    """The longest length, at most `longest`, at which a run has that share right; kept with the
    run, as are the accuracies. `report` is called with every length that is measured.

    Without a device: on that of the run, if one was chosen for it, else on `auto`.
    """
    run = (run if isinstance(run, Run) else load(run)).chosen(device, precision)
    share = conform(float, share, "share")
    if not 0.0 < share <= 1.0:
        raise UserError(f"--reach {share:g} is not in 0..1, without 0; 0.99 is 99%")
    examples = check_examples(examples)
    task = run.task.for_test(distribution)
    trained = task.lengths.max_length
    end = _checked_longest(TIMES_TRAINED * trained if longest is None else longest)
    scores: dict[int, Score] = {}

    def at(length: int) -> Score:
        if length not in scores:
            scores[length] = _score(run, task, length, examples)
            if report is not None:
                report(length, scores[length])
        return scores[length]

    shortest = min(min(task.lengths.shares()), end)
    search = partial(last_that_holds, shortest=shortest, start=trained, longest=end)
    found = Reach(
        share=share,
        length=search(lambda n: at(n).accuracy >= share),
        low=search(lambda n: at(n).interval.low >= share),
        high=search(lambda n: at(n).interval.high >= share),
        longest=end,
        examples=examples,
        measured=tuple(sorted(scores)),
    )
    if save:
        save_curve(run.path, curve_of(run, distribution, scores))
        save_reach(measured_in(run.path, run.precision), run.checkpoint.step, distribution, found)
    return found


def last_that_holds(
    holds: Callable[[int], bool], *, shortest: int, start: int, longest: int
) -> int:
    """The longest length for which it holds, within 1%: doubling from `start`, then halving; 0 if
    it never does.

    What holds more often than something else never gets a shorter one.
    """
    low, high = shortest - 1, longest + 1  # holds, as far as is known; does not
    length = min(max(start, shortest), longest)
    while low < longest if high > longest else high - low > max(1, low // FINEST):
        if holds(length):
            low = length
        else:
            high = length
        length = min(2 * low, longest) if high > longest else (low + high) // 2
    return low if low >= shortest else 0


def _checked_longest(longest: int) -> int:
    longest = conform(int, longest, "longest")
    if not 1 <= longest <= MAX_TEST_LENGTH:
        raise UserError(f"--longest {longest} is not in 1..{MAX_TEST_LENGTH}")
    return longest


def _score(run: Run, task: Task, length: int, examples: int) -> Score:
    try:
        check_evaluation(run.recipe.model, task, [length], run.model.device)
        return score(run.model, task, run.recipe.seed, length, examples, edit_distance=False)
    except UserError as error:  # no such inputs, or no such positions
        raise UserError(f"length {length} cannot be measured: {error}; set --longest") from None
