"""A sweep from beginning to end: recipes × a grid × seeds, then one table, one figure and a page.

    import taskhint as th

    swept = th.sweep("sort/tempered", out="sweeps/size", grid={"model.width": [64, 128]}, seeds=3,
                     lengths=[20, 50, 100])
    print(swept)
    swept.to_frame()

The same call goes on where it was stopped, and skips what is done. On a cluster: `on="ray"`.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskhint.evaluation.results import Result, find_results
from taskhint.evaluation.summary import Series, series_table, summarise
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.report.figures import curves_figure
from taskhint.report.page import write_report
from taskhint.runs.curve import data_frames
from taskhint.runs.tracker import Tracker, can_start, find_tracker
from taskhint.sweeps.collecting import outcomes_told
from taskhint.sweeps.grid import jobs_of, points
from taskhint.sweeps.jobs import Executor, Job, Measurement, Outcome, undone
from taskhint.sweeps.plan import Plan, check_places, read_plan, write_plan
from taskhint.system.devices import Compute, check_names, compute
from taskhint.system.drawing import as_png
from taskhint.system.errors import UserError, nearest
from taskhint.system.extras import need
from taskhint.system.files import as_path, write_atomically
from taskhint.system.settings import conform

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE, TABLE, REPORT = "figure.png", "table.csv", "report.html"
PLACES = ("local", "ray")


@dataclass(frozen=True)
class Swept:
    """What a sweep's directory holds: a series for every recipe and test distribution."""

    path: Path
    series: tuple[Series, ...]

    def __str__(self) -> str:
        return series_table(self.series, intervals=True)

    def plot(self) -> Figure:
        """Accuracy by length with the intervals over seeds, a panel per test distribution."""
        return curves_figure(self.series)

    def rows(self) -> list[dict[str, Any]]:
        """One for every recipe, test distribution and length."""
        return [
            {
                "recipe": one.label,
                "distribution": one.distribution,
                "precision": one.precision,
                "length": length,
                "accuracy": point.accuracy.mean,
                "low": point.accuracy.interval.low,
                "high": point.accuracy.interval.high,
                "seeds": point.accuracy.seeds,
                "sequences": sum(point.accuracy.sequences),
                "edit_distance": point.edit_distance,
            }
            for one in self.series
            for length, point in one.points.items()
        ]

    def to_frame(self) -> Any:
        """The rows as a pandas data frame (polars where there is no pandas)."""
        return data_frames().DataFrame(self.rows())


def sweep(
    recipes: Recipe | str | Sequence[Recipe | str],
    out: str | os.PathLike[str],
    *,
    lengths: Sequence[int],
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int = 3,
    examples: int = 1000,
    distributions: Sequence[str] = ("uniform",),
    edit_distance: bool = False,
    on: str | Executor = "local",
    address: str | None = None,
    gpus_per_run: float | None = None,
    device: str = "auto",
    precision: str = "float32",
    track: Tracker | str | None = None,
) -> Swept:
    """Train every recipe with every combination of the grid's settings and every seed, measure
    accuracy by length, and write table, figure and report into the directory.

    `track` shows every training as `train` does. `on` is local, ray, or an executor of one's own;
    then the five after it do not count.
    """
    need("matplotlib", "a sweep")
    from taskhint.evaluation.versions import warn_of_versions

    root = as_path(out, "the sweep's directory")
    executor = on
    if isinstance(executor, str):
        executor = executor_for(executor, address, gpus_per_run, device, precision, track)
    jobs = jobs_for(
        named(recipes), grid or {}, seeds, lengths, examples, distributions, edit_distance
    )
    warn_of_versions(root, (job.recipe for job in jobs))
    failed = [outcome.error for outcome in conduct(jobs, root, executor, "sweep") if outcome.error]
    swept = summary(root)
    if failed:
        raise failed[0]
    return swept


def jobs_for(
    recipes: Mapping[str, Recipe],
    grid: Mapping[str, Sequence[Any]],
    seeds: int,
    lengths: Sequence[int],
    examples: int,
    distributions: Iterable[str],
    edit_distance: bool,
) -> list[Job]:
    """A job for every run of a sweep; what cannot be trained or measured is refused here."""
    once = tuple(sorted(set(lengths)))
    measurements = [
        Measurement(name, once, examples, edit_distance) for name in dict.fromkeys(distributions)
    ]
    jobs = jobs_of(points(recipes, grid), seeds, measurements)
    _check_measurements(jobs)
    return jobs


