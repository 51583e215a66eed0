"""`taskhint reproduce`: train and measure what an experiment compares, write its report."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from taskhint.cli.arguments import Parser, add_scale, known_scale, whole
from taskhint.cli.executors import add_executor, chosen_executor, tell
from taskhint.evaluation.results import Result, find_results, one_per_run
from taskhint.experiments import EXPERIMENTS, GROUPS, find_experiment, source_of
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Experiment
from taskhint.experiments.findings import find_all
from taskhint.experiments.marker import MARKER, Marker, read_marker, write_marker
from taskhint.recipes import find_recipe, measured
from taskhint.recipes.recipe import Recipe, Scale
from taskhint.report.experiment_page import finding_text
from taskhint.report.page import write_report
from taskhint.runs.curve import PLAIN
from taskhint.sweeps.jobs import Executor, Job, Measurement, enough
from taskhint.sweeps.sweep import conduct
from taskhint.system.errors import UserError
from taskhint.system.extras import need
from taskhint.system.plugins import imported_value, split_target
from taskhint.system.tables import text_table

EXAMPLE = "taskhint reproduce hint tempered --seeds 3 --out reproduced"
PAPER_GPU = "A100 80GB"
MOST_SEEDS = 1000


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="experiments: names, my_file.py:MY_EXPERIMENT, `field` for the table of tasks and "
        "position schemes, or `all` for every named one",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="where runs and reports go; what is done there is skipped"
    )
    add_scale(parser)
    parser.add_argument("--seeds", type=whole, default=3, metavar="N", help="seeds 0 to N-1 (3)")
    add_executor(parser)


def run(options: argparse.Namespace) -> None:
    scale = known_scale(options.scale)
    if not 1 <= options.seeds <= MOST_SEEDS:
        raise UserError(f"--seeds {options.seeds} is not in 1..{MOST_SEEDS}")
    chosen = find_experiments(options.names, scale)
    if not chosen:
        print(listing(scale, options.seeds), end="")
        return
    if options.out is None:
        raise UserError("--out is needed: where runs and reports go")
    need("matplotlib", "taskhint reproduce")
    reproduce(chosen, scale, options.seeds, Path(options.out), chosen_executor(options))


def find_experiments(targets: Iterable[str], scale: Scale) -> list[Experiment]:
    """Experiments by their names, `my_file.py:MY_EXPERIMENT`, a group's name, or `all`."""
    found: dict[str, Experiment] = {}
    for target in targets:
        split = split_target(target)
        if target == "all":
            chosen = [one for one in EXPERIMENTS.values() if scale in one.scales]
        elif target in GROUPS:
            chosen = list(GROUPS[target])
        elif split is None:
            chosen = [find_experiment(target)]
        else:
            chosen = [_own_experiment(*split)]
        found |= {experiment.name: experiment for experiment in chosen}
    return list(found.values())


def _own_experiment(source: str, name: str) -> Experiment:
    experiment: Experiment = imported_value(source, name, Experiment)
    if EXPERIMENTS.get(experiment.name, experiment) is not experiment:
        raise UserError(
            f"{source}:{name} is called {experiment.name!r}, as another experiment is; give it "
            "a name of its own"
        )
    return experiment


def reproduce(
    chosen: Sequence[Experiment], scale: Scale, seeds: int, out: Path, executor: Executor
) -> None:
    """Run experiments, then report on all that the directory holds."""
    from taskhint.evaluation.versions import warn_of_versions

    for experiment in chosen:
        if scale not in experiment.scales:
            raise UserError(
                f"{experiment.name} is an experiment at scale {' and '.join(experiment.scales)} "
                "only"
            )
    precision = executor.at.precision
    _mark(out, scale, chosen, precision)
    jobs = jobs_for(chosen, scale, seeds, out, precision)
    todo = [job for job in jobs if job.measurements or job.mechanisms]
    print(f"{len(jobs)} runs, {len(jobs) - len(todo)} of them done", flush=True)
    warn_of_versions(out, (job.recipe for job in jobs))
    error = tell(conduct(todo, out, executor, "reproduce"))
    if error is not None:
        raise error
    for finding in find_all(find_results(out), chosen, scale, precision=precision):
        print("\n" + finding_text(finding), end="")
        print(
            write_report(out, out / f"{finding.experiment.name}.html", [finding.experiment.name])
        )
    print(f"All: {write_report(out, out / 'report.html')}")


def _mark(out: Path, scale: Scale, chosen: Sequence[Experiment], precision: str) -> None:
    """Note in the directory which experiments it holds, for the report."""
    before = Marker(scale, (), precision=precision)
    if (out / MARKER).exists():
        before = read_marker(out)
    if before.scale != scale:
        raise UserError(f"{out} holds experiments at scale {before.scale}; choose another --out")
    if before.precision != precision:
        raise UserError(
            f"{out} holds experiments measured in {before.precision}, not in {precision}; choose "
            "another --out"
        )
    names = dict.fromkeys((*before.experiments, *(one.name for one in chosen)))
    own = {one.name: source_of(one) for one in chosen if source_of(one)}
    order = [*(name for name in EXPERIMENTS if name in names), *names]
    sources = {**before.sources, **own}
    write_marker(out, Marker(scale, tuple(dict.fromkeys(order)), sources, precision))


