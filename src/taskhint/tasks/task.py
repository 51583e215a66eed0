"""What a task is: random bits and a length in, prompts and answers out.

Shapes: B examples, T tokens (prompt and answer together), n input symbols.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from taskhint.system.errors import UserError
from taskhint.system.settings import Family, setting
from taskhint.tasks.inputs import UNIFORM, Inputs, inputs_for_test
from taskhint.tasks.lengths import Lengths, Skewed
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.theory import Theory
from taskhint.tasks.vocab import DELIMITER, NONE, PAD, Vocab

Flags = npt.NDArray[np.bool_]
MAX_SYMBOLS = 1 << 20


class WrongTaskError(UserError):
    """A task that breaks its promises."""


@dataclass(frozen=True)
class Examples:
    """Examples of one task. Row b is prompt, then answer, then PAD from `sizes[b]` on (where sizes
    differ).

    `inputs` counts the symbols before ⊥: the n of "input length".
    """

    tokens: Ints  # (B, T)
    prompts: Ints  # (B,) tokens in the prompt
    sizes: Ints  # (B,) tokens in prompt and answer together
    inputs: Ints  # (B,)

    @classmethod
    def equal(cls, prompt: Ints, answer: Ints, inputs: int) -> Examples:
        """Examples whose prompts are all of one length, and so are their answers."""
        _check_equally_many(len(prompt), len(answer))
        tokens = np.concatenate([prompt, answer], axis=1)
        each = np.repeat(
            np.array([[prompt.shape[1]], [tokens.shape[1]], [inputs]]), len(prompt), axis=1
        )
        return cls(tokens, *each)

    @classmethod
    def ragged(
        cls,
        prompts: Sequence[Sequence[int]],
        answers: Sequence[Sequence[int]],
        pad: int,
        inputs: int,
    ) -> Self:
        """Examples from lists of any lengths, filled up with `pad`."""
        _check_equally_many(len(prompts), len(answers))
        rows = [[*prompt, *answer] for prompt, answer in zip(prompts, answers, strict=True)]
        tokens = np.full((len(rows), max(map(len, rows), default=0)), pad, dtype=np.int64)
        for row, filled in zip(rows, tokens, strict=True):
            filled[: len(row)] = row
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        each = np.array([len(prompt) for prompt in prompts], dtype=np.int64)
        return cls(tokens, each, sizes, np.full(len(rows), inputs))

    def __len__(self) -> int:
        return len(self.tokens)


def _check_equally_many(prompts: int, answers: int) -> None:
    if prompts != answers:
        raise WrongTaskError(f"{prompts} prompts need {prompts} answers, got {answers}")


@dataclass(frozen=True)
class Step:
    """One step of an answer, as probes ask a task about it: the input, the right answer, the
    number of the step from 0 on, and what was predicted.
    """

    inputs: list[int]
    answer: list[int]
    number: int
    predicted: int

    @property
    def right(self) -> int:
        return self.answer[self.number]

    @property
    def before(self) -> int | None:
        """The right token of the step before; None at the first."""
        return self.answer[self.number - 1] if self.number else None

    @property
    def after(self) -> int | None:
        """The right token of the step after; None at the last."""
        return self.answer[self.number + 1] if self.number + 1 < len(self.answer) else None


@dataclass(frozen=True)
class Task(Family):
    """A task is a frozen dataclass: its fields decide which examples it makes, and stand in the
    recipe.

    `kind` is its name in files, on the command line and on its head of the model. `hint_for` makes
    it a hint: the kind of the main task that it helps. `given` are marks in the answer that are
    handed to the model instead of being asked. `length_is` says what its length counts, `theory`
    whether answers should carry over to longer inputs.
    """

    family: ClassVar[str] = "task"
    needs_kind: ClassVar[bool] = True
    about: ClassVar[str] = ""
    hint_for: ClassVar[str] = ""
    given: ClassVar[tuple[str, ...]] = ()
    length_is: ClassVar[str] = "input symbols"
    theory: ClassVar[Theory | None] = None

    # What probes ask of a task: here and in the last methods. The defaults fit any task.
    step_kinds: ClassVar[tuple[str, ...]] = ("first", "later")
    error_kinds: ClassVar[tuple[str, ...]] = (
        "repeated the last one",
        "skipped one",
        "another input symbol",
        "not in the input",
    )
    usual_multiples: ClassVar[tuple[float, ...]] = (0.25, 0.5, 1, 1.5, 2.5, 3.5, 5)

    lengths: Lengths

    @property
    @abstractmethod
    def vocab(self) -> Vocab: ...

    @abstractmethod
    def make(self, bits: RandomBits, length: int) -> Examples:
        """One example per row of `bits`, all with inputs of this length; the same bits always give
        the same example.
        """

    @abstractmethod
    def solve(self, prompt: Sequence[int]) -> list[int]:
        """The right answer to one prompt, in plain Python: slow, obvious, and used to check
        `make`.
        """

    @abstractmethod
    def worked_example(self) -> list[int]:
        """A prompt that shows what the task asks."""

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        """The prompt for an input that a person gave."""
        if not symbols:
            raise UserError("the input is empty; give at least one symbol")
        return [*symbols, self.vocab.delimiter]

    @property
    def distributions(self) -> tuple[str, ...]:
        """The test distributions that `for_test` knows; the first one is the usual."""
        return ("uniform", "rep:R", "distinct") if self._has_inputs else ("uniform",)

    def for_test(self, distribution: str) -> Self:
        """The same task drawing its inputs from a test distribution.

        A task with a field `inputs` has all distributions of inputs; any other one is tested as it
        is trained.
        """
        inputs = inputs_for_test(distribution)
        if inputs is not None and self._has_inputs:
            changed: dict[str, Any] = {"inputs": inputs}
            return replace(self, **changed)
        if distribution == "uniform":
            return self
        allowed = ", ".join(self.distributions)
        raise UserError(
            f"{self.kind} has no test distribution {distribution!r}; allowed: {allowed}"
        )

    @property
    def _has_inputs(self) -> bool:
        return any(
            field.name == "inputs" and isinstance(getattr(self, "inputs", None), Inputs)
            for field in fields(self)
        )

    def coupled(self, tokens: Ints) -> Ints:  # noqa: ARG002
        """(B, T) tokens -> (B, T) which of them belong together, for `positions=coupling`.

        Tokens that belong together have the same number, 0, 1, 2, ...; in training a random one is
        added to all of a row. A row is a whole prompt and as much of an answer as there is; -1
        stands for a token that is still to come. So a number may depend on the prompt and on the
        index, not on the answer.
        """
        raise UserError(f"task {self.kind!r} does not say which tokens belong together")

    def scored(self, examples: Examples) -> Flags:
        """(B, T) true where the token must be predicted."""
        place = np.arange(examples.tokens.shape[1])
        answer = (place >= examples.prompts[:, None]) & (place < examples.sizes[:, None])
        if self.given:
            answer &= ~np.isin(examples.tokens, [self.vocab.mark(name) for name in self.given])
        return answer

    @property
    def usual_lengths(self) -> tuple[int, ...]:
        """Lengths worth probing: multiples of the longest that training sees."""
        shortest, longest = min(self.lengths.shares()), self.lengths.max_length
        return tuple(
            sorted({max(shortest, round(times * longest)) for times in self.usual_multiples})
        )

    def usual_prompt(self) -> list[int]:
        """The prompt that is looked at token by token if a person gives none."""
        return self.worked_example()

    def step_kind(self, step: Step) -> str:
        """Which of `step_kinds` a step of an answer is."""
        return "later" if step.number else "first"

    def error_kind(self, step: Step) -> str:
        """Which of `error_kinds` a step is whose prediction is wrong."""
        if step.predicted == step.before:
            return "repeated the last one"
        if step.predicted == step.after:
            return "skipped one"
        return "another input symbol" if step.predicted in step.inputs else "not in the input"

    def key_kinds(self, sequences: Ints, inputs: int) -> dict[str, Flags]:
        """Which tokens matter for an answer: (B, A, T) flags by the name of what they mark.

        `sequences` are (B, T + 1) prompts and answers with ⊥ at place `inputs`. The A queries are
        the places after ⊥ without the last one, from which nothing follows; the T keys are all
        places but the last one. No key may be of two kinds.
        """
        keys, queries = sequences[:, None, :-1], sequences[:, inputs + 1 : -1, None]
        same = keys == queries
        wanted = (keys == sequences[:, inputs + 2 :, None]) & ~same
        ends = np.broadcast_to(keys == self.vocab.delimiter, same.shape)
        return {"same symbol": same & ~ends, "symbol needed next": wanted & ~ends, "⊥": ends}

    def chosen_places(self, sequence: Sequence[int], inputs: int) -> dict[str, int]:
        """Places to look at in one prompt with its answer: "input", and "answer" if there is one.

        An answer place is one from which something follows.
        """
        answers = range(inputs + 1, len(sequence) - 1)
        copies = [place for place in answers if sequence[place] == sequence[inputs // 2]]
        after = copies[-1:] or list(answers)[len(answers) // 2 :][:1]
        return {"input": inputs // 2, **({"answer": after[0]} if after else {})}

    def roles(self, sequence: Sequence[int], inputs: int, place: int) -> dict[str, int]:
        """The symbols that matter at a place of one prompt with its answer, by their role."""
        roles = {"token": sequence[place]} if place != inputs else {}
        return roles if place < inputs else {**roles, "right next": sequence[place + 1]}


def hints_for(main: str) -> dict[str, type[Task]]:
    """The hints that name a main task, by kind, in the order in which they take their turns."""
    return {kind: task for kind, task in Task.kinds().items() if task.hint_for == main}


def solved(task: Task, prompt: Sequence[int]) -> list[int]:
    """What a task's `solve` answers, if that is a list of whole numbers."""
    answer = task.solve(prompt)
    try:
        return [operator.index(token) for token in answer]
    except TypeError:
        raise WrongTaskError(_no_answer(task, prompt, answer)) from None


