"""Exact full-sequence accuracy in one forward pass.

Greedy decoding is right to the end exactly when the most likely token is right at every step given
the right ones before it. So one pass over prompt and right answer gives the verdict, and nothing
is decoded. For the edit distance only the failed examples are decoded, and only from their first
error on: until there the answer is the right one.

Nothing is read on behind a first error: a model that fails at some length mostly fails early in
the answer, and then prompt and beginning give the verdict at half the price. It never changes a
verdict: tokens do not see those that follow them.

Shapes: B examples, T tokens, A answer tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from taskhint.data.batch import Batch, make_batch
from taskhint.data.dataset import MAX_TEST_EXAMPLES, fresh_examples
from taskhint.evaluation.levenshtein import levenshtein
from taskhint.model.decoder import Decoder
from taskhint.model.decoding import greedy
from taskhint.runs.curve import LengthCurve, Score, save_curve
from taskhint.runs.run import Run, load
from taskhint.system.cores import on_every_core
from taskhint.system.errors import UserError
from taskhint.system.progress import Progress
from taskhint.system.settings import conform
from taskhint.tasks.random_bits import Ints
from taskhint.tasks.task import Examples, Task
from taskhint.training.limits import check_evaluation, sequences_that_fit

TOKENS_AT_ONCE = 1 << 12  # few enough to stay in the processor's caches
# What a token of the answer costs, a prompt's being 1: the last block computes it in full.
ANSWER_WEIGHT = 2.0
SHARES = (16, 8, 4, 2)
WORTHWHILE = 0.9


@dataclass(frozen=True)
class Verdicts:
    """For each example: the tokens that a single pass predicts for its answer, and where the first
    wrong one stands.
    """

    predicted: list[Ints]  # of each example, (A,) predictions given the right tokens before them
    first_error: (
        Ints  # (B,) place of the first wrong prediction among the scored ones; -1 if there is none
    )


def evaluate(
    run: Run | str | Path,
    lengths: Sequence[int],
    examples: int = 1000,
    distribution: str = "uniform",
    edit_distance: bool = False,
    progress: bool = False,
    save: bool = True,
    device: str | None = None,
    precision: str | None = None,
) -> LengthCurve:
    """Measure a run's newest checkpoint on fresh examples of its main task; kept with the run.

    Without a device: on that of the run, if one was chosen for it, else on `auto`.
    """
    run = (run if isinstance(run, Run) else load(run)).chosen(device, precision)
    lengths = _checked_lengths(lengths)
    examples = check_examples(examples)
    task = run.task.for_test(conform(str, distribution, "distribution"))
    check_evaluation(run.recipe.model, task, lengths, run.model.device)
    bar = Progress(
        len(lengths) * examples, f"evaluate {distribution}", shown=progress, unit="sequence"
    )
    scores: dict[int, Score] = {}
    with bar:
        for length in sorted(set(lengths)):
            scores[length] = score(
                run.model, task, run.recipe.seed, length, examples, edit_distance, bar
            )
            bar.base += examples
    curve = curve_of(run, distribution, scores)
    if save:
        save_curve(run.path, curve)
    return curve


def curve_of(run: Run, distribution: str, scores: dict[int, Score]) -> LengthCurve:
    """What was measured of a run's newest checkpoint."""
    return LengthCurve(
        run=str(run.path),
        recipe=run.recipe.name,
        task=run.task.kind,
        distribution=distribution,
        seed=run.recipe.seed,
        step=run.checkpoint.step,
        scores=scores,
        precision=run.precision,
    )


def check_examples(examples: int) -> int:
    """How many test sequences of each length, if that is possible."""
    examples = conform(int, examples, "examples")
    if examples < 1:
        raise UserError(f"--examples {examples} is too few; at least 1")
    if examples > MAX_TEST_EXAMPLES:
        raise UserError(f"--examples {examples} is too many; at most {MAX_TEST_EXAMPLES}")
    return examples


def _checked_lengths(lengths: Iterable[int]) -> tuple[int, ...]:
    listed = list(lengths) if isinstance(lengths, Iterable) else lengths
    checked: tuple[int, ...] = conform(tuple[int, ...], listed, "lengths")
    if not checked or min(checked) < 1:
        raise UserError(f"lengths={list(checked)} must be at least one number, none under 1")
    return checked


