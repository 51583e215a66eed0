"""What is kept of runs: read from their directories, or from files that hold the results of many.

A file NAME.runs.json has one recipe and, by seed, what the directories of its runs hold apart from
weights and metrics:

    {"recipe": …, "seeds": {"0": {"step": …, "curves": {"uniform": {"20": {"examples": …,
     "right": …}}}, "mechanisms": …, "reaches": …, "environment": …}}}

Of a run that was measured with several precisions there is a result for each. A packed file has
one precision, and names it if that is not float32.

Nothing here reads a model or imports torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from taskhint.recipes.recipe import Recipe
from taskhint.runs.curve import PLAIN, LengthCurve, load_curves, measured_in
from taskhint.runs.reach import KeptReaches, load_reaches
from taskhint.runs.shares import KeptShares, load_shares
from taskhint.system.devices import PRECISIONS
from taskhint.system.errors import UserError, warn
from taskhint.system.files import read_json
from taskhint.system.settings import UnknownKindError, to_json

PACKED = ".runs.json"


@dataclass(frozen=True)
class Result:
    """What is kept of one run: the curves of its newest evaluated checkpoint by distribution, the
    shares of its mechanisms, and how far it reaches.
    """

    path: Path  # of the run's directory, or of the file
    recipe: Recipe
    curves: dict[str, LengthCurve]
    mechanisms: KeptShares
    reaches: KeptReaches = KeptReaches()
    precision: str = PLAIN

    @cached_property
    def family(self) -> str:
        """The same for results that differ in nothing but their seed."""
        return family_of(self.recipe, self.precision)

    @property
    def empty(self) -> bool:
        return not self.curves and not self.mechanisms.shares

    @property
    def step(self) -> int:
        return max((curve.step for curve in self.curves.values()), default=self.mechanisms.step)

    def merged(self, other: Result) -> Result:
        """Of two results of the same run all that the longer trained one has."""
        older, newer = sorted((self, other), key=lambda one: one.step)
        if older.step < newer.step:
            return newer
        curves = {
            name: curve.merged(older.curves[name]) if name in older.curves else curve
            for name, curve in newer.curves.items()
        }
        shares = newer.mechanisms.merged(older.mechanisms)
        return replace(
            newer,
            curves={**older.curves, **curves},
            mechanisms=shares,
            reaches=newer.reaches.merged(older.reaches),
        )


def family_of(recipe: Recipe, precision: str = PLAIN) -> str:
    same = recipe.change(seed=0).fingerprint()
    return same if precision == PLAIN else f"{same} {precision}"


Reader = Callable[[Path], list[Result]]


def find_results(place: Path, all_steps: bool = False) -> list[Result]:
    """Those of every run below a directory, at any depth. What cannot be read is skipped, with a
    warning.

    Of a run and a precision the newest evaluated checkpoint; with `all_steps`, each evaluated one.
    """
    readers = _readers(place, read_steps if all_steps else read_run)
    if not readers:
        raise UserError(f"{place} holds no run")
    results: list[Result] = []
    errors: list[UserError] = []
    for path, read in readers:
        try:
            results += read(path)
        except UserError as error:
            errors.append(error)
    if not results:
        raise errors[0]
    for problem in errors:
        warn(f"{problem}; skipped")
    return results


def _readers(place: Path, read_directory: Reader) -> list[tuple[Path, Reader]]:
    if place.name.endswith(PACKED) and place.is_file():
        return [(place, read_packed)]
    if not place.is_dir():
        raise UserError(f"{place} is not a directory")
    found: list[tuple[Path, Reader]] = [
        (path.parent, read_directory) for path in sorted(place.rglob("recipe.json"))
    ]
    files = sorted(place.rglob(f"*{PACKED}"), key=lambda path: str(path).removesuffix(PACKED))
    return [*found, *((path, read_packed) for path in files)]


def read_run(path: Path) -> list[Result]:
    recipe = _recipe(path)
    found = [_measured(path, recipe, precision) for precision in _precisions(path)]
    return [one for one in found if not one.empty] or found[:1]


def _precisions(path: Path) -> Iterator[str]:
    """float32, and every other one with which the run was measured."""
    yield PLAIN
    there = {entry.name for entry in os.scandir(path)}
    yield from (precision for precision in PRECISIONS if precision in there)


def _measured(path: Path, recipe: Recipe, precision: str) -> Result:
    curves = {curve.distribution: curve for curve in load_curves(path, precision=precision)}
    place = measured_in(path, precision)
    return Result(path, recipe, curves, load_shares(place), load_reaches(place), precision)


def _recipe(path: Path) -> Recipe:
    try:
        return Recipe.from_json(read_json(path / "recipe.json"), f"{path}/recipe.json")
    except UnknownKindError:
        from taskhint.runs.run import read_recipe  # imports torch, and knows whose file it was

        return read_recipe(path)


def read_steps(path: Path) -> list[Result]:
    """The curves of every evaluated checkpoint, the oldest first."""
    recipe = _recipe(path)
    found: dict[tuple[str, int], dict[str, LengthCurve]] = {}
    for precision in _precisions(path):
        for curve in load_curves(path, all_steps=True, precision=precision):
            found.setdefault((precision, curve.step), {})[curve.distribution] = curve
    return [
        Result(path, recipe, curves, KeptShares(), precision=precision)
        for (precision, _), curves in found.items()
    ]


def read_packed(path: Path) -> list[Result]:
    data = read_json(path)
    if not isinstance(data, dict) or not isinstance(data.get("seeds"), dict):
        raise UserError(f"{path} is damaged: it does not hold results by seed")
    recipe = Recipe.from_json(data.get("recipe"), f"{path}: recipe")
    precision = data.get("precision", PLAIN)
    return [
        _unpacked(path, recipe.change(seed=_number(seed, path)), kept, precision)
        for seed, kept in data["seeds"].items()
    ]


def _number(seed: str, path: Path) -> int:
    if not seed.isdecimal():
        raise UserError(f"{path} is damaged: {seed!r:.40} is not a seed")
    return int(seed)


def _unpacked(path: Path, recipe: Recipe, kept: Any, precision: Any) -> Result:
    where = f"{path}, seed {recipe.seed}"
    if not isinstance(kept, dict) or not isinstance(kept.get("curves"), dict):
        raise UserError(f"{where} is damaged: it has no curves")
    about: dict[str, Any] = {"run": str(path), "recipe": recipe.name, "task": recipe.task.kind}
    about |= {"seed": recipe.seed, "step": kept.get("step"), "precision": precision}
    curves = {
        name: LengthCurve.from_json({**about, "distribution": name, "scores": scores}, where)
        for name, scores in kept["curves"].items()
    }
    mechanisms = kept.get("mechanisms")
    shares = KeptShares() if mechanisms is None else KeptShares.from_json(mechanisms, where)
    reaches = kept.get("reaches")
    far = KeptReaches() if reaches is None else KeptReaches.from_json(reaches, where)
    return Result(path, recipe, curves, shares, far, precision)


def packed(results: Iterable[Result], environments: dict[int, Any]) -> dict[str, Any]:
    """What a file says of runs of one recipe, measured with one precision."""
    seeds: dict[int, dict[str, Any]] = {}
    recipe, precision = None, PLAIN
    for result in sorted(results, key=lambda one: one.recipe.seed):
        recipe, seed = recipe or result.recipe.change(seed=0), result.recipe.seed
        precision = result.precision
        curves = {name: _scores(curve) for name, curve in sorted(result.curves.items())}
        seeds[seed] = {"step": result.step, "curves": curves}
        if result.mechanisms.shares:
            seeds[seed]["mechanisms"] = to_json(result.mechanisms)
        if result.reaches.found:
            seeds[seed]["reaches"] = to_json(result.reaches)
        if seed in environments:
            seeds[seed]["environment"] = environments[seed]
    measured = {} if precision == PLAIN else {"precision": precision}
    by_seed = {str(seed): kept for seed, kept in seeds.items()}
    return {"recipe": to_json(recipe), **measured, "seeds": by_seed}


def _scores(curve: LengthCurve) -> dict[str, Any]:
    return {
        str(n): {name: value for name, value in to_json(score).items() if value is not None}
        for n, score in sorted(curve.scores.items())
    }


def one_per_run(results: Iterable[Result]) -> list[Result]:
    """Results of one run and precision that stand in several places, as one."""
    found: dict[tuple[str, str], Result] = {}
    for result in results:
        key = (result.recipe.fingerprint(), result.precision)
        found[key] = found[key].merged(result) if key in found else result
    return list(found.values())