def _no_answer(task: Task, prompt: Sequence[int], answer: Any) -> str:
    tokens = answer if isinstance(answer, (list, tuple, str)) else [answer]
    wrong = {"None" if token is None else type(token).__name__ for token in tokens} - {"int"}
    shown = " ".join(task.vocab.words(prompt))
    return (
        f"{task.kind}: solve must give token ids (ints) in a list, got "
        f"{' and '.join(sorted(wrong)) or 'int'} for the prompt {shown}"
    )


def delimited(task: Task, inputs: Ints) -> Ints:
    """(B, n + 1) inputs with ⊥ behind them."""
    return np.concatenate([inputs, np.full((len(inputs), 1), task.vocab.delimiter)], axis=1)


def steps_from_delimiter(task: Task, tokens: Ints) -> Ints:
    """(B, T) how far each token stands behind ⊥; negative before it."""
    delimiter = (tokens == task.vocab.delimiter).argmax(axis=1)
    return np.arange(tokens.shape[1]) - delimiter[:, None]


paper_lengths = partial(Skewed, shortest=2, short=5, longest=20)


@dataclass(frozen=True)
class SymbolTask(Task):
    """A task on the symbols 1..q with ⊥, PAD and NONE, in the paper's lengths of 2 to 20.

    A subclass needs `solve` alone: `make` then draws inputs (from its field `inputs` if it has
    one) and solves each. A `make` of its own over whole arrays is faster.
    """

    lengths: Lengths = field(default_factory=paper_lengths)
    symbols: int = setting(100, at_least=2, at_most=MAX_SYMBOLS)

    @cached_property
    def vocab(self) -> Vocab:
        return Vocab(first_symbol=1, symbols=self.symbols, marks=(DELIMITER, PAD, NONE))

    def make(self, bits: RandomBits, length: int) -> Examples:
        drawn: Inputs = getattr(self, "inputs", UNIFORM)
        prompts = [self.prompt(row) for row in drawn.draw(bits, self.symbols, length).tolist()]
        return Examples.ragged(
            prompts, [solved(self, prompt) for prompt in prompts], self.vocab.pad, length
        )

    def worked_example(self) -> list[int]:
        shown = self.vocab.first_symbol <= 5 and self.vocab.last_symbol >= 43
        return self.prompt(self.vocab.parse([5, 17, 43, 17]) if shown else [1, 0, 1])
