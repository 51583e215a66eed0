"""The probes of one run, the document that keeps their numbers, and several runs side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskhint.probe.attention import Attention
from taskhint.probe.bases import TwoBases
from taskhint.probe.errors import FirstErrorsProbe
from taskhint.probe.maps import Maps
from taskhint.probe.mechanisms import Mechanisms
from taskhint.probe.probe import About, Comparison, Excerpt, Looked, Probe, Shown
from taskhint.probe.projections import ProjectionCharts
from taskhint.probe.stages import Stages
from taskhint.probe.traced import MAX_LENGTH, RowsByLength, Subject, collect
from taskhint.runs.curve import PLAIN
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.system.progress import Progress
from taskhint.system.settings import find_kind
from taskhint.tasks.task import Task

EXAMPLES = 200
LONGEST_INPUT = 100  # of an input whose every token has its label in a figure
DIGITS = 6  # significant ones in the document

# In the order of the page; those of a user's own files follow.
OURS: tuple[type[Probe], ...] = (
    Mechanisms,
    Stages,
    ProjectionCharts,
    Maps,
    Attention,
    FirstErrorsProbe,
    TwoBases,
)


@dataclass(frozen=True)
class Plan:
    """What to look at: one input token by token, and fresh sequences of several lengths.

    `probes` are the kinds that a person chose; None for all that have a meaning.
    """

    prompt: list[int]
    lengths: tuple[int, ...]
    examples: int = EXAMPLES
    probes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Study:
    """What the probes found in one run, by their kinds."""

    about: About
    probes: dict[str, Probe]
    found: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = as_json(self.about) | as_json(self.found)
        if self.about.precision == PLAIN:
            del document["precision"]
        return document

    def shown(self) -> list[Shown]:
        """Every figure."""
        figures: list[Shown] = []
        for kind, probe in self.probes.items():
            figures += probe.draw(self.found[kind], self.about)
        return figures


def make_plan(
    task: Task,
    text: str | None = None,
    lengths: Sequence[int] | None = None,
    examples: int = EXAMPLES,
    probes: Sequence[str] | None = None,
) -> Plan:
    """The plan for a task, or a refusal before anything is computed."""
    if examples < 1:
        raise UserError(f"--examples {examples} is too few; at least 1")
    usual = [length for length in task.usual_lengths if length <= MAX_LENGTH]
    chosen = tuple(sorted(set(lengths or usual)))
    if not chosen:
        raise UserError(
            f"task {task.kind!r} is trained on inputs that are too long to probe; give --lengths "
            f"of at most {MAX_LENGTH}"
        )
    for kind in probes or ():
        find_kind(Probe, kind, "probe")
    return Plan(_prompt(task, text), chosen, examples, tuple(probes) if probes else None)


def _prompt(task: Task, text: str | None) -> list[int]:
    if text is None:
        return task.usual_prompt()
    symbols = task.vocab.parse(text.replace(",", " ").split())
    if len(symbols) > LONGEST_INPUT:
        raise UserError(
            f"--input has {len(symbols)} symbols; at most {LONGEST_INPUT} can be shown"
        )
    return task.prompt(symbols)


def chosen_probes(subject: Subject, kinds: Sequence[str] | None = None) -> dict[str, Probe]:
    """The probes of these kinds, or all that have a meaning for the subject."""
    known: list[type[Probe]] = [*OURS, *(one for one in Probe.kinds().values() if one not in OURS)]
    probes = {one.kind: one() for one in known if kinds is None or one.kind in kinds}
    meant = {kind: one for kind, one in probes.items() if one.has_meaning(subject)}
    for kind in probes:
        if kinds is not None and kind not in meant:
            raise UserError(f"probe {kind!r} has no meaning for task {subject.task.kind!r}")
    return meant


def study(run: Run, name: str, plan: Plan, progress: bool = False) -> Study:
    """Look at a run as planned."""
    subject = Subject.of(run)
    probes = chosen_probes(subject, plan.probes)
    rows = _rows(subject, name, plan, probes, progress)
    about = About(
        name=name,
        recipe=run.recipe.name,
        task=run.task.kind,
        seed=run.recipe.seed,
        step=run.checkpoint.step,
        trained_up_to=run.task.lengths.max_length if run.checkpoint.step else None,
        temperature=_temperature(subject),
        examples=plan.examples,
        precision=run.precision,
    )
    found = {}
    for kind, probe in probes.items():
        own = rows.get(kind, {})
        looked = Looked(subject, plan.prompt, plan.lengths, plan.examples, own)
        found[kind] = probe.result(looked)
    return Study(about, probes, found)


def _rows(
    subject: Subject, name: str, plan: Plan, probes: dict[str, Probe], progress: bool
) -> dict[str, RowsByLength]:
    """What the probes keep of each sequence: one pass for all of them."""
    keeping = {kind: one for kind, one in probes.items() if type(one).rows is not Probe.rows}
    if not keeping:
        return {}
    symbols = sum(plan.lengths) * plan.examples
    measures = [one.rows for one in keeping.values()]
    with Progress(symbols, f"probe {name}", shown=progress, unit="symbol") as bar:
        bar.advance_to(0)
        rows = collect(subject, plan.lengths, plan.examples, measures, bar)
    return dict(zip(keeping, rows, strict=True))


def _temperature(subject: Subject) -> str:
    """The kind of temperature, and the β of each block where it is learned."""
    kind = subject.decoder.config.temperature.kind
    weights = dict(subject.decoder.named_parameters())
    names = [f"blocks.{block}.attention.temperature.beta" for block in range(subject.depth)]
    betas = [f"{weights[name].item():.3g}" for name in names if name in weights]
    return f"{kind}, β = {' and '.join(betas)}" if betas else kind


def compare(studies: Sequence[Study]) -> list[Comparison]:
    """A comparison for every task that at least two of the studies share."""
    by_task: dict[str, list[Study]] = {}
    for one in studies:
        by_task.setdefault(one.about.task, []).append(one)
    return [
        Comparison(
            task, min(one.about.examples for one in same), tuple(_excerpt(one) for one in same)
        )
        for task, same in by_task.items()
        if len(same) > 1
    ]


def _excerpt(study: Study) -> Excerpt:
    parts: dict[str, Any] = {}
    for kind, probe in study.probes.items():
        parts |= probe.excerpt(study.found[kind])
    return Excerpt(study.about, parts)


def compared_json(comparison: Comparison) -> dict[str, Any]:
    runs = []
    for run in comparison.runs:
        names = ["name", "recipe", "trained_up_to"]
        names += ["precision"] if run.about.precision != PLAIN else []
        about = {name: getattr(run.about, name) for name in names}
        runs.append(about | as_json(run.parts))
    return {"task": comparison.task, "examples": comparison.examples, "runs": runs}


def as_json(value: Any) -> Any:
    """Dataclasses, arrays and dicts as plain JSON values, numbers with six digits."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, (np.ndarray, np.generic)):
        return as_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
