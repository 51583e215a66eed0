"""All probes of one run, and the document that keeps their numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskhint.probe.attention import (
    AttentionByLength,
    AttentionMaps,
    attention_curves,
    attention_maps,
    attention_rows,
)
from taskhint.probe.bases import Bases, measure_bases
from taskhint.probe.first_errors import FirstErrors, first_errors
from taskhint.probe.gather import gather
from taskhint.probe.lens import Projections, StageCurves, project, stage_curves, stage_rows
from taskhint.probe.mechanisms import MechanismCurves, mechanism_curves, mechanism_rows
from taskhint.probe.shares import Share
from taskhint.probe.view import Subject
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.system.progress import Progress
from taskhint.tasks import Sort, Task

EXAMPLES = 200
LENGTHS = {"sort": (5, 10, 20, 30, 50, 70, 100), "increment": (3, 5, 8, 10, 12, 15, 20)}
PAPER_INPUT = "5 17 43 78 92"
LONGEST_INPUT = 100  # of an input whose every token has its label in a figure
DIGITS = 6  # significant ones in the document


@dataclass(frozen=True)
class Plan:
    """What to look at: one input token by token, and fresh sequences of several lengths."""

    prompt: list[int]
    lengths: tuple[int, ...]
    examples: int


@dataclass(frozen=True)
class Study:
    """Everything that the probes found in one run."""

    name: str
    recipe: str
    task: str
    seed: int
    step: int
    trained_up_to: int | None  # None if nothing was trained
    temperature: str
    examples: int
    bases: Bases
    projections: Projections
    maps: AttentionMaps
    mechanisms: MechanismCurves
    stages: StageCurves
    attention: AttentionByLength
    errors: FirstErrors

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = as_json(self)
        return document


def make_plan(task: Task, text: str | None, lengths: Sequence[int] | None, examples: int) -> Plan:
    """The plan for a task, or a refusal before anything is computed."""
    if examples < 1:
        raise UserError(f"--examples {examples} is too few; at least 1")
    chosen = tuple(sorted(set(lengths))) if lengths else LENGTHS.get(task.kind)
    if chosen is None:
        raise UserError(f"there are no usual lengths for task {task.kind!r}; give --lengths")
    return Plan(_prompt(task, text), chosen, examples)


def _prompt(task: Task, text: str | None) -> list[int]:
    if text is None:
        usual = isinstance(task, Sort) and task.symbols >= 92
        return (
            task.prompt(task.vocab.parse(PAPER_INPUT.split())) if usual else task.worked_example()
        )
    symbols = task.vocab.parse(text.replace(",", " ").split())
    if len(symbols) > LONGEST_INPUT:
        raise UserError(
            f"--input has {len(symbols)} symbols; at most {LONGEST_INPUT} can be shown"
        )
    return task.prompt(symbols)


def study(run: Run, name: str, plan: Plan, progress: bool = False) -> Study:
    """Run every probe."""
    subject = Subject.of(run)
    lengths, examples = plan.lengths, plan.examples
    measures = [mechanism_rows, stage_rows, attention_rows]
    with Progress(sum(lengths) * examples, f"probe {name}", shown=progress, unit="symbol") as bar:
        bar.advance_to(0)
        gathered = gather(subject, lengths, examples, measures, bar)
    return Study(
        name=name,
        recipe=run.recipe.name,
        task=run.task.kind,
        seed=run.recipe.seed,
        step=run.checkpoint.step,
        trained_up_to=run.task.lengths.max_length if run.checkpoint.step else None,
        temperature=_temperature(subject),
        examples=examples,
        bases=measure_bases(subject),
        projections=project(subject, plan.prompt),
        maps=attention_maps(subject, plan.prompt),
        mechanisms=mechanism_curves(gathered),
        stages=stage_curves(subject, gathered),
        attention=attention_curves(subject, gathered),
        errors=first_errors(subject, lengths, examples),
    )


def _temperature(subject: Subject) -> str:
    """The kind of temperature, and the β of each block where it is learned."""
    kind = subject.decoder.config.temperature.kind
    weights = dict(subject.decoder.named_parameters())
    names = [f"blocks.{block}.attention.temperature.beta" for block in range(subject.depth)]
    betas = [f"{weights[name].item():.3g}" for name in names if name in weights]
    return f"{kind}, β = {' and '.join(betas)}" if betas else kind


def as_json(value: Any) -> Any:
    """Dataclasses, arrays and dicts as plain JSON values; shares with their intervals."""
    if isinstance(value, Share):
        return as_json(value.to_json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, np.ndarray):
        return as_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
