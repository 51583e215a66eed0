"""Exact match at length 100: our one pass over the right answers against greedy decoding with a
cache.

Both judge the same sequences with the same weights, and both must find the same first error in
every one of them.

Shapes: B sequences, P prompt tokens, A answer tokens.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch

from benchmarks.contestants import hugging_face, need_packages
from benchmarks.limit import Product, Room, run_all, unavoidable
from benchmarks.memory import LONG, SEQUENCES, peak_mib
from benchmarks.timing import Work, alternate, medians, say, timed
from taskhint.data.batch import make_batch
from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import chosen_rows, judge, score, sequences_at_once
from taskhint.model.decoder import Decoder
from taskhint.recipes import find_recipe
from taskhint.system.cores import on_every_core
from taskhint.tasks import Sort
from taskhint.tasks.lengths import Lengths, Skewed
from taskhint.tasks.random_bits import Ints
from taskhint.tasks.task import Examples, Task, paper_lengths
from taskhint.training.loop import train

LENGTH = 100
COMPARED = 1024
BATCH_SIZES = (64, 256, 1024)
ROUNDS = 3
SEED = 0


@dataclass(frozen=True)
class Sorter:
    """Weights to judge: a plain sorter that is trained at the start of the benchmark.

    First errors must stand at many places: an untrained model would fail at once everywhere, and
    agreeing on that would say nothing.
    """

    about: str
    lengths: Lengths
    batch_size: int
    updates: int

    def train(self) -> tuple[Decoder, Task]:
        recipe = replace(
            find_recipe("sort/standard"),
            task=Sort(lengths=self.lengths),
            batch_size=self.batch_size,
        )
        say(f"evaluate: training a sorter for {self.updates} updates")
        with tempfile.TemporaryDirectory() as directory:
            run = train(recipe.with_steps(self.updates), Path(directory) / "run")
            return run.model, run.task.for_test("uniform")


SORTERS = {
    f"length-{LENGTH}": Sorter("trained on at most 20 symbols", paper_lengths(), 256, 600),
    f"length-{LENGTH}-trained": Sorter(
        f"trained on at most {LENGTH} symbols",
        Skewed(shortest=2, short=20, longest=LENGTH, short_share=0.7),
        64,
        1000,
    ),
}


def measure(rounds: int | None = None) -> dict[str, Any]:
    """The document under "evaluate"."""
    need_packages(["transformers"])
    result: dict[str, Any] = {}
    for name, sorter in SORTERS.items():
        decoder, task = sorter.train()
        measured = measure_length(decoder, task, LENGTH, COMPARED, rounds or ROUNDS)
        result[name] = {"weights": sorter.about, **measured}
    long = peak_mib("evaluate")
    rate = SEQUENCES / long["seconds"]
    result[f"length-{LONG}"] = {
        "ours": rate,
        "against": {},
        "sequences": SEQUENCES,
        "peak_memory_mib": long["mib"],
    }
    return result


def measure_length(
    decoder: Decoder,
    task: Task,
    length: int,
    count: int,
    rounds: int,
    batch_sizes: tuple[int, ...] = BATCH_SIZES,
) -> dict[str, Any]:
    """Sequences per second of both, and whether they agree on every sequence."""
    examples = fresh_examples(task, SEED, length, 0, count)
    generate = hugging_face_errors(decoder, task, examples)
    tried = {}
    for size in batch_sizes:
        say(f"evaluate: generate in batches of {size}")
        tried[size] = count / timed(lambda _, size=size: generate(size))  # type: ignore[misc]
    best = max(tried, key=lambda size: tried[size])
    found: list[Ints] = []
    works: dict[str, Work] = {
        "ours": lambda _: score(decoder, task, SEED, length, count, edit_distance=False),
        "transformers": lambda _: found.append(generate(best)),
        "limit": whole_passes(decoder, task, examples),
    }
    seconds = medians(alternate(works, rounds, f"evaluate, length {length}"))
    return {
        "ours": count / seconds["ours"],
        "against": {"transformers": seconds["transformers"] / seconds["ours"]},
        "transformers": count / seconds["transformers"],
        "limit": count / seconds["limit"],
        "batch_sizes": {str(size): rate for size, rate in tried.items()},
        "best_batch_size": best,
        "rounds": rounds,
        "threads": torch.get_num_threads(),
        **agreement(decoder, task, examples, our_errors(decoder, task, examples), found[-1]),
    }


def whole_passes(decoder: Decoder, task: Task, examples: Examples) -> Work:
    """The bare products of passes that read every answer to its end, a part on each core as ours
    does it.
    """
    at_once = sequences_at_once(examples)
    batch = make_batch(task, [chosen_rows(examples, slice(0, at_once))])
    free: SimpleQueue[list[Product]] = SimpleQueue()
    for _ in range(torch.get_num_threads()):
        free.put(unavoidable(decoder.config, task.vocab.size, batch, Room(), learning=False))

    def one_part(_: int) -> None:
        products = free.get()
        run_all(products)
        free.put(products)

    def all_parts(_: int) -> None:
        for _done in on_every_core(one_part, range(max(1, round(len(examples) / at_once)))):
            pass

    return all_parts


def our_errors(decoder: Decoder, task: Task, examples: Examples, at_once: int = 64) -> Ints:
    """(B,) the place of the first error in each answer, -1 where there is none."""
    parts = [
        judge(decoder, task, chosen_rows(examples, slice(i, i + at_once)))
        for i in range(0, len(examples), at_once)
    ]
    return np.concatenate([part.first_error for part in parts])


def hugging_face_errors(decoder: Decoder, task: Task, examples: Examples) -> Callable[[int], Ints]:
    """From a batch size to the places of the first errors in what `generate` answers. Prompts are
    equally long.
    """
    model: Any = hugging_face(decoder, task.kind).model.eval()
    prompt, size = int(examples.prompts[0]), int(examples.sizes[0])
    tokens = torch.from_numpy(examples.tokens)
    settings = {
        "max_new_tokens": size - prompt,
        "do_sample": False,
        "use_cache": True,
        "pad_token_id": task.vocab.pad,
    }

    @torch.inference_mode()
    def errors(batch_size: int) -> Ints:
        begun = tokens[:, :prompt].split(batch_size)
        whole = [
            model.generate(part, attention_mask=torch.ones_like(part), **settings)
            for part in begun
        ]
        return first_errors(torch.cat(whole).numpy()[:, prompt:], examples.tokens[:, prompt:])

    return errors


def first_errors(answers: Ints, right: Ints) -> Ints:
    """(B,) of two (B, A)."""
    wrong = answers != right
    return np.where(wrong.any(axis=1), wrong.argmax(axis=1), -1)


def agreement(
    decoder: Decoder, task: Task, examples: Examples, ours: Ints, theirs: Ints
) -> dict[str, Any]:
    """How many sequences have the same verdict, and the same first error; and each exception with
    its logit gap.
    """
    different = np.flatnonzero(ours != theirs)
    return {
        "compared": len(examples),
        "right": int((ours < 0).sum()),
        "different_places_of_first_error": len(np.unique(ours)),
        "same_verdict": int(((ours < 0) == (theirs < 0)).sum()),
        "same_first_error": len(examples) - len(different),
        "exceptions": [
            _exception(decoder, task, examples, int(row), ours, theirs) for row in different
        ],
    }


@torch.no_grad()
def _exception(
    decoder: Decoder, task: Task, examples: Examples, row: int, ours: Ints, theirs: Ints
) -> dict[str, float]:
    """The gap between the two largest logits where the two begin to disagree: rounding decides if
    it is tiny.
    """
    places = [int(place) for place in (ours[row], theirs[row]) if place >= 0]
    prompt = int(examples.prompts[row])
    tokens = torch.from_numpy(examples.tokens[row : row + 1, :-1])
    logits = decoder.trace(tokens, task.kind, int(examples.inputs[row]))["logits"][
        0, prompt - 1 + min(places)
    ]
    top = logits.topk(2).values
    gap = float(top[0] - top[1])
    return {"row": row, "ours": int(ours[row]), "transformers": int(theirs[row]), "logit_gap": gap}
