"""`taskhint probe`: figures (PNG and SVG), their numbers (JSON), and one self-contained page that explains them.

DIR/index.html                     the page
DIR/RUN/probe.json, DIR/RUN/*.png, DIR/RUN/*.svg
DIR/comparison-TASK/*.json, ...    with several runs of one task
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from taskhint.probe.attention_figures import (
    heads_comparison,
    maps_figure,
    shares_figure,
    sharpness_figure,
)
from taskhint.probe.bases_figures import bases_figure
from taskhint.probe.comparison import Comparison, compare
from taskhint.probe.first_errors_figures import errors_comparison, errors_figure
from taskhint.probe.lens_figures import projection_figure
from taskhint.probe.mechanisms import MechanismCurves
from taskhint.probe.mechanisms_figures import (
    mechanisms_comparison,
    mechanisms_figure,
    stages_figure,
)
from taskhint.probe.study import Study, as_json, make_plan, study
from taskhint.report.page import STYLE
from taskhint.runs.run import Run, load
from taskhint.system.drawing import as_png, as_svg
from taskhint.system.errors import UserError
from taskhint.system.files import write_atomically
from taskhint.system.tables import text_table

READING = {
    "mechanisms": "How often each step of the algorithm is seen inside the model, by input length, with 95% intervals. "
    "A line that stays at 100% is a mechanism that carries over to longer inputs; where one falls, look there first.",
    "stages": "How often the right next symbol already has the largest dot product with the decoder basis, at each "
    "place of the stream: between which two lines the model finds its answer, and how that fares with length.",
    "projection-input": "A symbol before ⊥. A spike at the token itself in the encoder basis is a copy.",
    "projection-answer": "The same symbol in the answer. Two spikes in the decoder basis after the last attention, at "
    "the token and at its successor, are Identity+Successor; the last MLP should leave only the right one.",
    "projection-delimiter": "⊥ itself. A spike at the smallest input symbol in the decoder basis is the minimum found.",
    "attention-maps": "Every row is a token, every column a token that it looks at; dotted lines frame ⊥.",
    "attention-shares": "Where the attention of the answer's tokens goes. Growing grey is attention that longer inputs "
    "dilute over keys that do not matter.",
    "sharpness": "Left: how much of a head's attention its favourite symbol gets (higher is sharper). Right: entropy "
    "relative to looking at all keys alike (lower is sharper).",
    "first-errors": "Each failed sequence counts once, at its first error. Left: in which way. Middle: how often a "
    "step of each kind is the first to fail. Right: in which tenth of the answer.",
    "bases": "Vectors at right angles have cosine 0. Curves that rise towards distance 1 say that neighbouring symbols "
    "have similar vectors, so their spikes are wider than one symbol.",
    "compared-mechanisms": "The same mechanisms in every run: which of them separates runs that carry over to longer "
    "inputs from those that do not.",
    "compared-heads": "One head of each run, chosen at the shortest length and followed from there: the one of the "
    "last block that looks most at the keys that matter. Where its line falls, attention is diluted.",
    "compared-errors": "In which way each run first fails.",
}
TITLES = {
    "mechanisms": "Mechanisms by length",
    "stages": "Where the answer appears",
    "projection-input": "A symbol in the input",
    "projection-answer": "The same symbol in the answer",
    "projection-delimiter": "⊥, the end of the input",
    "attention-maps": "Attention maps",
    "attention-shares": "Where the answer's attention goes",
    "sharpness": "How sharp attention stays",
    "first-errors": "First errors",
    "bases": "The two bases",
    "compared-mechanisms": "Mechanisms compared",
    "compared-heads": "Attention compared",
    "compared-errors": "First errors compared",
}


@dataclass(frozen=True)
class Section:
    """Figures with a common heading, the folder they go to and the numbers behind them."""

    folder: str
    heading: str
    lead: str
    figures: dict[str, Figure]
    numbers: Any
    table: str = ""

    @cached_property
    def svgs(self) -> dict[str, str]:
        return {name: as_svg(figure) for name, figure in self.figures.items()}


def write_probe(
    paths: Sequence[str],
    out: Path,
    text: str | None = None,
    lengths: Sequence[int] | None = None,
    examples: int = 200,
    progress: bool = False,
) -> list[Study]:
    """Probe runs and write everything below a directory. Bad input is refused before
    anything is computed.
    """
    if (out / "recipe.json").exists():
        raise UserError(f"{out} is a run; choose another --out")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; --out takes a directory")
    runs = named([load(path) for path in paths])
    plans = {name: make_plan(run.task, text, lengths, examples) for name, run in runs.items()}
    studies = [study(run, name, plans[name], progress) for name, run in runs.items()]
    sections = [*map(_compared, compare(studies)), *map(section_of, studies)]
    for section in sections:
        _write_section(out / section.folder, section)
    write_atomically(out / "index.html", page(sections).encode())
    return studies


def named(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs by the names of their directories, with a number where two are called the same."""
    found: dict[str, Run] = {}
    for run in runs:
        base = run.path.resolve().name
        count = 1
        while (name := base if count == 1 else f"{base}-{count}") in found:
            count += 1
        found[name] = run
    return found