def jobs_for(
    experiments: Iterable[Experiment],
    scale: Scale,
    seeds: int,
    out: Path,
    precision: str = PLAIN,
) -> list[Job]:
    """A job for every run, with what is not measured yet; experiments that share an arm share its
    runs.
    """
    wanted: dict[str, tuple[Arm, list[Experiment]]] = {}
    for experiment in experiments:
        for arm in experiment.arms:
            wanted.setdefault(_key(arm, scale), (arm, []))[1].append(experiment)
    results = (one for one in _results(out) if one.precision == precision)
    done = {result.recipe.fingerprint(): result for result in results}
    # The first seed of everything comes first: a stopped campaign then has a little of all.
    return [
        _job(out, f"{arm.name}/seed-{seed}", arm.at(scale).change(seed=seed), users, done)
        for seed in range(seeds)
        for arm, users in wanted.values()
    ]


def _results(out: Path) -> list[Result]:
    try:
        return one_per_run(find_results(out))
    except UserError:  # none yet
        return []


def _job(
    root: Path,
    out: str,
    recipe: Recipe,
    experiments: Sequence[Experiment],
    done: dict[str, Result],
) -> Job:
    from taskhint.runs.run import read_recipe

    there = done.get(recipe.fingerprint())
    if there is not None and there.path.is_dir():
        out = str(there.path.relative_to(root))
    elif (root / out / "recipe.json").exists() and recipe.differences(read_recipe(root / out)):
        raise UserError(
            f"{root / out} holds another run than the experiment asks for; choose another --out"
        )
    missing: dict[tuple[str, int, bool], list[int]] = {}
    for (name, n), (examples, far) in _wanted(experiments, recipe.scale).items():
        curve = there.curves.get(name) if there is not None else None
        wanted = Measurement(name, (n,), examples, far)
        if not enough(curve.scores.get(n) if curve else None, wanted):
            missing.setdefault((name, examples, far), []).append(n)
    measurements = (
        Measurement(name, tuple(sorted(n)), count, far)
        for (name, count, far), n in missing.items()
    )
    return Job(out, recipe, tuple(measurements), _lengths_to_look_into(experiments, there))


def _lengths_to_look_into(
    experiments: Iterable[Experiment], there: Result | None
) -> tuple[int, ...]:
    """At which a mechanism is not counted yet."""
    counted = {} if there is None else there.mechanisms.shares
    return tuple(
        sorted(
            {
                n
                for experiment in experiments
                for mechanism in experiment.mechanisms
                for n in experiment.lengths
                if n not in counted.get(mechanism, {})
            }
        )
    )


def _wanted(
    experiments: Iterable[Experiment], scale: Scale
) -> dict[tuple[str, int], tuple[int, bool]]:
    """Test sequences, and whether with edit distances, for each distribution and length: what
    satisfies everyone.
    """
    wanted: dict[tuple[str, int], tuple[int, bool]] = {}
    for experiment in experiments:
        for distribution, distances in experiment.distributions.items():
            for length in experiment.lengths:
                before = wanted.get((distribution, length), (0, False))
                examples = max(before[0], experiment.examples_at(length, scale))
                wanted[distribution, length] = (examples, before[1] or distances)
    return wanted


def listing(scale: Scale, seeds: int) -> str:
    """Every experiment with what it costs."""
    rows = []
    shared: dict[str, float] = {}
    experiments = [experiment for experiment in EXPERIMENTS.values() if scale in experiment.scales]
    for experiment in experiments:
        costs = {_key(arm, scale): seeds * _hours(arm, scale) for arm in experiment.arms}
        shared |= costs
        rows.append(
            [experiment.name, str(seeds * len(experiment.arms)), _time(sum(costs.values()))]
        )
    rows.append(["all, shared runs once", str(seeds * len(shared)), _time(sum(shared.values()))])
    unit = "on one core, to train" if scale != "paper" else f"on one {PAPER_GPU}, to train"
    table = text_table(["experiment", "runs", unit], rows).splitlines()
    questions = ["question", *(e.question for e in experiments), ""]
    width = max(len(line) for line in table)
    return "".join(
        f"{line:<{width}}  {question}".rstrip() + "\n"
        for line, question in zip(table, questions, strict=True)
    )


def _time(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{max(1, round(60 * hours))} min"


def _key(arm: Arm, scale: Scale) -> str:
    return arm.at(scale).fingerprint()


def _hours(arm: Arm, scale: Scale) -> float:
    """Of one run: below paper scale on one core, as its operations compare with those of a timed
    recipe.
    """
    from taskhint.training.cost import GPUS, step_flops
    from taskhint.training.cost import hours as gpu_hours

    recipe = arm.at(scale)
    if scale == "paper":
        return gpu_hours(recipe, GPUS[PAPER_GPU])
    known, timed = find_recipe("sort/standard"), measured("sort/standard")
    assert timed is not None
    share = recipe.steps * step_flops(recipe) / (known.steps * step_flops(known))
    return share * timed.minutes / 60
