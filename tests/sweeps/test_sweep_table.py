"""How the recipes of a sweep are called in its table and figure."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

import taskhint
from taskhint.evaluation.exact import evaluate
from taskhint.evaluation.results import Result
from taskhint.evaluation.summary import Point, Series, summarise
from taskhint.recipes import find_recipe
from taskhint.report.figures import curves_figure
from taskhint.runs.curve import LengthCurve, Score
from taskhint.runs.run import load
from taskhint.runs.shares import KeptShares
from taskhint.sweeps.grid import points, read_grid
from taskhint.system.dotted import short_keys
from taskhint.system.stats import OverSeeds
from tests.runs.reliability import tiny


def test_labels_say_what_was_chosen_and_no_more() -> None:
    grid = read_grid(["model.temperature=constant,log-visible,fixed", "model.width=32,64"])
    found = points({"a": find_recipe("sort/standard")}, grid)
    apart = found[-1].recipe.with_settings(["model.temperature.times=2.0"])
    curves = {"uniform": LengthCurve("a", "a", "sort", "uniform", 0, 1, {5: Score(10, 5)})}
    results = [
        Result(Path(str(n)), recipe, curves, KeptShares())
        for n, recipe in enumerate((*(point.recipe for point in found), apart))
    ]
    assert [one.label for one in summarise(results[:4])] == [
        f"sort/standard, temperature {kind}, width {width}"
        for kind in ("constant", "log-visible")
        for width in (32, 64)
    ]
    last = [one.label.partition(", ")[2] for one in summarise(results)][-2:]
    assert last == [f"temperature fixed, times {n}, width 64" for n in ("1.25", "2.0")]


def test_keys_are_short_where_that_is_clear() -> None:
    keys = ["model.width", "hints.0.task.kind", "hints.1.task.kind", "model.positions.kind", "a.b"]
    short = ["width", "hints.0.task", "hints.1.task", "positions", "b"]
    assert list(short_keys(keys).values()) == short


def test_long_labels_stay_in_the_picture() -> None:
    recipe = find_recipe("sort/standard")
    point = {5: Point(OverSeeds((0.5,), (100,)), None)}
    figure = curves_figure([Series("some words " * 30, recipe, "uniform", point)])
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1


def test_a_sweep_shows_what_it_asked_for_and_no_more(tmp_path: Path) -> None:
    swept = partial(
        taskhint.sweep, tiny(steps=2, warmup_steps=0), tmp_path, lengths=[2, 4], examples=5
    )
    before = swept(seeds=2)
    run = load(next(path.parent for path in tmp_path.rglob("seed-0/recipe.json")))
    evaluate(run, [1, 3, 4], examples=9)
    evaluate(run, [2], examples=9, distribution="rep:2")
    after = swept(seeds=2)
    places = [(row["distribution"], row["length"], row["seeds"]) for row in after.rows()]
    assert places == [("uniform", 2, 2), ("uniform", 4, 2)]
    assert after.rows()[0] == before.rows()[0]
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + 2
    (axes,) = after.plot().axes
    assert np.asarray(axes.lines[0].get_xdata()).tolist() == [2, 4]
