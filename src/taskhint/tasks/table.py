"""Every task in one table: what its length counts, a worked example, its tests, and what theory
predicts.

    python -m taskhint.tasks.table > docs/tasks.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taskhint.tasks import Task, Theory

HEADER = """# Tasks

Every task with a worked example, generated from the code. A prompt ends at ⊥, or after what is
asked about. `taskhint solve RUN "1 2 + 3 4"` takes the part before ⊥, symbols separated by
spaces.

"""
THEORY = """
## What theory predicts

Whether a decoder that has learned a task on short inputs stays right on longer ones: without
positions (C-RASP), and with absolute ones (C-RASP with periodic and local relations, RASP-L). "Our
reading" means that we apply the papers' argument to a task that they do not name.

"""
SOURCES = """
Sources: Huang et al. 2025, *A Formal Framework for Understanding Length Generalization in
Transformers*; Zhou et al. 2024, *What Algorithms can Transformers Learn?*; Yang and Chiang 2024,
*Counting Like Transformers*.
"""


def as_markdown() -> str:
    """docs/tasks.md; kept true by a test."""
    tasks = _built_in()
    main = [task for task in tasks if not task.hint_for]
    hints = [task for task in tasks if task.hint_for]
    return "".join(
        [
            HEADER,
            _table(("task", "length counts", "prompt", "answer", "tests"), map(_row, main)),
            "\n## Hints\n\n",
            _table(("hint", "of", "prompt", "answer"), map(_hint_row, hints)),
            "\n## Vocabularies\n\n",
            _table(("task", "symbols", "marks"), map(_vocabulary, main)),
            THEORY,
            _table(
                ("task", "without positions", "with absolute positions", "why", "source"),
                (_prediction(task.kind, task.theory) for task in main if task.theory),
            ),
            SOURCES,
        ]
    )


def _built_in() -> list[Task]:
    """The tasks of this package with default settings, by name."""
    kinds = sorted(Task.kinds().items())
    return [task() for _, task in kinds if task.__module__.startswith("taskhint.")]


def _row(task: Task) -> Sequence[str]:
    return (_code(task.kind), task.length_is, *_example(task), ", ".join(task.distributions))


def _hint_row(task: Task) -> Sequence[str]:
    return (_code(task.kind), _code(task.hint_for), *_example(task))


def _example(task: Task) -> tuple[str, str]:
    prompt = task.worked_example()
    prompt_words, answer = (task.vocab.words(ids) for ids in (prompt, task.solve(prompt)))
    return _code(" ".join(prompt_words)), _code(" ".join(answer))


def _vocabulary(task: Task) -> Sequence[str]:
    vocab = task.vocab
    return (
        _code(task.kind),
        f"{vocab.first_symbol} to {vocab.last_symbol}",
        _code(" ".join(vocab.marks)),
    )


def _prediction(kind: str, theory: Theory) -> Sequence[str]:
    claims = (theory.without_positions, theory.with_positions)
    said = ("carries over" if carries else "fails" for carries in claims)
    return (_code(kind), *said, theory.why, theory.source)


def _code(text: str) -> str:
    return f"`{text}`"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(as_markdown(), end="")