def section_of(one: Study) -> Section:
    """What is shown of one run."""
    figures = {"mechanisms": mechanisms_figure(one.mechanisms, one.trained_up_to)}
    figures["stages"] = stages_figure(one.stages, one.trained_up_to)
    for position in one.projections.positions:
        figures[f"projection-{position.place}"] = projection_figure(one.projections, position)
    figures["attention-maps"] = maps_figure(one.maps)
    if one.attention.shares:
        figures["attention-shares"] = shares_figure(one.attention)
        figures["sharpness"] = sharpness_figure(one.attention, one.trained_up_to)
    figures["first-errors"] = errors_figure(one.errors)
    figures["bases"] = bases_figure(one.bases)
    lead = f"{one.recipe}, seed {one.seed}, {one.step} updates; temperature {one.temperature}; "
    lead += f"{one.examples} fresh uniform sequences of each length."
    return Section(one.name, one.name, lead, figures, one.to_json(), _table(one.mechanisms))


def _compared(comparison: Comparison) -> Section:
    figures = {"compared-mechanisms": mechanisms_comparison(comparison)}
    if all(run.heads for run in comparison.runs):
        figures["compared-heads"] = heads_comparison(comparison)
    figures["compared-errors"] = errors_comparison(comparison)
    lead = f"{comparison.task}: " + "; ".join(
        f"{run.name} ({run.recipe})" for run in comparison.runs
    )
    lead += f"; {comparison.examples} fresh uniform sequences of each length."
    folder = f"comparison-{comparison.task}"
    return Section(folder, "Runs compared", lead, figures, as_json(comparison))


def _table(curves: MechanismCurves) -> str:
    lengths = sorted({length for shares in curves.shares.values() for length in shares})
    head = "".join(f"<th>{length}</th>" for length in lengths)
    rows = ""
    for name, shares in curves.shares.items():
        cells = ""
        for share in (shares[length] for length in lengths):
            low, high = share.interval
            shown = (
                "–"
                if share.share is None
                else f"{100 * share.share:.1f}<small>{100 * low:.1f}–{100 * high:.1f}</small>"
            )
            cells += f"<td>{shown}<small>n {share.asked}</small></td>"
        rows += f"<tr><td>{escape(name)}</td>{cells}</tr>"
    header = f"<thead><tr><th>% of positions, by length</th>{head}</tr></thead>"
    return f'<div class="wide"><table>{header}<tbody>{rows}</tbody></table></div>'


def _write_section(folder: Path, section: Section) -> None:
    for name, figure in section.figures.items():
        write_atomically(folder / f"{name}.svg", section.svgs[name].encode())
        figure.set_layout_engine("none")  # it was laid out for the SVG; once is enough
        write_atomically(folder / f"{name}.png", as_png(figure))
    numbers = json.dumps(section.numbers, ensure_ascii=False, allow_nan=False)
    write_atomically(folder / "probe.json", (numbers + "\n").encode())


def page(sections: Iterable[Section]) -> str:
    body = ""
    for section in sections:
        body += f'<h1>{escape(section.heading)}</h1><p class="lead">{escape(section.lead)}</p>'
        for name, svg in section.svgs.items():
            body += f"<h2>{TITLES[name]}</h2><p>{READING[name]}</p>{svg}"
            body += section.table if name == "mechanisms" else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>taskhint: inside the model</title><style>{STYLE}h1 {{ margin-top: 4rem; }}</style></head><body>
{body}
<p>Projections are plain dot products of the stream with the embedding rows (encoder basis) and with the main head's
unembedding rows (decoder basis), without the last norm and the bias. Shares of positions carry Wilson's 95% interval,
widened for positions of one sequence that go together; means over heads carry Student's t over the sequences. Nothing
here says how other seeds would do.</p>
</body></html>
"""


def mechanisms_table(studies: Sequence[Study]) -> str:
    """The shares in percent as plain text, a table per run."""
    text = ""
    for one in studies:
        lengths = sorted(
            {length for shares in one.mechanisms.shares.values() for length in shares}
        )
        rows = [
            [name, *(_percent(shares[n].share) for n in lengths)]
            for name, shares in one.mechanisms.shares.items()
        ]
        text += f"{one.name}: {one.recipe}, seed {one.seed}, {one.step} updates, {one.examples} sequences a length\n"
        text += text_table(["% by length", *(str(length) for length in lengths)], rows) + "\n"
    return text


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
