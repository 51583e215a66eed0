"""Writes results/probing.json and the figures of docs/probing.md, from the demo's models.

    .venv/bin/python tools/measure_probing.py demo --out probed

DEMO holds the runs of `taskhint demo`; those that are there are probed, and the constructed model
beside them. All of it goes below --out; the page keeps the figures named in FIGURES, and
results/probing.json what tools/fill_pages.py makes its tables of.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from PIL import Image

from taskhint.construct import construct
from taskhint.report.probe_page import write_probe
from taskhint.system.files import json_bytes, write_atomically

ROOT = Path(__file__).parent.parent
FIGURES_OF_PAGE = ROOT / "docs" / "figures"
RESULT = ROOT / "results" / "probing.json"
RUNS = ("plain", "successor", "tempered", "successor-tempered")
CHARTS = ("projection-input", "projection-answer", "projection-delimiter")
FIGURES = {
    "comparison-sort": ("compared-mechanisms", "compared-heads", "compared-errors"),
    "tempered": (
        *CHARTS,
        "stages",
        "attention-maps",
        "attention-shares",
        "sharpness",
        "first-errors",
        "bases",
    ),
    "plain": CHARTS,
    "successor": CHARTS,
    "constructed": CHARTS,
}
KEPT = ("recipe", "seed", "step", "temperature", "examples")
KEPT_PARTS = ("mechanisms", "stages", "errors", "bases")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("demo", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=500)
    options = parser.parse_args()
    built = construct(options.out / "runs" / "constructed")
    runs = [options.demo / name for name in RUNS if (options.demo / name).is_dir()]
    studies = write_probe(
        [str(path) for path in (*runs, built.path)],
        options.out,
        examples=options.examples,
        progress=True,
    )
    names = [study.about.name for study in studies]
    documents = {
        name: json.loads((options.out / name / "probe.json").read_text()) for name in names
    }
    compared = json.loads((options.out / "comparison-sort" / "probe.json").read_text())
    copy_figures(options.out)
    kept = {
        name: {part: document[part] for part in (*KEPT, *KEPT_PARTS)}
        for name, document in documents.items()
    }
    write_atomically(RESULT, json_bytes({"runs": kept, "compared": compared}))


def copy_figures(out: Path) -> None:
    for folder, names in FIGURES.items():
        for name in names:
            if (out / folder / f"{name}.png").exists():
                few_colours = Image.open(out / folder / f"{name}.png").convert("RGB").quantize(128)
                few_colours.save(FIGURES_OF_PAGE / f"probe-{folder}-{name}.png", optimize=True)


if __name__ == "__main__":
    main()
