"""Packs the results of runs into one file per recipe: what is kept in results/.

    .venv/bin/python tools/pack_results.py reproduced --out results/reproduce

Every run below the first directory is read; NAME/seed-0, NAME/seed-1, ... go to NAME.runs.json.
What the files in --out hold already stays, and of two results of one run all that the longer
trained one has. Packing again changes nothing. Weights, metrics and the runs themselves are left
where they are.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from taskhint.evaluation.results import PACKED, Result, find_results, one_per_run, packed
from taskhint.runs.curve import PLAIN
from taskhint.system.files import read_json, write_atomically

LONGEST_LINE = 99


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for path in pack(options.runs, options.out):
        print(path)


def pack(runs: Path, out: Path) -> list[Path]:
    """The files that were written."""
    packed_here = any(out.glob(f"*{PACKED}"))
    there = [one for one in find_results(out) if one.path.parent == out] if packed_here else []
    names = {result.family: result.path.name.removesuffix(PACKED) for result in there}
    families: dict[str, list[Result]] = {}
    for result in [*there, *(one for one in find_results(runs) if not one.empty)]:
        families.setdefault(result.family, []).append(result)
        if result.family not in names:
            measured = "" if result.precision == PLAIN else f"-{result.precision}"
            names[result.family] = name_of(result.path, runs) + measured
    written = []
    for family, results in families.items():
        path = out / (names[family] + PACKED)
        environments = {one.recipe.seed: environment(one) for one in results}
        known = {seed: noted for seed, noted in environments.items() if noted is not None}
        write_atomically(path, as_lines(packed(one_per_run(results), known)))
        written.append(path)
    if len(set(written)) < len(written):
        raise SystemExit("two recipes have runs of the same name; rename a directory")
    return written


def name_of(run: Path, runs: Path) -> str:
    parts = run.relative_to(runs).parts
    kept = [part for part in parts if not re.fullmatch(r"seed-\d+", part)]
    return "-".join(kept).removesuffix(PACKED) or run.resolve().name


def environment(result: Result) -> Any:
    """Where a run was made, as its directory or its file says."""
    if result.path.is_dir():
        path = result.path / "environment.json"
        return read_json(path) if path.exists() else None
    return read_json(result.path)["seeds"][str(result.recipe.seed)].get("environment")


def as_lines(data: Any) -> bytes:
    """JSON with every innermost object on one line, where it fits."""

    def joined(found: re.Match[str]) -> str:
        line = re.sub(r"\s*\n\s*", " ", found[0]).replace("{ ", "{").replace(" }", "}")
        start = found.start() - found.string.rfind("\n", 0, found.start()) - 1
        return line if start + len(line) < LONGEST_LINE else found[0]

    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    return (re.sub(r"\{[^{}\[\]]*\}", joined, text) + "\n").encode()


if __name__ == "__main__":
    main()
