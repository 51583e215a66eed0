"""Everything that decides a run, typed and frozen."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

from taskhint.model.config import ModelConfig
from taskhint.recipes.curriculum import Alternate, Curriculum, Update
from taskhint.recipes.optimisers import Optimiser
from taskhint.system.dotted import change, setting_keys
from taskhint.system.errors import UserError, nearest
from taskhint.system.settings import ADDED, Settings, conform, to_json
from taskhint.tasks.random_bits import FIRST_TASK_STREAM, MAX_INDEX, POSITION_STREAM
from taskhint.tasks.task import Task

Scale = Literal["pocket", "desk", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
MAX_HINTS = POSITION_STREAM - FIRST_TASK_STREAM - 1
STORAGE_KEYS = frozenset({"checkpoint_every", "keep_checkpoints", "origin.path"})

# Other people's words for our keys, and our own earlier ones.
OTHER_WORDS = {
    "lr": "learning_rate",
    "wd": "optimiser.weight_decay",
    "weight_decay": "optimiser.weight_decay",
    "momentum": "optimiser.momentum",
    "optimizer": "optimiser",
    "epochs": "steps",
    "updates": "steps",
    "iterations": "steps",
    "warmup": "warmup_steps",
    "batch": "batch_size",
    "bs": "batch_size",
    "d_model": "model.width",
    "hidden_size": "model.width",
    "n_layers": "model.depth",
    "layers": "model.depth",
    "n_heads": "model.heads",
    "d_ff": "model.mlp_width",
    "vocab_size": "task.symbols",
    "model.unit_keys": "model.qk_norm",
    "model.initial_beta": "model.temperature.initial_beta",
    "model.max_positions": "model.positions.max_positions",
}


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UserError(f"{name}={value} is not in {low}..{high}")


def _check_hint(hint: Task, main: Task) -> None:
    # A task that derives from another one may have that one's hints.
    own = {getattr(cls, "kind", "") for cls in type(main).__mro__}
    if hint.hint_for and hint.hint_for not in own:
        raise UserError(
            f"hint {hint.kind!r} is of task {hint.hint_for!r}, as its hint_for says, and the task "
            f"is {main.kind!r}; {nearest(hint.hint_for, [main.kind])}"
        )
    if hint.vocab != main.vocab:
        symbols = getattr(main, "symbols", None)
        change = f"; --set hints.{hint.kind}.task.symbols={symbols} changes the hint's"
        raise UserError(
            f"hint {hint.kind!r} has another vocabulary than task {main.kind!r}"
            + (change if symbols and hasattr(hint, "symbols") else "")
        )


@dataclass(frozen=True)
class Hint(Settings):
    """An auxiliary task beside the main one: its own head, and `updates` updates in every cycle of
    updates.

    `weight` multiplies its loss. The optimisers step along a running mean of the gradients of all
    tasks, by a size that does not depend on theirs: a hint of little weight leaves the direction
    to the main task.
    """

    label: ClassVar[str] = "hint"

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
class Origin(Settings):
    """The checkpoint of another run that a run starts from: its step, and what proves it the same.

    `recipe` is the fingerprint of the other run's recipe, `weights` the SHA-256 of its weights'
    file. Where the other run stands decides nothing.
    """

    label: ClassVar[str] = "origin"

    path: str
    step: int
    recipe: str
    weights: str


@dataclass(frozen=True)
class Recipe(Settings):
    """A run in full.

    The curriculum says of which task each update is: by default tasks take turns, `main_updates`
    of the main task in every cycle and each hint's own number. `steps` counts all of them. The
    dataset is split equally among the tasks, and is visited again and again if it is small.
    `checkpoint_every` and `keep_checkpoints` change no weight: a run can go on with other values
    of them. With an `origin`, the updates before its step were made by another run.
    """

    name: str
    scale: Scale
    task: Task
    model: ModelConfig
    optimiser: Optimiser
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
    curriculum: Curriculum = field(default=Alternate(), metadata=ADDED)
    origin: Origin | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise UserError("name is empty; allowed: any text")
        for name in ("batch_size", "steps", "checkpoint_every", "log_every"):
            _check(name, getattr(self, name), 1, 10**12)
        for name in ("main_updates", "keep_checkpoints"):
            _check(name, getattr(self, name), 1, 1000)
        _check("warmup_steps", self.warmup_steps, 0, self.steps)
        _check("dataset_size", self.dataset_size, 1 + len(self.hints), MAX_INDEX)
        _check("seed", self.seed, 0, 2**31 - 1)
        if not 0.0 < self.learning_rate < math.inf:
            raise UserError(f"learning_rate={self.learning_rate} is not a positive number")
        if len(self.hints) > MAX_HINTS or len({task.kind for task in self.tasks}) != len(
            self.tasks
        ):
            raise UserError(
                f"the tasks of a recipe must be different, and its hints at most {MAX_HINTS}"
            )
        for hint in self.hints:
            _check_hint(hint.task, self.task)
        for task in self.tasks:
            self.model.positions.check_task(task)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The main task, then the hints."""
        return (self.task, *(hint.task for hint in self.hints))

    def update(self, step: int) -> tuple[int, Update]:
        """What update `step` (from 0) trains on, and the place of its task in `tasks`."""
        update = self.curriculum.update(self, step)
        kinds = [task.kind for task in self.tasks]
        if update.task not in kinds:
            raise UserError(
                f"the curriculum asks for task {update.task!r} in update {step}; the recipe has "
                f"{kinds}"
            )
        place = kinds.index(update.task)
        if update.lengths is not None:
            self._check_longest(self.tasks[place].lengths.max_length, update.lengths.max_length)
        return place, update

    def _check_longest(self, own: int, asked: int) -> None:
        """A curriculum that asks for longer inputs than its task has must say so."""
        if asked > max(own, self.curriculum.beyond(self) or 0):
            raise UserError(
                f"curriculum {self.curriculum.kind!r} trains on inputs of length {asked}, beyond "
                f"the {own} of the task; it must say so in its `beyond`"
            )

    @property
    def beyond(self) -> int | None:
        """The longest length in training beyond the main task's own, where a curriculum or a hint
        has longer ones.
        """
        own = self.task.lengths.max_length
        hints = max((hint.task.lengths.max_length for hint in self.hints), default=0)
        longest = max(self.curriculum.beyond(self) or 0, hints)
        return longest if longest > own else None

    def loss_weight(self, place: int, update: Update) -> float:
        return update.weight * (self.hints[place - 1].weight if place else 1.0)

    def main_share(self) -> float:
        """Which part of the updates is the main task's: of the first whole period of the
        curriculum.
        """
        period = self.curriculum.period(self)
        return (
            sum(
                self.curriculum.update(self, step).task == self.task.kind for step in range(period)
            )
            / period
        )

    def to_json(self) -> Any:
        return to_json(self)

    @classmethod
    def from_json(cls, data: Any, where: str = "recipe") -> Recipe:
        recipe: Recipe = conform(cls, data, where)
        return recipe

    def with_settings(self, settings: Iterable[str]) -> Recipe:
        """A copy with `KEY=VALUE` settings, as `--set` gives them. They are checked when all of
        them are applied.
        """
        pairs = []
        for setting in settings:
            key, equals, text = setting.partition("=")
            if not equals:
                raise UserError(f"--set {setting} is not of the form KEY=VALUE")
            pairs.append((key, text))
        try:
            recipe: Recipe = change(self, pairs)
        except KeyError as error:
            raise UserError(self._unknown_key(str(error.args[0]))) from None
        return recipe

    def _unknown_key(self, key: str) -> str:
        if key in OTHER_WORDS:
            return f"unknown key {key!r}; did you mean {OTHER_WORDS[key]!r}?"
        keys = setting_keys(self)
        ending = [known for known in keys if known.endswith(f".{key}")]
        return f"unknown key {key!r}; " + (
            f"did you mean {ending[0]!r}?" if ending else nearest(key, keys)
        )

    def with_steps(self, steps: int) -> Recipe:
        """A copy that trains for `steps` updates, with the same share of them as warm-up."""
        steps = conform(int, steps, "steps")
        return replace(self, steps=steps, warmup_steps=self.warmup_steps * steps // self.steps)

    def change(self, **changes: Any) -> Recipe:
        """A copy with some fields replaced: those of the recipe, or those of its model.

        `recipe.change(seed=3, positions=Mirror(), depth=3)`. Other `steps` keep the share of the
        warm-up.
        """
        own, of_model = {f.name for f in fields(self)}, {f.name for f in fields(self.model)}
        for name in changes:
            if name not in own | of_model:
                meant = OTHER_WORDS.get(name, name).removeprefix("model.")
                near = nearest(meant, sorted(own | of_model))
                raise UserError(f"a recipe has no setting {name!r}; {near}")
        inner = {name: value for name, value in changes.items() if name not in own}
        outer = {name: value for name, value in changes.items() if name in own}
        recipe = self
        if "steps" in outer and "warmup_steps" not in outer:
            recipe = recipe.with_steps(outer.pop("steps"))
        if inner:
            outer["model"] = replace(outer.get("model", recipe.model), **inner)
        return replace(recipe, **outer)

    def setting(self, key: str) -> str:
        """What a recipe says at a dotted key, as text; empty if it has no such key."""
        return self._texts.get(key, "").strip('"')

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Every setting as JSON writes it, by its dotted key."""
        return _flat(to_json(self))

    def differences(self, other: Recipe) -> list[str]:
        """The dotted keys in which two recipes differ, of those that decide the weights."""
        mine, theirs = self._texts, other._texts
        different = {
            key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)
        }
        return sorted(different - STORAGE_KEYS)

    def fingerprint(self) -> str:
        """SHA-256 of everything that decides the weights."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        flat = _flat(_as_first_written(to_json(self, added=False)))
        deciding = {key: text for key, text in flat.items() if key not in STORAGE_KEYS}
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def differing_keys(recipes: Iterable[Recipe]) -> list[str]:
    """The dotted keys in which recipes differ from one another, of those that decide the
    weights.
    """
    texts: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    total = 0
    for recipe in recipes:
        total += 1
        for key, text in recipe._texts.items():
            texts.setdefault(key, set()).add(text)
            counts[key] = counts.get(key, 0) + 1
    different = {key for key, found in texts.items() if len(found) > 1 or counts[key] < total}
    return sorted(different - STORAGE_KEYS)


def _as_first_written(data: Any) -> Any:
    """As version 0.1 wrote it: what it could say keeps the fingerprint that it had."""
    model = dict(data["model"])
    model["unit_keys"] = model.pop("qk_norm")
    positions, temperature = dict(model["positions"]), dict(model["temperature"])
    model["max_positions"] = positions.pop("max_positions", 512)
    model["initial_beta"] = temperature.pop("initial_beta", 0.4)
    for name, parts in (("positions", positions), ("temperature", temperature)):
        model[name] = parts["kind"] if len(parts) == 1 else parts
    return {**data, "model": model}


def _flat(data: Any, prefix: str = "") -> dict[str, str]:
    if isinstance(data, dict):
        items: Iterable[tuple[str, Any]] = data.items()
    elif isinstance(data, list):
        items = ((str(i), item) for i, item in enumerate(data))
    else:
        return {prefix: json.dumps(data)}
    return {
        key: text
        for name, item in items
        for key, text in _flat(item, f"{prefix}.{name}".strip(".")).items()
    }
