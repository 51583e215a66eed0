"""Every evaluation of many runs as one table, for other tools: csv, parquet, data frames.

A row per run, test distribution and length: the score, and the run's recipe as columns that are
named as `--set` names its settings. Nothing here reads a model or imports torch.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from taskhint.evaluation.results import PACKED, Result, find_results
from taskhint.runs.curve import data_frames
from taskhint.system.dotted import flat_settings
from taskhint.system.errors import UserError
from taskhint.system.files import as_path, write_atomically

Plain = str | int | float | bool | None
STDOUT = "-"
SUFFIXES = (".csv", ".parquet")
NOT_EVALUATED = "none of the runs has been evaluated; use `taskhint evaluate` first"
_LARGEST = 1 << 63  # what other tools take for a whole number

# As in LengthCurve.to_frame; the settings come after them.
FIRST: dict[str, type[Any]] = {
    "run": str,
    "recipe": str,
    "distribution": str,
    "precision": str,
    "seed": int,
    "step": int,
    "length": int,
    "accuracy": float,
    "low": float,
    "high": float,
    "examples": int,
    "right": int,
    "edit_distance": float,
}
_ELSEWHERE = ("name", "seed")  # of a recipe: among the first columns


@dataclass(frozen=True)
class ResultTable:
    """Columns of equal length by name. All values of a column are of one type, or None."""

    columns: dict[str, Sequence[Plain]]

    def __len__(self) -> int:
        return len(self.columns["run"])

    def __iter__(self) -> Iterator[dict[str, Plain]]:
        """The rows."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def to_frame(self) -> Any:
        """A pandas data frame (polars where there is no pandas)."""
        return data_frames().DataFrame(self.columns)

    def to_csv(self) -> str:
        """A line per row below the names of the columns; nothing where there is no value."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return text.getvalue()

    def write(self, path: str | os.PathLike[str]) -> Path:
        """A file that ends in .csv or .parquet, whole or not at all."""
        out = as_path(path, "the table")
        check_name(out)
        data = _parquet(self.columns) if out.suffix.lower() == ".parquet" else self._csv_bytes()
        write_atomically(out, data)
        return out

    def _csv_bytes(self) -> bytes:
        return self.to_csv().encode()

    def __repr__(self) -> str:
        runs = len(set(self.columns["run"]))
        return f"ResultTable({len(self)} rows of {runs} runs, {len(self.columns)} columns)"


def results(*places: str | os.PathLike[str], all_steps: bool = False) -> ResultTable:
    """Every evaluation of every run below directories, packed results among them.

    Of a run the newest evaluated checkpoint counts; with `all_steps`, each one that was evaluated.
    What cannot be read is skipped, with a warning.
    """
    if not places:
        raise UserError("results takes at least one directory with runs in it")
    found: dict[tuple[str, int, str, int], Result] = {}
    for place in places:
        for result in find_results(as_path(place, "a directory of runs"), all_steps):
            seed, precision = result.recipe.seed, result.precision
            key = (str(result.path.resolve()), seed, precision, result.step)
            found.setdefault(key, result)  # directories may lie inside one another
    return _table([result for result in found.values() if result.curves])


def check_name(out: Path) -> None:
    if out.suffix.lower() not in SUFFIXES:
        allowed = f"name a file that ends in {' or '.join(SUFFIXES)}"
        raise UserError(f"{out}: a table is written as csv or parquet; {allowed}")
    if out.suffix.lower() == ".parquet":
        _parquet_library()


def _table(found: Sequence[Result]) -> ResultTable:
    settings = [_settings(result) for result in found]
    keys = dict.fromkeys(key for one in settings for key in one)
    columns: dict[str, list[Plain]] = {name: [] for name in (*FIRST, *keys)}
    for result, own in zip(found, settings, strict=True):
        for row in _rows(result):
            for name, value in row.items():
                columns[name].append(value)
            for key in keys:
                columns[key].append(own.get(key))
    if not columns["run"]:
        raise UserError(NOT_EVALUATED)
    told = {name: _one_type(values) for name, values in columns.items() if _told(name, values)}
    return ResultTable(told)


def _told(name: str, values: Sequence[Plain]) -> bool:
    """Whether a column says anything of any run."""
    return name in FIRST or any(value is not None for value in values)


def _settings(result: Result) -> dict[str, Plain]:
    flat = flat_settings(result.recipe)
    return {key: value for key, value in flat.items() if key not in _ELSEWHERE}


def _rows(result: Result) -> Iterator[dict[str, Plain]]:
    """The first columns. A run in a packed file is FILE#SEED."""
    seed = result.recipe.seed
    packed = result.path.name.endswith(PACKED)
    about: dict[str, Plain] = {
        "run": f"{result.path}#{seed}" if packed else str(result.path),
        "recipe": result.recipe.name,
        "seed": seed,
        "precision": result.precision,
    }
    for name, curve in sorted(result.curves.items()):
        for length, score in sorted(curve.scores.items()):
            about |= {"distribution": name, "step": curve.step, "length": length}
            yield {**about, "edit_distance": None, **score.to_json()}


def _one_type(values: Sequence[Plain]) -> Sequence[Plain]:
    """Settings of one name can be of several types: numbers become floats, anything else texts."""
    kind = _kind(values)
    if kind is None or {type(value) for value in values} <= {kind, type(None)}:
        return values
    return [None if value is None else kind(value) for value in values]


def _kind(values: Iterable[Plain]) -> type[Any] | None:
    """The one type that holds all values; None where there is no value."""
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if not kinds:
        return None
    if kinds == {int, float}:
        return float
    if kinds == {int} and max(map(abs, present)) >= _LARGEST:  # type: ignore[arg-type]
        return str
    return kinds.pop() if len(kinds) == 1 else str


def _parquet(columns: Mapping[str, Sequence[Plain]]) -> bytes:
    library, out = _parquet_library(), io.BytesIO()
    if library.__name__ == "polars":
        kinds = {name: FIRST.get(name) or _kind(values) for name, values in columns.items()}
        library.DataFrame(dict(columns), schema=kinds).write_parquet(out)
    else:
        import_module("pyarrow.parquet").write_table(_arrow_table(library, columns), out)
    return out.getvalue()


def _arrow_table(arrow: Any, columns: Mapping[str, Sequence[Plain]]) -> Any:
    types: dict[type[Any] | None, Any] = {
        str: arrow.string(),
        int: arrow.int64(),
        float: arrow.float64(),
        bool: arrow.bool_(),
    }
    return arrow.table(
        {
            name: arrow.array(values, types.get(FIRST.get(name) or _kind(values)))
            for name, values in columns.items()
        }
    )


def _parquet_library() -> Any:
    for name in ("pyarrow", "polars"):
        with suppress(ImportError):
            return import_module(name)
    raise UserError(
        "parquet needs pyarrow or polars: pip install 'taskhint[results]'; or use .csv"
    )