def named(recipes: Recipe | str | Sequence[Recipe | str]) -> dict[str, Recipe]:
    """Recipes by the names of their directories; of two with the same name the second and later
    ones have a part of their fingerprint behind it.
    """
    given = [recipes] if isinstance(recipes, Recipe | str) else recipes
    found: dict[str, Recipe] = {}
    for one in given:
        recipe = find_recipe(one) if isinstance(one, str) else one
        if not isinstance(recipe, Recipe):
            raise UserError(f"a sweep takes recipes or their names, got {one!r:.60}")
        taken = recipe.name in found and found[recipe.name] != recipe
        found[f"{recipe.name}-{recipe.fingerprint()[:8]}" if taken else recipe.name] = recipe
    if not found:
        raise UserError("a sweep needs at least one recipe")
    return found


def _check_measurements(jobs: Iterable[Job]) -> None:
    """Before hours of training: whether every run can be measured as asked."""
    from taskhint.training.limits import check_evaluation

    for job in jobs:
        if job.recipe.seed:
            continue
        for one in job.measurements:
            if not one.lengths or min(one.lengths) < 1 or one.examples < 1:
                raise UserError("lengths and examples must be whole numbers of at least 1")
            task = job.recipe.task.for_test(one.distribution)
            check_evaluation(job.recipe.model, task, one.lengths)


def executor_for(
    on: str,
    address: str | None = None,
    gpus_per_run: float | None = None,
    device: str = "auto",
    precision: str = "float32",
    track: Tracker | str | None = None,
) -> Executor:
    """Where runs are trained: `local` or `ray`. What cannot be had is refused here."""
    if on not in PLACES:
        raise UserError(f"--on {on} is not known; {nearest(on, PLACES)}")
    if gpus_per_run is not None:
        gpus_per_run = conform(float, gpus_per_run, "--gpus-per-run")
        if not 0.0 <= gpus_per_run <= 1.0:
            raise UserError(f"--gpus-per-run {gpus_per_run:g} is not in 0..1")
    check_names(device, precision)
    _check_gpus(device, gpus_per_run)
    at, tracker = Compute(device, precision), None if track is None else find_tracker(track)
    if on == "local":
        if address is not None:
            raise UserError("--address is for --on ray")
        from taskhint.sweeps.local import LocalPool

        compute("cpu" if gpus_per_run == 0 else device, precision)
        if tracker is not None and not can_start(tracker):  # said once, not by every run
            tracker = None
        return LocalPool(gpus_per_run, at, tracker)
    from taskhint.sweeps.cluster import RayCluster, check_answers

    if ":" in device:
        raise UserError(f"--device {device} is for --on local; Ray chooses the GPU of a run")
    check_answers(address)  # before anything is written
    return RayCluster(address, gpus_per_run, at, tracker)


def _check_gpus(device: str, gpus_per_run: float | None) -> None:
    if gpus_per_run == 0 and device.startswith("cuda"):
        raise UserError(f"--device {device} and --gpus-per-run 0 exclude each other")
    if gpus_per_run and device == "cpu":
        raise UserError(f"--gpus-per-run {gpus_per_run:g} and --device cpu exclude each other")


def conduct(jobs: Sequence[Job], root: Path, executor: Executor, title: str) -> Iterator[Outcome]:
    """Run what is not done yet. What fails is told at once, and yielded like everything else."""
    check_places(root, jobs)
    precision = executor.at.precision
    write_plan(root, jobs, precision)
    todo = undone(jobs, root, precision)
    if todo:
        yield from outcomes_told(executor.run(todo, root, title))


def summary(root: Path) -> Swept:
    """Write table and figure of what was asked for, and a report on all that is measured below a
    directory.
    """
    plan = read_plan(root)
    outs = [out for group in plan.groups for out in group.runs]
    places = {root / out: place for place, out in enumerate(outs)}
    results = sorted(find_results(root), key=lambda one: places.get(one.path, len(places)))
    swept = Swept(root, tuple(summarise(asked_for(results, plan, root))))
    write_atomically(root / TABLE, _csv(swept.rows()).encode())
    write_atomically(root / FIGURE, as_png(swept.plot()))
    write_report(root, root / REPORT)
    return swept


def asked_for(results: Iterable[Result], plan: Plan, root: Path) -> Iterator[Result]:
    """Results with the test distributions and lengths of the plan alone; a run that is not in it,
    or was measured with another precision, with those of all others.
    """
    by_run = {
        (root / out, one.precision): one.measurements for one in plan.groups for out in one.runs
    }
    of_all = tuple(one for group in plan.groups for one in group.measurements)
    for result in results:
        lengths: dict[str, set[int]] = {}
        for one in by_run.get((result.path, result.precision), of_all):
            lengths.setdefault(one.distribution, set()).update(one.lengths)
        curves = {
            name: replace(curve, scores={n: s for n, s in curve.scores.items() if n in wanted})
            for name, curve in result.curves.items()
            if (wanted := lengths.get(name, set()) & curve.scores.keys())
        }
        yield replace(result, curves=curves)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
