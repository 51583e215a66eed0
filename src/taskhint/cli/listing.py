"""What there is to choose from: recipes, tasks and hints, as text for a terminal and as a page of the documentation."""

from __future__ import annotations

from taskhint.recipes import ENTRIES
from taskhint.tasks import HINTS, TASKS


def as_text() -> str:
    lines = ["recipes (pocket scale; minutes on one core; accuracy on uniform sequences, mean over seeds)"]
    width = max(len(name) for name in ENTRIES)
    for entry in ENTRIES.values():
        lines.append(f"  {entry.name:<{width}}  {entry.about}; {entry.minutes:g} min; {entry.result}")
    lines += ["", "tasks"]
    lines += [f"  {kind:<{width}}  {TASKS[kind].about}" for kind in HINTS]
    lines += ["", "hints"]
    for main, hints in HINTS.items():
        lines += [f"  {hint.kind:<{width}}  of {main}: {hint.about}" for hint in hints]
    return "\n".join(lines) + "\n"


def as_markdown() -> str:
    """docs/recipes.md; written by `make docs`, kept true by a test."""
    lines = [
        "# Recipes, tasks and hints",
        "",
        "`taskhint train NAME --out DIR` trains one. Times are one run at pocket scale on one core;",
        "`--scale paper` takes the paper's settings instead.",
        "Results are full-sequence accuracy on 1,000 uniform sequences per length and seed where nothing else is said:",
        "means over the seeds that are in [results/reproduce](../results/reproduce).",
        "",
        "| recipe | what | minutes | what to expect |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{e.name}` | {e.about} | {e.minutes:g} | {e.result} |" for e in ENTRIES.values()]
    lines += ["", "| task | hint of | what |", "|---|---|---|"]
    owner = {hint.kind: main for main, hints in HINTS.items() for hint in hints}
    lines += [f"| `{kind}` | {owner.get(kind, '')} | {task.about} |" for kind, task in TASKS.items()]
    return "\n".join(lines) + "\n"
