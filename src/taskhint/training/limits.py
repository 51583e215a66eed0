"""What an update or an evaluation takes; what cannot be is refused before anything is made.

The estimates are rough on purpose: one example of the shortest and one of the longest length are
made, and sizes in between lie on a line.

Shapes: B examples, T tokens of an example, A queries of its last block, D width, V symbols.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from taskhint.data.batch import Group, make_batch
from taskhint.model.attention.packed import LONGEST
from taskhint.model.attention.paths import PAIRS_AT_ONCE
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.places import Places
from taskhint.model.positions import NoPositions, PositionHooks, Positions
from taskhint.model.softmax import Softmax
from taskhint.recipes.recipe import Recipe
from taskhint.system.devices import speaks
from taskhint.system.memory import check_fits, free_bytes, gigabytes
from taskhint.tasks.random_bits import TEST_STREAM, Ints, RandomBits
from taskhint.tasks.task import Task

BACKWARD = 2  # a linear map's way back is two products of the size of the one on the way there
FLOAT = 4  # bytes
BUCKETS = 64
COPIES = 6  # of the weights: they, their gradients, the optimiser's numbers, a checkpoint
MUCH_WORK = 1e12  # operations of an update or a sequence that are announced: ten seconds on a core
BESIDES = 1.3  # what a step takes beside what it keeps, as measured
MASK_BYTES = 5  # of a key that a query may or may not see: as a truth value and as a number
LARGEST_MASK = 1 << 27  # bytes of it at once in evaluation
PER_PAIR = 64  # numbers that a learned bias may hold for each pair of a query and a key
CPU = torch.device("cpu")
FILLED = 0.5  # share of a device's free memory that an evaluation fills
# Of a chunk of an evaluation on a device: attention kernels number at most 65,535 rows.
MOST_SEQUENCES, MOST_TOKENS = 1 << 15, 1 << 22


@dataclass(frozen=True)
class Example:
    """A kind of example: its share among all, and its expected tokens, last-block queries and
    scored tokens.
    """

    share: float
    tokens: int
    queries: int
    scored: float


@dataclass(frozen=True)
class Need:
    """Bytes and floating-point operations."""

    bytes: float
    flops: float

    def __str__(self) -> str:
        return f"about {gigabytes(self.bytes)} and {self.flops / 1e12:,.1f} TFLOP"


def check_training(recipe: Recipe, device: torch.device = CPU) -> None:
    """Refuse a recipe whose updates cannot be made; say what they take where that is much."""
    need = update_need(recipe)
    longest = max(task.lengths.max_length for task in recipe.tasks)
    what = f"an update with {recipe.batch_size} examples of at most {longest} symbols"
    check_fits(need.bytes, what, free_bytes(device))
    _check_positions(recipe)
    if need.flops > MUCH_WORK:
        _announce(f"{what} takes {need}")


def check_evaluation(
    model: ModelConfig, task: Task, lengths: Sequence[int], device: torch.device = CPU
) -> None:
    """The same for a measurement at these lengths."""
    longest = max(lengths)
    need = sequence_need(model, task, longest, device)
    what = f"a sequence of length {longest}"
    check_fits(need.bytes, what, free_bytes(device))
    if need.flops > MUCH_WORK:
        _announce(f"{what} takes {need}")


def check_answer(
    model: ModelConfig, task: Task, prompt: Sequence[int], device: torch.device = CPU
) -> None:
    """The same for the answer to one prompt, which is decoded token by token."""
    tail = len(task.solve(prompt))
    need = _need(model, task.vocab.size, len(prompt) + tail, tail, device)
    what = f"the answer to {len(prompt)} tokens"
    check_fits(need.bytes, what, free_bytes(device))
    if need.flops > MUCH_WORK:
        _announce(f"{what} takes {need}")


def _announce(text: str) -> None:
    if speaks():
        print(f"taskhint: {text}", file=sys.stderr, flush=True)


def update_need(recipe: Recipe) -> Need:
    """Of the mean update, or of one with the longest example alone if that is more."""
    learned = sum(parameters(recipe).values())
    each = [_task_need(recipe, task) for task in recipe.tasks]
    return Need(
        FLOAT * COPIES * learned + max(need.bytes for need in each),
        max(need.flops for need in each),
    )


def _task_need(recipe: Recipe, task: Task) -> Need:
    kinds, model, vocab = rough_examples(task), recipe.model, task.vocab.size
    floats = [_training_floats(recipe, kind) for kind in kinds]
    work = [(1 + BACKWARD) * forward_flops(model, vocab, kind) for kind in kinds]

    def in_batch(values: Sequence[float]) -> float:
        mean = sum(kind.share * value for kind, value in zip(kinds, values, strict=True))
        return max(recipe.batch_size * mean, values[-1])

    return Need(BESIDES * FLOAT * in_batch(floats), in_batch(work))


def kept_floats(recipe: Recipe, kind: Example) -> float:
    """What one example keeps for the way back: each map's input, what norms and activations saw,
    attention weights.

    Per block: the stream before both norms and their outputs (4 D), queries, keys, values and what
    attention found (4 I), the MLP before and after its activation (2 F). At the end the logits and
    their softmax.
    """
    config = recipe.model
    inner = config.heads * config.each_head
    asking = 2 * config.width + 2 * inner + 2 * config.mlp_width + config.heads * kind.tokens
    seen = 2 * config.width + 2 * inner
    blocks = (
        (config.depth - 1) * kind.tokens * (asking + seen)
        + kind.tokens * seen
        + kind.queries * asking
    )
    return blocks + kind.queries * 2 * config.width + kind.scored * 2 * recipe.task.vocab.size


def parameters(recipe: Recipe) -> dict[str, int]:
    """How many numbers are learned: the matrices inside the blocks, and all others."""
    with torch.device("meta"):
        decoder = Decoder(recipe.model, recipe.task.vocab.size, recipe.tasks)
    counts = {"matrices": 0, "rest": 0}
    for name, value in decoder.named_parameters():
        counts["matrices" if name.startswith("blocks.") and value.dim() == 2 else "rest"] += (
            value.numel()
        )
    return counts


def forward_flops(
    config: ModelConfig, vocab_size: int, kind: Example, padded: bool = False
) -> float:
    """Operations of one example on the way there. Ours takes the first block's maps from a table:
    see symbol_flops.
    """
    inner = config.heads * config.each_head
    seen = 2 * 2 * config.width * inner  # a token's key and value
    asking = (
        2 * 2 * config.width * (inner + config.mlp_width)
    )  # its query and what attention found; MLP up and down
    attention = 2 * 2 * kind.tokens * inner  # its logits with all keys, and the weighted values
    full = kind.tokens * (seen + asking + attention)
    last = kind.tokens * seen + kind.queries * (asking + attention)
    total = (config.depth - 1) * full + last + kind.scored * 2 * config.width * vocab_size
    if padded or not isinstance(config.positions, NoPositions):
        return total
    first_queries = kind.queries if config.depth == 1 else kind.tokens
    return total - kind.tokens * seen - first_queries * 2 * config.width * inner


def _training_floats(recipe: Recipe, kind: Example) -> float:
    """What one example keeps; beyond LONGEST tokens attention keeps no weights, but a mask."""
    if kind.tokens <= LONGEST or not _plain(recipe.model):
        return kept_floats(recipe, kind)
    matrices = kind.tokens * (recipe.model.depth - 1) + kind.queries
    mask = MASK_BYTES / FLOAT * kind.queries * kind.tokens
    return kept_floats(recipe, kind) - recipe.model.heads * kind.tokens * matrices + mask


def sequences_that_fit(model: ModelConfig, task: Task, length: int, device: torch.device) -> int:
    """How many test sequences a device judges at once."""
    need = sequence_need(model, task, length, device).bytes
    tokens = _group(task, length).length
    fitting = int(FILLED * free_bytes(device) // need)
    return max(1, min(fitting, MOST_SEQUENCES, MOST_TOKENS // tokens))


def sequence_need(model: ModelConfig, task: Task, length: int, device: torch.device = CPU) -> Need:
    """Of one test sequence, or one on each thread of the CPU, without gradients."""
    group = _group(task, length)
    return _need(model, task.vocab.size, group.length, group.tail, device)


def _need(model: ModelConfig, vocab: int, tokens: int, tail: int, device: torch.device) -> Need:
    inner = model.heads * model.each_head
    stream = tokens * (4 * model.width + 4 * inner + 2 * model.mlp_width)
    counts = 5 * tokens * vocab  # of symbols seen so far, where a block goes by them
    pairs = 0 if _plain(model) else min(tokens**2, PAIRS_AT_ONCE)
    matrix = (3 * model.heads + PER_PAIR) * pairs
    mask = min(MASK_BYTES * tokens * tail, LARGEST_MASK)
    floats = stream + counts + matrix + 2 * tail * vocab
    kind = Example(1.0, tokens, tail, tail)
    work = forward_flops(model, vocab, kind)
    at_once = torch.get_num_threads() if device.type == "cpu" else 1
    return Need(at_once * (FLOAT * floats + mask), work)


def _plain(model: ModelConfig) -> bool:
    """Whether attention never holds a whole (T, T) matrix of a long example."""
    return type(model.normaliser) is Softmax and not _hooks(model).overrides("bias")


def _hooks(model: ModelConfig) -> PositionHooks:
    """What the position scheme does, with weights of zero."""
    declared = model.positions.weights(model) | model.positions.block_weights(model)
    weights = {name: torch.zeros(weight.shape) for name, weight in declared.items()}
    return model.positions.bind(model, weights)


def rough_examples(task: Task) -> list[Example]:
    """Examples of a task by length, in at most BUCKETS kinds; the last is the longest."""
    shares = sorted(task.lengths.shares().items())
    first, last = _group(task, shares[0][0]), _group(task, shares[-1][0])
    ends = [shares[0][0], shares[-1][0]]
    kinds = []
    size = math.ceil(len(shares) / BUCKETS)
    for start in range(0, len(shares), size):
        some = shares[start : start + size]
        longest = some[-1][0]
        tokens = int(np.interp(longest, ends, [first.length, last.length]))
        tail = int(np.interp(longest, ends, [first.tail, last.tail]))
        kinds.append(Example(sum(share for _, share in some), tokens, tail, tail))
    return kinds


def _group(task: Task, length: int) -> Group:
    """What one example of that length is in a batch."""
    bits = RandomBits(0, TEST_STREAM, np.arange(1))
    return make_batch(task, [task.make(bits, length)]).groups[-1]


def _check_positions(recipe: Recipe) -> None:
    """Let the position scheme see the longest examples, so that it refuses them here if at all."""
    positions, hooks = recipe.model.positions, _hooks(recipe.model)
    if not hooks.overrides("add"):
        return
    for task in recipe.tasks:
        longest = task.lengths.max_length
        rows = np.arange(max(1, 2048 // longest))
        bits = RandomBits(recipe.seed, TEST_STREAM, rows)
        batch = make_batch(task, [task.make(bits, longest)])
        drawn = partial(_drawn, positions, bits, task)
        places = Places.of_batch(batch.with_drawn_ids(drawn), positions, task)
        hooks.add(torch.zeros(len(batch.tokens), recipe.model.width), places)


def _drawn(
    positions: Positions, bits: RandomBits, task: Task, rows: Ints, tokens: Ints
) -> Ints | None:
    return positions.training_ids(bits.fork(rows), tokens, task)
