"""Writes results/probing.json and the figures of docs/probing.md.

    .venv/bin/python -m tools.measure_probing --out probed --examples 100
    .venv/bin/python -m tools.measure_probing --out probed --runs trained

The charts are those of the repository's reference model and of the constructed one. With --runs, a
directory of the trained runs that the page compares, these are probed too: results/probing.json,
of which tools/fill_pages.py makes the page's tables, and the figures that compare runs. All of it
goes below --out; the page keeps the figures named here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

from taskhint.construct import construct
from taskhint.report.probe_page import write_probe
from taskhint.system.files import json_bytes, write_atomically

ROOT = Path(__file__).parent.parent
FIGURES_OF_PAGE = ROOT / "docs" / "figures"
RESULT = ROOT / "results" / "probing.json"
REFERENCE = ROOT / "results" / "models" / "sort-best"
RUNS = ("plain", "successor", "tempered", "successor-tempered")  # the page says how to train them
PROJECTIONS = ("projection-input", "projection-answer", "projection-delimiter")
BY_LENGTH = ("stages", "attention-maps", "attention-shares", "sharpness", "first-errors", "bases")
CHARTS = {"sort-best": (*PROJECTIONS, *BY_LENGTH), "constructed": PROJECTIONS}
COMPARED = {"comparison-sort": ("compared-mechanisms", "compared-heads", "compared-errors")}
FEW = 4  # the projections of one input need no other sequences
KEPT = ("recipe", "seed", "step", "temperature", "examples")
KEPT_PARTS = ("mechanisms", "stages", "errors", "bases")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=500)
    options = parser.parse_args()
    built = construct(options.out / "runs" / "constructed").path
    for run, examples in ((REFERENCE, options.examples), (built, FEW)):
        probe([run], options.out / "charts" / run.name, examples)
        copy_figures(options.out / "charts" / run.name, {run.name: CHARTS[run.name]})
    if options.runs:
        runs = [options.runs / name for name in RUNS]
        names = probe([*runs, built], options.out / "compared", options.examples)
        copy_figures(options.out / "compared", COMPARED)
        keep_numbers(options.out / "compared", names)


def probe(runs: list[Path], out: Path, examples: int) -> list[str]:
    studies = write_probe([str(path) for path in runs], out, examples=examples, progress=True)
    return [study.about.name for study in studies]


def keep_numbers(out: Path, names: list[str]) -> None:
    documents = {name: json.loads((out / name / "probe.json").read_text()) for name in names}
    compared = json.loads((out / "comparison-sort" / "probe.json").read_text())
    kept = {
        name: {part: document[part] for part in (*KEPT, *KEPT_PARTS)}
        for name, document in documents.items()
    }
    write_atomically(RESULT, json_bytes({"runs": kept, "compared": compared}))


def copy_figures(out: Path, figures: Mapping[str, tuple[str, ...]]) -> None:
    for folder, names in figures.items():
        for name in names:
            few_colours = Image.open(out / folder / f"{name}.png").convert("RGB").quantize(128)
            few_colours.save(FIGURES_OF_PAGE / f"probe-{folder}-{name}.png", optimize=True)


if __name__ == "__main__":
    main()
