"""One self-contained HTML file: the curves as a figure, the tables with intervals, and the
settings behind them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields
from html import escape
from pathlib import Path
from typing import Any

from taskhint.evaluation.results import Result, find_results
from taskhint.evaluation.summary import Point, Series, summarise, updates_text
from taskhint.experiments import GROUPS, find_experiment
from taskhint.experiments.field import GROUP as FIELD
from taskhint.experiments.findings import Finding, find_all
from taskhint.experiments.marker import MARKER, read_marker, read_remarks
from taskhint.recipes.recipe import Recipe
from taskhint.report.experiment_page import overview, section
from taskhint.report.field_page import field_section, task_section
from taskhint.report.figures import curves_figure
from taskhint.report.style import STYLE
from taskhint.system.drawing import as_panels
from taskhint.system.errors import UserError
from taskhint.system.files import write_atomically
from taskhint.system.tables import html_table


def write_report(directory: Path, out: Path, names: Sequence[str] = ()) -> Path:
    """Write the report on every evaluated run below a directory, or on the named experiments
    alone.

    Runs that belong to an experiment are shown with it; all others as curves by recipe.
    """
    results = find_results(directory)
    places = sorted(path.parent for path in directory.rglob(MARKER))
    findings = [one for place in places for one in _findings(place, results)]
    if names:
        findings, rest = [one for one in findings if one.experiment.name in names], []
    else:
        outside = [one for one in results if not any(_below(one, place) for place in places)]
        rest = summarise(outside) if any(one.curves for one in outside) else []
    if not findings and not rest and not names:
        raise UserError(
            f"nothing is evaluated below {directory} yet; taskhint evaluate RUN --lengths N,N,…"
        )
    try:
        write_atomically(out, report_page(rest, findings).encode())
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}") from None
    return out


def _below(result: Result, place: Path) -> bool:
    return result.path.is_relative_to(place)


def _findings(place: Path, results: Sequence[Result]) -> list[Finding]:
    """Of the experiments that a directory is marked with."""
    marker = read_marker(place)
    experiments = [find_experiment(one, marker.sources.get(one, "")) for one in marker.experiments]
    there = [result for result in results if _below(result, place)]
    return find_all(there, experiments, marker.scale, read_remarks(place), marker.precision)


def report_page(series: Sequence[Series], findings: Sequence[Finding] = ()) -> str:
    tasks = dict.fromkeys(one.recipe.task.kind for one in series)
    curves = "".join(
        _curves(kind, [one for one in series if one.recipe.task.kind == kind]) for kind in tasks
    )
    experiments = _experiments(findings) if findings else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>taskhint: accuracy by length</title><style>{STYLE}</style></head><body>
{experiments}{curves}
</body></html>
"""


HOW = """Means over seeds with 95% intervals that know both how seeds differ and how many
sequences each was asked (Wilson's interval, with as few sequences as the spread of the seeds
allows for). A claim that one arm is better than another holds if Welch's 95% interval of the
difference lies above zero, and does not hold if it lies below. "Not better" holds unless the other
arm is clearly better, and inconclusive where both are under 1%. "Reaches" and "below" go by the
mean over the seeds alone. Reproduced: every claim holds; partly: some do."""


def _experiments(findings: Sequence[Finding]) -> str:
    of_paper = any(finding.experiment.of_paper for finding in findings)
    names = {experiment.name for experiment in GROUPS[FIELD]}
    of_field = [one for one in findings if one.experiment.name in names]
    return f"""<h1>{"The paper's experiments, and more" if of_paper else "Experiments"}</h1>
<p class="lead">{HOW}</p>
{overview(findings)}{field_section(of_field) if of_field else ""}
{"".join(task_section(one) if one in of_field else section(one) for one in findings)}
"""


