"""The position schemes, two of them also with SSMax, that are the columns of the field's table.

A scheme with a table of learned positions, or with a range to draw from, has room for the longest
test input and no more: training then reaches every position that a test needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskhint.model.positions import (
    Abacus,
    Alibi,
    Coupling,
    Fire,
    Learned,
    LearnedOffset,
    Nape,
    NoPositions,
    Positions,
    Randomised,
    Rope,
    T5Buckets,
    Windows,
)
from taskhint.model.softmax import Constant, SSMax, Temperature
from taskhint.tasks.random_bits import TEST_STREAM, RandomBits
from taskhint.tasks.task import Task

BESIDES = 2  # places of a number that a longest input has besides its own: ⊥ and the last carry


@dataclass(frozen=True)
class Scheme:
    """A column: positions, and how attention logits scale.

    `build` gets the task and the longest length of a test; `changes` are other settings of the
    task that the scheme needs.
    """

    name: str
    label: str
    build: Callable[[Task, int], Positions]
    temperature: Temperature = Constant()
    changes: tuple[tuple[str, Any], ...] = ()


def tokens(task: Task, length: int) -> int:
    """In an example of that length, prompt and answer together."""
    made = task.make(RandomBits(0, TEST_STREAM, np.arange(1)), length)
    return int(made.sizes.max())


def _offset(task: Task, longest: int) -> Positions:
    return LearnedOffset(tokens(task, longest))


def _randomised(task: Task, longest: int) -> Positions:
    return Randomised(Rope(), tokens(task, longest))


def _abacus(_: Task, longest: int) -> Positions:
    return Abacus(2 * longest + BESIDES, longest)


def _coupling(_: Task, longest: int) -> Positions:
    return Coupling(Learned(longest + BESIDES + 1), longest + BESIDES)


def _windows(_: Task, longest: int) -> Positions:
    return Coupling(Windows(), longest + BESIDES)


def _fixed(positions: Positions) -> Callable[[Task, int], Positions]:
    return lambda _task, _longest: positions


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("none", "no positions", _fixed(NoPositions())),
        Scheme("none-ssmax", "no positions, SSMax", _fixed(NoPositions()), SSMax()),
        Scheme("offset", "learned, random offset", _offset),
        Scheme("offset-ssmax", "learned, random offset, SSMax", _offset, SSMax()),
        Scheme("rope", "RoPE", _fixed(Rope())),
        Scheme("randomised", "RoPE, randomised", _randomised),
        Scheme("alibi", "ALiBi", _fixed(Alibi())),
        Scheme("nape", "NAPE", _fixed(Nape())),
        Scheme("t5", "T5 buckets", _fixed(T5Buckets())),
        Scheme("fire", "FIRE", _fixed(Fire())),
        Scheme("abacus", "Abacus", _abacus, changes=(("operands", "reversed"),)),
        Scheme("coupling", "coupling, learned", _coupling),
        Scheme("windows", "coupling, windows", _windows),
    )
}
