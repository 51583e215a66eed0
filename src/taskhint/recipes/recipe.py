"""Everything that decides a run, typed and frozen."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

from taskhint.model.config import ModelConfig
from taskhint.system.errors import UserError, nearest
from taskhint.system.serialise import ADDED, from_json, setting_keys, to_json, with_setting
from taskhint.tasks.random_bits import FIRST_TASK_STREAM, MAX_INDEX, STREAMS
from taskhint.tasks.task import Task

Scale = Literal["pocket", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
MAX_HINTS = STREAMS - FIRST_TASK_STREAM - 1
STORAGE_KEYS = frozenset({"checkpoint_every", "keep_checkpoints"})


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UserError(f"{name}={value} is not in {low}..{high}")


@dataclass(frozen=True)
class Adam:
    """Adam for every weight, with decoupled weight decay on the matrices."""

    kind: ClassVar[str] = "adam"

    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check("optimiser.beta1", self.beta1, 0.0, 1.0)
        _check("optimiser.beta2", self.beta2, 0.0, 1.0)
        _check("optimiser.weight_decay", self.weight_decay, 0.0, math.inf)


@dataclass(frozen=True)
class Muon:
    """Orthogonalised momentum for the matrices inside the blocks; Adam at `rest_rate` for all other weights.

    The recipe's learning rate is that of the matrices. Weight decay is decoupled and touches the matrices only.
    """

    kind: ClassVar[str] = "muon"

    momentum: float = 0.9
    rest_rate: float = 0.01
    weight_decay: float = 0.1

    def __post_init__(self) -> None:
        _check("optimiser.momentum", self.momentum, 0.0, 1.0)
        _check("optimiser.rest_rate", self.rest_rate, 0.0, math.inf)
        _check("optimiser.weight_decay", self.weight_decay, 0.0, math.inf)


@dataclass(frozen=True)
class Hint:
    """An auxiliary task beside the main one: its own head, and `updates` updates in every cycle of updates.

    `weight` multiplies its loss. The optimisers step along a running mean of the gradients of all tasks, by a size that
    does not depend on theirs: a hint of little weight leaves the direction to the main task.
    """

    task: Task
    updates: int = 1
    weight: float = field(default=1.0, metadata=ADDED)

    def __post_init__(self) -> None:
        _check(f"hints.{self.kind}.updates", self.updates, 1, 1000)
        _check(f"hints.{self.kind}.weight", self.weight, 0.0, 1000.0)

    @property
    def kind(self) -> str:
        return self.task.kind


@dataclass(frozen=True)
class Recipe:
    """A run in full.

    Updates alternate: in every cycle the main task has `main_updates` turns and each hint its own number. `steps`
    counts all of them. The dataset is split equally among the tasks, and is visited again and again if it is small.
    `checkpoint_every` and `keep_checkpoints` change no weight: a run can go on with other values of them.
    """

    name: str
    scale: Scale
    task: Task
    model: ModelConfig
    optimiser: Adam | Muon
    learning_rate: float
    batch_size: int
    steps: int
    warmup_steps: int
    dataset_size: int
    hints: tuple[Hint, ...] = ()
    main_updates: int = 1
    checkpoint_every: int = 1000
    keep_checkpoints: int = 2
    log_every: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch_size", "steps", "checkpoint_every", "log_every"):
            _check(name, getattr(self, name), 1, 10**12)
        for name in ("main_updates", "keep_checkpoints"):
            _check(name, getattr(self, name), 1, 1000)
        _check("warmup_steps", self.warmup_steps, 0, self.steps)
        _check("dataset_size", self.dataset_size, 1 + len(self.hints), MAX_INDEX)
        _check("seed", self.seed, 0, 2**31 - 1)
        if not 0.0 < self.learning_rate < math.inf:
            raise UserError(f"learning_rate={self.learning_rate} is not a positive number")
        if len(self.hints) > MAX_HINTS or len({task.kind for task in self.tasks}) != len(self.tasks):
            raise UserError(f"the tasks of a recipe must be different, and its hints at most {MAX_HINTS}")
        for hint in self.hints:
            if hint.task.vocab != self.task.vocab:
                raise UserError(f"hint {hint.kind!r} has another vocabulary than task {self.task.kind!r}")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The main task, then the hints."""
        return (self.task, *(hint.task for hint in self.hints))

    @property
    def loss_weights(self) -> tuple[float, ...]:
        """Of the tasks, in their order."""
        return (1.0, *(hint.weight for hint in self.hints))

    @property
    def cycle(self) -> tuple[int, ...]:
        """Whose turn it is in each update of a cycle, as places in `tasks`; turns of one task are spread evenly."""
        shares = [self.main_updates, *(hint.updates for hint in self.hints)]
        turns = [((turn + 0.5) / share, place) for place, share in enumerate(shares) for turn in range(share)]
        return tuple(place for _, place in sorted(turns))

    def turn(self, step: int) -> tuple[int, int]:
        """Update `step` (from 0): the place of its task in `tasks`, and how many updates that task had before."""
        cycle = self.cycle
        whole, rest = divmod(step, len(cycle))
        place = cycle[rest]
        return place, whole * cycle.count(place) + cycle[:rest].count(place)

    def to_json(self) -> Any:
        return to_json(self)

    @classmethod
    def from_json(cls, data: Any, where: str = "recipe") -> Recipe:
        recipe = from_json(cls, data, where)
        assert isinstance(recipe, Recipe)
        return recipe

    def with_settings(self, settings: Iterable[str]) -> Recipe:
        """A copy with `KEY=VALUE` settings applied, as `--set` gives them."""
        recipe = self
        for setting in settings:
            key, equals, text = setting.partition("=")
            if not equals:
                raise UserError(f"--set {setting} is not of the form KEY=VALUE")
            try:
                recipe = with_setting(recipe, key, text)
            except KeyError:
                raise UserError(f"unknown key {key!r}; {nearest(key, setting_keys(recipe))}") from None
        return recipe

    def with_steps(self, steps: int) -> Recipe:
        """A copy that trains for `steps` updates, with the same share of them as warm-up."""
        return replace(self, steps=steps, warmup_steps=self.warmup_steps * steps // self.steps)

    def with_overrides(self, **overrides: Any) -> Recipe:
        """A copy with some fields replaced."""
        return replace(self, **overrides)

    def setting(self, key: str) -> str:
        """What a recipe says at a dotted key, as text; empty if it has no such key."""
        return _flat(to_json(self)).get(key, "").strip('"')

    def differences(self, other: Recipe) -> list[str]:
        """The dotted keys in which two recipes differ, of those that decide the weights."""
        mine, theirs = _flat(to_json(self)), _flat(to_json(other))
        different = {key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)}
        return sorted(different - STORAGE_KEYS)

    def fingerprint(self) -> str:
        """SHA-256 of everything that decides the weights."""
        deciding = {key: text for key, text in _flat(to_json(self, added=False)).items() if key not in STORAGE_KEYS}
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def _flat(data: Any, prefix: str = "") -> dict[str, str]:
    if isinstance(data, dict):
        items: Iterable[tuple[str, Any]] = data.items()
    elif isinstance(data, list):
        items = ((str(i), item) for i, item in enumerate(data))
    else:
        return {prefix: json.dumps(data)}
    return {key: text for name, item in items for key, text in _flat(item, f"{prefix}.{name}".strip(".")).items()}