def score(
    decoder: Decoder,
    task: Task,
    seed: int,
    length: int,
    examples: int,
    edit_distance: bool,
    progress: Progress | None = None,
) -> Score:
    """How the model does on fresh sequences of one length. Where the first of them fail early, so
    judge the others.
    """
    if decoder.device.type != "cpu":
        return _score_on_device(decoder, task, seed, length, examples, edit_distance, progress)
    first = min(examples, sequences_at_once(fresh_examples(task, seed, length, 0, 1)))
    some = fresh_examples(task, seed, length, 0, first)
    verdicts = judge(decoder, task, some)
    bite = (
        None
        if edit_distance or not can_be_cut(decoder, task)
        else best_bite(some, verdicts.first_error)
    )
    at_once = first if bite is None else sequences_at_once(beginnings(some, bite))

    def part(start: int) -> tuple[int, int, int]:
        """Sequences, right ones and the sum of edit distances of the part that begins there."""
        if start == 0:
            return _counts(decoder, task, some, verdicts, edit_distance)
        others = fresh_examples(task, seed, length, start, min(at_once, examples - start))
        if bite is None:
            return _counts(decoder, task, others, judge(decoder, task, others), edit_distance)
        begun = judge(decoder, task, beginnings(others, bite))
        left = chosen_rows(others, begun.first_error < 0)
        right = int((judge(decoder, task, left).first_error < 0).sum()) if len(left) else 0
        return len(others), right, 0

    done, right, distance = 0, 0, 0
    for count, right_ones, distances in on_every_core(part, [0, *range(first, examples, at_once)]):
        done, right, distance = done + count, right + right_ones, distance + distances
        if progress is not None:
            progress.advance_to(progress.base + done)
    return Score(examples, right, distance / examples if edit_distance else None)


def _score_on_device(
    decoder: Decoder,
    task: Task,
    seed: int,
    length: int,
    examples: int,
    edit_distance: bool,
    progress: Progress | None = None,
) -> Score:
    """Large chunks one after another. Nothing waits for the device before the last of them: the
    number of right answers stays there, unless failed ones are decoded.
    """
    at_once = sequences_that_fit(decoder.config, task, length, decoder.device)
    right, distance = torch.zeros((), dtype=torch.long, device=decoder.device), 0
    for start in range(0, examples, at_once):
        some = fresh_examples(task, seed, length, start, min(at_once, examples - start))
        if edit_distance:
            _, count, off = _counts(decoder, task, some, judge(decoder, task, some), True)
            right, distance = right + count, distance + off
        else:
            right += right_answers(decoder, task, some)
        if progress is not None:
            progress.advance_to(progress.base + start + len(some))
    return Score(examples, int(right), distance / examples if edit_distance else None)


@torch.no_grad()
def right_answers(decoder: Decoder, task: Task, examples: Examples) -> Tensor:
    """() how many answers are right to the end, as a number on the model's device."""
    batch = make_batch(task, [examples])
    owners = np.repeat(np.arange(len(examples)), batch.scored_per_example)
    there = _there(decoder, task, batch)
    wrong = decoder(there, task.kind).argmax(dim=1) != there.targets
    each = torch.zeros(len(examples), dtype=torch.long, device=wrong.device)
    each.index_add_(0, torch.from_numpy(owners).to(wrong.device), wrong.long())
    return (each == 0).sum()


def _there(decoder: Decoder, task: Task, batch: Batch) -> Batch:
    """The batch where the model is; what is read off tokens is read before they go there."""
    if decoder.device.type == "cpu":
        return batch
    positions = decoder.config.positions
    if positions.reads_tokens:
        batch = batch.with_drawn_ids(lambda _, tokens: positions.token_ids(tokens, task))
    return batch.to(decoder.device)


def _counts(
    decoder: Decoder, task: Task, examples: Examples, verdicts: Verdicts, edit_distance: bool
) -> tuple[int, int, int]:
    distance = int(_distances(decoder, task, examples, verdicts).sum()) if edit_distance else 0
    return len(examples), int((verdicts.first_error < 0).sum()), distance


