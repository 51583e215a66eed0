"""A model that the page shows: its task, what it reads for an input, and fresh inputs for it.

Shapes: T tokens that the model reads, n input symbols.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from taskhint.data.dataset import fresh_examples
from taskhint.model.decoder import Decoder
from taskhint.runs.run import Run, load
from taskhint.system.errors import UserError
from taskhint.tasks.inputs import Inputs, Mixture
from taskhint.tasks.task import Task

LONGEST = 500  # input symbols
MOST_TOKENS = 4 * LONGEST
MOST_BYTES = 1 << 27  # of the attention logits and weights of one pass
MOST_MODELS = 16
MOST_WORDS = 4096
DENSE = Mixture(repetition=1.0, pool="any", near=1.0)


@dataclass(frozen=True)
class Reading:
    """What a model reads for one input: the prompt and the right answer, but for its last token.

    Position i predicts token i + 1. `asked` are the positions whose next token the model must
    find.
    """

    tokens: tuple[int, ...]  # (T + 1,) with the last token of the answer
    inputs: int  # symbols before ⊥
    asked: tuple[bool, ...]  # (T,)

    @property
    def read(self) -> tuple[int, ...]:
        return self.tokens[:-1]


@dataclass(frozen=True)
class Subject:
    """One of the page's models. `name` tells it from the others."""

    name: str
    run: Run

    @property
    def task(self) -> Task:
        return self.run.task

    @property
    def decoder(self) -> Decoder:
        return self.run.model

    def sequence(self, symbols: Sequence[str | int]) -> Reading:
        """Prompt and right answer for an input that a person wrote."""
        if len(symbols) > LONGEST:
            raise UserError(f"{len(symbols)} symbols are too many; at most {LONGEST}")
        prompt = self.task.prompt(self.task.vocab.parse(symbols))
        answer = self.task.solve(prompt)
        tokens = (*prompt, *answer)
        self._check_size(len(tokens) - 1)
        given = {self.task.vocab.mark(name) for name in self.task.given}
        asked = tuple(
            i + 1 >= len(prompt) and tokens[i + 1] not in given for i in range(len(tokens) - 1)
        )
        return Reading(tokens, prompt.index(self.task.vocab.delimiter), asked)

    def random(self, length: int, distribution: str, number: int) -> list[str]:
        """The symbols of one fresh test input, as a person writes them."""
        if not 1 <= length <= LONGEST:
            raise UserError(f"length {length} is not in 1..{LONGEST}")
        if not 0 <= number < 1 << 20:
            raise UserError(f"number {number} is not in 0..{(1 << 20) - 1}")
        task = self._drawing(distribution)
        examples = fresh_examples(task, self.run.recipe.seed, length, number, 1)
        prompt = examples.tokens[0, : examples.prompts[0]].tolist()
        words = self.written(prompt)
        if task.prompt(task.vocab.parse(words)) != prompt:
            raise UserError(f"prompts of task {task.kind!r} are more than what a person writes")
        return words

    def written(self, prompt: Sequence[int]) -> list[str]:
        """The part of a prompt that a person writes."""
        vocab = self.task.vocab
        marks = {vocab.mark(name) for name in vocab.written}
        return vocab.words([token for token in prompt if token < vocab.symbols or token in marks])

    def check_tokens(self, tokens: Sequence[int]) -> None:
        """Refuse ids that the model has no rows for, and more of them than it may read here."""
        self._check_size(len(tokens))
        if max(tokens) >= self.task.vocab.size:
            raise UserError(f"token {max(tokens)} is not in 0..{self.task.vocab.size - 1}")

    @property
    def distributions(self) -> tuple[str, ...]:
        dense = ("dense",) if self._inputs is not None else ()
        return tuple(dict.fromkeys((*self.task.distributions, *dense)))

    def _drawing(self, distribution: str) -> Task:
        if distribution == "dense" and self._inputs is not None:
            changed: dict[str, Any] = {"inputs": DENSE}
            return replace(self.task, **changed)
        return self.task.for_test(distribution)

    @property
    def _inputs(self) -> Inputs | None:
        drawn = getattr(self.task, "inputs", None)
        named = any(field.name == "inputs" for field in fields(self.task))
        return drawn if named and isinstance(drawn, Inputs) else None

    def _check_size(self, tokens: int) -> None:
        config = self.decoder.config
        each = 2 * config.depth * config.heads * self.decoder.embedding.weight.element_size()
        most = min(MOST_TOKENS, int((MOST_BYTES / each) ** 0.5))
        if tokens > most:
            raise UserError(
                f"{tokens} tokens are too many for a model of {config.depth} blocks with "
                f"{config.heads} heads; at most {most}"
            )


def subjects(
    paths: Sequence[str | os.PathLike[str]],
    device: str | None = None,
    precision: str | None = None,
) -> list[Subject]:
    """The runs in these directories, loaded, with names that differ."""
    if len(paths) > MOST_MODELS:
        raise UserError(f"{len(paths)} runs are too many; at most {MOST_MODELS}")
    found: list[Subject] = []
    for path in paths:
        run = load(path, device, precision)
        name = run.path.resolve().name
        taken = {subject.name for subject in found}
        if name in taken:
            name = next(f"{name} ({i})" for i in range(2, 99) if f"{name} ({i})" not in taken)
        if run.task.vocab.size > MOST_WORDS:
            raise UserError(
                f"{path} has a vocabulary of {run.task.vocab.size}; the page shows at most "
                f"{MOST_WORDS}"
            )
        _ = run.model  # read now: a damaged run is said before the page opens
        found.append(Subject(name, run))
    return found
