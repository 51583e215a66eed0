"""`taskhint probe`: figures (PNG and SVG), their numbers (JSON), and one self-contained page.

DIR/index.html                     the page
DIR/RUN/probe.json, DIR/RUN/*.png, DIR/RUN/*.svg
DIR/comparison-TASK/*.json, ...    with several runs of one task
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from taskhint.probe.probe import Comparison, Shown, Table
from taskhint.probe.study import EXAMPLES, Study, compare, compared_json, make_plan, study
from taskhint.report.style import STYLE
from taskhint.runs.curve import in_precision
from taskhint.runs.run import Run, load
from taskhint.system.drawing import as_panels, as_png, as_svg
from taskhint.system.errors import UserError
from taskhint.system.files import write_atomically
from taskhint.system.tables import text_table


@dataclass(frozen=True)
class Section:
    """Figures with a common heading, the folder they go to and the numbers behind them."""

    folder: str
    heading: str
    lead: str
    shown: list[Shown]
    numbers: Any


def write_probe(
    paths: Sequence[str | Run],
    out: Path,
    text: str | None = None,
    lengths: Sequence[int] | None = None,
    examples: int = EXAMPLES,
    progress: bool = False,
    probes: Sequence[str] | None = None,
) -> list[Study]:
    """Probe runs and write everything below a directory. Bad input is refused before anything is
    computed.

    `probes` names the kinds of probes to use; without it, all that have a meaning.
    """
    if (out / "recipe.json").exists():
        raise UserError(f"{out} is a run; choose another --out")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; --out takes a directory")
    runs = named([path if isinstance(path, Run) else load(path) for path in paths])
    plans = {
        name: make_plan(run.task, text, lengths, examples, probes) for name, run in runs.items()
    }
    studies = [study(run, name, plans[name], progress) for name, run in runs.items()]
    compared = [_compared(one, studies) for one in compare(studies)]
    sections = [*(one for one in compared if one.shown), *map(section_of, studies)]
    for section in sections:
        _write_section(out / section.folder, section)
    write_atomically(out / "index.html", page(sections).encode())
    return studies


def named(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs by the ends of their paths, as long as it takes to tell them apart; a run that is given
    twice gets a number.
    """
    found: dict[str, Run] = {}
    paths = [run.path.resolve() for run in runs]
    for run, path in zip(runs, paths, strict=True):
        base = _end_of(path, set(paths) - {path})
        count = 1
        while (name := base if count == 1 else f"{base}-{count}") in found:
            count += 1
        found[name] = run
    return found


def _end_of(path: Path, others: set[Path]) -> str:
    """The shortest end of a path that no other path has."""
    parts = path.parts[1:]
    for count in range(1, len(parts)):
        end = parts[-count:]
        if all(other.parts[-count:] != end for other in others):
            return "/".join(end)
    return "/".join(parts)


def section_of(one: Study) -> Section:
    """What is shown of one run."""
    about = one.about
    lead = f"{about.recipe}, seed {about.seed}, {about.step} updates; "
    lead += f"temperature {about.temperature}{in_precision(about.precision, '; ')}; "
    lead += _sequences(about.examples)
    return Section(about.name, about.name, lead, one.shown(), one.to_json())


def _compared(comparison: Comparison, studies: Sequence[Study]) -> Section:
    """What is shown of several runs of one task, by the probes that looked at all of them."""
    same = [one for one in studies if one.about.task == comparison.task]
    shared = [
        probe for kind, probe in same[0].probes.items() if all(kind in one.probes for one in same)
    ]
    shown = [one for probe in shared for one in probe.draw_compared(comparison)]
    runs = "; ".join(
        f"{run.about.name} ({run.about.recipe}{in_precision(run.about.precision)})"
        for run in comparison.runs
    )
    lead = f"{comparison.task}: {runs}; {_sequences(comparison.examples)}"
    folder = f"comparison-{comparison.task}"
    return Section(folder, "Runs compared", lead, shown, compared_json(comparison))


def _sequences(examples: int) -> str:
    return f"{examples} fresh uniform sequences of each length."


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in table.header)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    table_ = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="wide">{table_}</div>'


def _cell(lines: tuple[str, ...]) -> str:
    small = "".join(f"<small>{escape(line)}</small>" for line in lines[1:])
    return f"<td>{escape(lines[0])}{small}</td>"


def _write_section(folder: Path, section: Section) -> None:
    for one in section.shown:
        write_atomically(folder / f"{one.name}.svg", as_svg(one.figure).encode())
        one.figure.set_layout_engine("none")  # it was laid out for the SVG; once is enough
        write_atomically(folder / f"{one.name}.png", as_png(one.figure))
    numbers = json.dumps(section.numbers, ensure_ascii=False, allow_nan=False)
    write_atomically(folder / "probe.json", (numbers + "\n").encode())


def page(sections: Iterable[Section]) -> str:
    body = ""
    for section in sections:
        body += f'<h1>{escape(section.heading)}</h1><p class="lead">{escape(section.lead)}</p>'
        for one in section.shown:
            body += f"<h2>{escape(one.title)}</h2><p>{escape(one.caption, quote=False)}</p>"
            body += as_panels(one.figure, one.title) + (_table(one.table) if one.table else "")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>taskhint: inside the model</title>
<style>{STYLE}h1 {{ margin-top: 4rem; }}</style></head><body>
{body}
<p>Projections are plain dot products of the stream with the embedding rows (encoder basis) and
with the main head's unembedding rows (decoder basis), without the last norm and the bias. Shares
of positions carry Wilson's 95% interval, widened for positions of one sequence that go together;
means over heads carry Student's t over the sequences. Nothing here says how other seeds would
do.</p>
</body></html>
"""


def mechanisms_table(studies: Sequence[Study]) -> str:
    """The shares in percent as plain text, a table per run."""
    text = ""
    for one in studies:
        about, curves = one.about, one.found.get("mechanisms")
        text += f"{about.name}: {about.recipe}, seed {about.seed}, {about.step} updates, "
        text += f"{about.examples} sequences a length{in_precision(about.precision)}\n"
        if curves is None:
            continue
        lengths = sorted({length for shares in curves.shares.values() for length in shares})
        rows = [
            [name, *(_percent(shares[n].share) for n in lengths)]
            for name, shares in curves.shares.items()
        ]
        text += text_table(["% by length", *(str(length) for length in lengths)], rows) + "\n"
    return text


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