def sequences_at_once(some: Examples) -> int:
    """As many like these as bounded memory allows, and the processor's caches hold."""
    return max(1, TOKENS_AT_ONCE // some.tokens.shape[1])


@torch.no_grad()
def judge(decoder: Decoder, task: Task, examples: Examples) -> Verdicts:
    """One pass over the right answers."""
    batch = make_batch(task, [examples])
    predicted = decoder(_there(decoder, task, batch), task.kind).argmax(dim=1).cpu().numpy()
    ends = np.cumsum(batch.scored_per_example)
    errors = np.flatnonzero(predicted != batch.targets.numpy())
    owners, at = np.unique(np.searchsorted(ends, errors, side="right"), return_index=True)
    first = np.full(len(examples), -1)
    first[batch.rows[owners]] = errors[at] - (ends - batch.scored_per_example)[owners]
    by_group = np.split(predicted, ends[:-1])
    return Verdicts([by_group[place] for place in np.argsort(batch.rows)], first)


def decode_failed(
    decoder: Decoder, task: Task, examples: Examples, verdicts: Verdicts
) -> dict[int, list[int]]:
    """What greedy decoding answers, for each failed example by its row.

    Failed examples whose first error stands at the same place are decoded together.
    """
    if task.given:
        raise UserError(
            f"answers of task {task.kind!r} contain given tokens; its edit distance is not defined"
        )
    answers: dict[int, list[int]] = {}
    failed = np.flatnonzero(verdicts.first_error >= 0)
    keys = np.stack([verdicts.first_error, examples.prompts, examples.sizes], axis=1)[failed]
    for first, prompt, size in np.unique(keys, axis=0):
        rows = failed[(keys == (first, prompt, size)).all(axis=1)]
        wrong = np.array([[verdicts.predicted[row][first]] for row in rows])
        begun = np.concatenate([examples.tokens[rows, : prompt + first], wrong], axis=1)
        left = int(size - prompt - first - 1)
        inputs, prompts = (
            torch.from_numpy(x).to(decoder.device) for x in (examples.inputs[rows], begun)
        )
        rest = greedy(decoder, task.kind, prompts, left, inputs, sequence=int(size))
        for row, start, end in zip(rows, begun[:, prompt:], rest.tolist(), strict=True):
            answers[int(row)] = [*start.tolist(), *end]
    return answers


def _distances(decoder: Decoder, task: Task, examples: Examples, verdicts: Verdicts) -> Ints:
    """(B,) Levenshtein distance between right and decoded answer."""
    distances = np.zeros(len(examples), dtype=np.int64)
    for row, answer in decode_failed(decoder, task, examples, verdicts).items():
        right = examples.tokens[row, examples.prompts[row] : examples.sizes[row]].tolist()
        distances[row] = levenshtein(right, answer)
    return distances


def can_be_cut(decoder: Decoder, task: Task) -> bool:
    """Not where attention counts the whole sequence, nor where a part of the answer is given."""
    return not decoder.config.judged_whole and not task.given


def best_bite(examples: Examples, first_errors: Ints) -> int | None:
    """How many tokens of each answer to judge first, going by these first errors; None if all at
    once is cheaper.
    """
    prompt, answer = (
        float(examples.prompts.mean()),
        float((examples.sizes - examples.prompts).mean()),
    )
    whole = prompt + ANSWER_WEIGHT * answer
    costs = {}
    for share in SHARES:
        bite = int(answer) // share
        if bite:
            left = ((first_errors < 0) | (first_errors >= bite)).mean()
            costs[bite] = prompt + ANSWER_WEIGHT * bite + left * whole
    best = min(costs, key=lambda bite: costs[bite], default=None)
    return best if best is not None and costs[best] < WORTHWHILE * whole else None


def beginnings(examples: Examples, bite: int) -> Examples:
    """The same examples with answers of at most `bite` tokens."""
    sizes = np.minimum(examples.sizes, examples.prompts + bite)
    return Examples(examples.tokens[:, : sizes.max()], examples.prompts, sizes, examples.inputs)


def chosen_rows(examples: Examples, chosen: npt.NDArray[np.bool_] | slice) -> Examples:
    return Examples(
        examples.tokens[chosen],
        examples.prompts[chosen],
        examples.sizes[chosen],
        examples.inputs[chosen],
    )
