"""Cheap signs of how a run will do on longer inputs: its loss, and whether the gradients of its
tasks agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from taskhint.data.batch import Batch, make_batch
from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import sequences_at_once
from taskhint.runs.run import Run
from taskhint.training.loop import batch_for

BATCHES = 8
MOST_STEPS = 10_000  # of the curriculum, in search of batches of every task


@torch.no_grad()
def loss_at(run: Run, length: int, examples: int = 500, distribution: str = "uniform") -> float:
    """The mean loss over the scored tokens of fresh sequences of one length, in nats."""
    task = run.task.for_test(distribution)
    at_once = sequences_at_once(fresh_examples(task, run.recipe.seed, length, 0, 1))
    total, scored = 0.0, 0
    for start in range(0, examples, at_once):
        count = min(at_once, examples - start)
        some = fresh_examples(task, run.recipe.seed, length, start, count)
        batch = make_batch(task, [some]).to(run.model.device)
        logits = run.model(batch, task.kind)
        total += float(functional.cross_entropy(logits, batch.targets, reduction="sum"))
        scored += len(batch.targets)
    return total / scored


def gradient_agreement(run: Run, batches: int = BATCHES) -> dict[str, float]:
    """By hint: the cosine between its gradient and the main task's, over the weights that both
    use.

    Gradients are means over batches that would come next in training, at its last weights.
    """
    recipe = run.recipe
    if not recipe.hints:
        return {}
    found = next_batches(run, batches)
    main = _gradient(run, recipe.task.kind, found[recipe.task.kind])
    return {
        hint.kind: _cosine(main, _gradient(run, hint.kind, found[hint.kind]))
        for hint in recipe.hints
    }


def next_batches(run: Run, count: int) -> dict[str, list[Batch]]:
    """So many batches of every task, as training would go on with."""
    recipe = run.recipe
    found: dict[str, list[Batch]] = {task.kind: [] for task in recipe.tasks}
    for step in range(recipe.steps, recipe.steps + MOST_STEPS):
        if all(len(some) == count for some in found.values()):
            break
        some = found[recipe.tasks[recipe.update(step)[0]].kind]
        if len(some) < count:
            some.append(batch_for(recipe, step).to(run.model.device))
    return found


def _gradient(run: Run, kind: str, batches: Iterable[Batch]) -> list[Tensor | None]:
    weights = list(run.model.parameters())
    losses = [functional.cross_entropy(run.model(b, kind), b.targets) for b in batches]
    return list(torch.autograd.grad(torch.stack(losses).mean(), weights, allow_unused=True))


def _cosine(first: Iterable[Tensor | None], second: Iterable[Tensor | None]) -> float:
    pairs = list(_shared(first, second))
    product = sum(float((a * b).sum()) for a, b in pairs)
    sizes = [sum(float((pair[i] ** 2).sum()) for pair in pairs) ** 0.5 for i in range(2)]
    return product / (sizes[0] * sizes[1]) if sizes[0] * sizes[1] else 0.0


def _shared(
    first: Iterable[Tensor | None], second: Iterable[Tensor | None]
) -> Iterator[tuple[Tensor, Tensor]]:
    for a, b in zip(first, second, strict=True):
        if a is not None and b is not None:
            yield a.double(), b.double()