def _curves(task: str, series: Sequence[Series]) -> str:
    distributions = list(dict.fromkeys(s.distribution for s in series))
    longest = max(s.recipe.task.lengths.max_length for s in series)
    tables = "".join(
        f"<h2>{escape(name)} test "
        f"sequences</h2>{_table([s for s in series if s.distribution == name])}"
        for name in sorted(distributions, key=lambda name: (name != "uniform", name))
    )
    return f"""<h1>Accuracy by length: {escape(task)}</h1>
<p class="lead">Trained on inputs of at most {longest} symbols, measured on longer ones. A sequence
counts only if every token of its answer is right.</p>
{as_panels(curves_figure(series), f"Accuracy by length: {task}")}
{tables}
<p>Percent of sequences without an error, and the 95% interval. With one seed the interval is
Wilson's over the test sequences, and says nothing of other seeds; with several it is widened as
far as the seeds lie apart.</p>
<h2>What was trained</h2>{_settings(series)}
"""


def _table(series: Sequence[Series]) -> str:
    lengths = sorted({length for one in series for length in one.points})
    rows = []
    for one in series:
        seeds = {point.accuracy.seeds for point in one.points.values()}
        cells = (_cell(one.points.get(length), max(seeds)) for length in lengths)
        examples = min(min(point.accuracy.sequences) for point in one.points.values())
        rows.append([escape(one.label), *cells, _span(seeds), str(examples)])
    return html_table(["length", *map(str, lengths), "seeds", "sequences"], rows)


def _span(numbers: Collection[int]) -> str:
    first, last = min(numbers), max(numbers)
    return str(first) if first == last else f"{first}–{last}"


def _cell(point: Point | None, most_seeds: int) -> str:
    """Accuracy and interval; of how many seeds, where others of the row have more."""
    if point is None:
        return ""
    accuracy, distance = point.accuracy, point.edit_distance
    edit = "" if distance is None else f"<small>edit {distance:.2f}</small>"
    low, high = 100 * accuracy.interval.low, 100 * accuracy.interval.high
    some = f"{accuracy.seeds} seed{'s' if accuracy.seeds > 1 else ''}"
    fewer = f"<small>{some}</small>" if accuracy.seeds < most_seeds else ""
    return f"{100 * accuracy.mean:.1f}<small>{low:.1f}–{high:.1f}</small>{edit}{fewer}"


def _settings(series: Sequence[Series]) -> str:
    recipes = dict.fromkeys((one.label, one.recipe) for one in series)
    rows = [[escape(label), escape(describe(recipe))] for label, recipe in recipes]
    return html_table([], rows, kind="notes")


def describe(recipe: Recipe) -> str:
    """A recipe in a sentence, with the choices that decide its result."""
    model, optimiser = recipe.model, recipe.optimiser
    return (
        f"{updates_text(recipe)} of {recipe.batch_size} examples; "
        f"{optimiser.kind} at {recipe.learning_rate:g} ({_fields(optimiser)}); "
        f"depth {model.depth}, width {model.width}, {model.heads} heads, MLP {model.mlp_width}; "
        f"temperature {model.temperature.kind}; positions {model.positions.kind}; "
        f"lengths {_fields(recipe.task.lengths)}; "
        f"{_inputs(recipe)}{recipe.dataset_size:,} different examples"
        + "".join(f"; hint {_hint(hint.task)}" for hint in recipe.hints)
    )


def _fields(settings: Any) -> str:
    found = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found.items())


def _inputs(recipe: Recipe) -> str:
    inputs = getattr(recipe.task, "inputs", recipe.task)
    found = ", ".join(
        f"{field.name} {getattr(inputs, field.name)}"
        for field in fields(inputs)
        if field.name not in ("lengths", "symbols")
    )
    return f"inputs {found}; " if found else ""


def _hint(task: object) -> str:
    kind = getattr(task, "kind", "")
    repeated = getattr(task, "repeated", None)
    return f"{kind} (of a repeated symbol: {repeated})" if repeated else kind
