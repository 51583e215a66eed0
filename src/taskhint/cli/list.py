"""`taskhint list`: recipes, tasks and hints, as text or as a page of the documentation."""

from __future__ import annotations

import argparse

from taskhint.cli.arguments import Parser
from taskhint.recipes import ENTRIES, measured
from taskhint.recipes.known import known_to_carry
from taskhint.system.plugins import own_name
from taskhint.tasks import Task

EXAMPLE = "taskhint list"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--markdown", action="store_true", help="as the documentation page docs/recipes.md"
    )


def run(options: argparse.Namespace) -> None:
    print(as_markdown() if options.markdown else as_text(), end="")


def as_text() -> str:
    lines = [
        "recipes (pocket scale; minutes on one core; accuracy on uniform sequences, mean over "
        "seeds)"
    ]
    width = max(len(name) for name in ENTRIES)
    for entry in ENTRIES.values():
        known = measured(entry.name)
        found = f"; {known.minutes:g} min; {known.result}" if known else ""
        lines.append(f"  {entry.name:<{width}}  {entry.about}{found}")
    lines += ["", "tasks by family, and what is known to carry over to longer inputs"]
    for family, tasks in families().items():
        lines.append(f"  {family}")
        for kind, task in tasks.items():
            carries = known_to_carry(task)
            lines.append(
                f"    {kind:<{width - 2}}  {task.about}" + (f"; {carries}" if carries else "")
            )
    lines += ["", "hints"]
    lines += [
        f"  {kind:<{width}}  of {task.hint_for}: {task.about}"
        for kind, task in Task.kinds().items()
        if task.hint_for
    ]
    return "\n".join(lines) + "\n"


def families() -> dict[str, dict[str, type[Task]]]:
    """The tasks by the module that has them, hints left out."""
    found: dict[str, dict[str, type[Task]]] = {}
    for kind, task in Task.kinds().items():
        if not task.hint_for:
            family = own_name(task.__module__).rpartition(".")[2].replace("_", " ")
            found.setdefault(family, {})[kind] = task
    return found


def as_markdown() -> str:
    """docs/recipes.md; written by `make docs`, kept true by a test."""
    lines = [
        "# Recipes, tasks and hints",
        "",
        (
            "`taskhint train NAME --out DIR` trains one. Times are one run at pocket scale on one "
            "core;"
        ),
        "`--scale paper` takes the paper's settings instead.",
        (
            "Results are full-sequence accuracy on 1,000 uniform sequences per length and seed "
            "where nothing else is said:"
        ),
        "means over the seeds that are in [results/reproduce](../results/reproduce).",
        "",
        "| recipe | what | minutes | what to expect |",
        "|---|---|---|---|",
    ]
    for entry in ENTRIES.values():
        known = measured(entry.name)
        found = f"{known.minutes:g} | {known.result}" if known else " | "
        lines.append(f"| `{entry.name}` | {entry.about} | {found} |")
    lines += ["", "| task | hint of | what |", "|---|---|---|"]
    lines += [
        f"| `{kind}` | {task.hint_for} | {task.about} |" for kind, task in Task.kinds().items()
    ]
    return "\n".join(lines) + "\n"
