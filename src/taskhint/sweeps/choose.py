"""Running the candidates of a choice: short trainings on all cores, then what they say."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from taskhint.evaluation.versions import warn_of_versions
from taskhint.experiments.arm import plain_name
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import Run, load
from taskhint.sweeps.choice import (
    FILE,
    Candidate,
    Choice,
    Signals,
    lower_half,
    shortened,
    upper_half,
)
from taskhint.sweeps.jobs import Job, Measurement, undone
from taskhint.sweeps.local import LocalPool
from taskhint.sweeps.sweep import conduct
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.settings import Settings, conform, to_json
from taskhint.tasks.task import Task

FIRST_SEED = 100  # apart from the seeds that are reported later
KEPT = "signals.json"


@dataclass(frozen=True)
class Cheap(Settings):
    """What is kept with a run: losses by length, cosines by hint, of the checkpoint of one
    step.
    """

    step: int
    losses: dict[int, float] = field(default_factory=dict)
    agreement: dict[str, float] = field(default_factory=dict)


def choose(
    recipes: Mapping[str, Recipe],
    out: Path | str,
    *,
    seeds: int = 3,
    first_seed: int = FIRST_SEED,
    steps: int | None = None,
    examples: int = 1000,
    distribution: str = "uniform",
) -> Choice:
    """Rank recipes, given by label; what is done in `out` is not done again. The ranking is kept
    there as choose.json.
    """
    place, main = Path(out), common_task(recipes)
    wanted = Measurement(distribution, upper_half(main), examples)
    short = {label: shortened(recipe, steps) for label, recipe in recipes.items()}
    runs = {
        (label, seed): f"{plain_name(label)}/seed-{seed}"
        for seed in range(first_seed, first_seed + seeds)
        for label in short
    }
    if len(set(runs.values())) < len(runs) or not runs:
        raise UserError("candidates need different names and at least one seed")
    jobs = [Job(name, short[of].change(seed=s), (wanted,)) for (of, s), name in runs.items()]
    _run(jobs, place)
    found = {key: _signals(load(place / name), main, wanted) for key, name in runs.items()}
    candidates = [
        Candidate(label, recipe, {s: one for (of, s), one in found.items() if of == label})
        for label, recipe in short.items()
    ]
    ranked = tuple(sorted(candidates, key=_rank))
    choice = Choice(lower_half(main), wanted.lengths, distribution, ranked)
    write_atomically(place / FILE, json_bytes(to_json(choice)))
    return choice


def common_task(recipes: Mapping[str, Recipe]) -> Task:
    """Candidates can be compared only where they answer the same questions."""
    if len(recipes) < 2:
        raise UserError("there is nothing to choose from; give at least two candidates")
    (_, first), *others = recipes.items()
    for label, other in others:
        mine, theirs = (
            (r.task.kind, r.task.vocab, r.task.lengths.max_length) for r in (first, other)
        )
        if mine != theirs:
            raise UserError(
                f"candidate {label!r} has task {theirs[0]!r} up to length {theirs[2]} and "
                f"{theirs[1].symbols} symbols, the first one {mine[0]!r} up to {mine[2]} and "
                f"{mine[1].symbols}; they cannot be compared"
            )
    return first.task


def _run(jobs: list[Job], place: Path) -> None:
    todo, began = len(undone(jobs, place)), time.monotonic()
    print(f"{len(jobs)} runs, {len(jobs) - todo} of them done", flush=True)
    warn_of_versions(place, (job.recipe for job in jobs))
    failed = []
    for outcome in conduct(jobs, place, LocalPool(), "choose"):
        if outcome.error is not None:
            failed.append(outcome.error)
            continue
        (curve,) = outcome.curves
        accuracy = curve[max(curve.scores)].accuracy
        at = f"{100 * accuracy:.1f}% at {max(curve.scores)}"
        print(f"{outcome.job.out}: {at}", flush=True)
    if failed:
        raise failed[0]
    if todo:
        print(f"{todo} runs took {(time.monotonic() - began) / 60:.1f} minutes", flush=True)


def _signals(run: Run, main: Task, measured: Measurement) -> Signals:
    scores = [run.curves[measured.distribution][n] for n in measured.lengths]
    trained, longest = lower_half(main), main.lengths.max_length
    cheap = cheap_signals(run, (trained, longest), measured.distribution)
    cosines = cheap.agreement.values()
    return Signals(
        inside=sum(score.accuracy for score in scores) / len(scores),
        at_longest=scores[-1].accuracy,
        lengths=len(scores),
        sequences=min(score.examples for score in scores),
        loss_trained=cheap.losses[trained],
        loss_longest=cheap.losses[longest],
        agreement=sum(cosines) / len(cosines) if cosines else None,
    )


def cheap_signals(run: Run, lengths: tuple[int, ...], distribution: str) -> Cheap:
    """Computed once and kept with the run."""
    from taskhint.evaluation.signals import gradient_agreement, loss_at

    path = run.path / KEPT
    if path.exists():
        kept: Cheap = conform(Cheap, read_json(path), str(path))
        if kept.step == run.checkpoint.step and set(lengths) <= set(kept.losses):
            return kept
    losses = {n: loss_at(run, n, distribution=distribution) for n in lengths}
    found = Cheap(run.checkpoint.step, losses, gradient_agreement(run))
    write_atomically(path, json_bytes(to_json(found)))
    return found


def _rank(candidate: Candidate) -> tuple[float, float]:
    """The most right inside first; of equals the one with the smaller loss."""
    return -candidate.inside.mean, candidate.mean("loss_longest") or 0.0
