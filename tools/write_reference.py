"""The reference of the documentation, taken from the code: commands, settings, Python names.

.venv/bin/python -m tools.write_reference DIRECTORY
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import taskhint
from taskhint.cli import COMMANDS, _command_parser
from taskhint.model.config import ModelConfig
from taskhint.model.positions import Positions
from taskhint.model.softmax import Normaliser, Temperature
from taskhint.recipes.curriculum import Curriculum
from taskhint.recipes.optimisers import Optimiser
from taskhint.recipes.recipe import Hint, Recipe
from taskhint.system.settings import Family, default_of, has_default, to_json, types_of
from taskhint.system.tables import markdown_table
from taskhint.tasks import Inputs, Lengths, Task

FAMILIES: tuple[type[Family], ...] = (
    Task,
    Lengths,
    Inputs,
    Curriculum,
    Positions,
    Temperature,
    Normaliser,
    Optimiser,
)


def write_reference(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    pages = {"commands": commands(), "settings": settings(), "python": python_names()}
    for name, text in pages.items():
        page = directory / f"{name}.md"
        if not page.exists() or page.read_text() != text:  # else Sphinx would build it anew
            page.write_text(text)


def commands() -> str:
    """Every command as its --help prints it."""
    os.environ["COLUMNS"] = "96"
    helps = (
        f"## {name}\n\n```text\n{_command_parser(name).format_help().strip()}\n```\n"
        for name in COMMANDS
    )
    return "# Commands\n\n`taskhint COMMAND --help` prints the same.\n\n" + "\n".join(helps)


def settings() -> str:
    """Every key of a recipe, and every kind that a family has."""
    parts = [
        "# Settings of a recipe",
        "`--set KEY=VALUE` changes a setting. `--set model.positions=rope` takes a kind with its "
        "defaults; `--set model.positions.base=500` changes a setting of it.",
        *_described("Recipe", Recipe, ""),
        *_described("model", ModelConfig, "model."),
        *_described("hints", Hint, "hints.NAME."),
    ]
    for family in FAMILIES:
        parts.append(f"## Kinds of {family.family}")
        for kind, member in sorted(family.kinds().items()):
            parts += _described(f"`{kind}`", member, "", level=3)
    return "\n\n".join(parts) + "\n"


def _described(title: str, cls: type[Any], prefix: str, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {title}"
    yield _prose(inspect.getdoc(cls) or "")
    hints = types_of(cls)
    rows = [
        [f"`{prefix}{field.name}`", _type(hints[field.name]), _default(field)]
        for field in dataclasses.fields(cls)
        if field.init
    ]
    if rows:
        yield markdown_table(["key", "type", "default"], rows).strip()


def _type(wanted: Any) -> str:
    if isinstance(wanted, type) and issubclass(wanted, Family):
        return wanted.family
    if get_origin(wanted) is None:
        return getattr(wanted, "__name__", str(wanted))
    options = [_type(one) if isinstance(one, type) else str(one) for one in get_args(wanted)]
    return ", ".join(options).replace("NoneType", "nothing").replace("Ellipsis", "…")


def _default(field: dataclasses.Field[Any]) -> str:
    if not has_default(field):
        return "none: must be given"
    value = to_json(default_of(field))
    if isinstance(value, dict):
        value = value.get("kind", value)
    return f"`{value}`" if value not in ("", [], {}) else "nothing"


def python_names() -> str:
    """Every public name with its signature and its documentation."""
    names = [name for name in taskhint.__all__ if name != "__version__"]
    values = {name: getattr(taskhint, name) for name in names}
    functions = [name for name in names if not isinstance(values[name], type)]
    classes = [name for name in names if isinstance(values[name], type)]
    parts = ["# Python", "Everything here is `taskhint.NAME`.", "## Functions"]
    for name in sorted(functions):
        parts += _entry(name, values[name], 3)
    parts.append("## Classes")
    for name in sorted(classes):
        parts += _entry(name, values[name], 3)
        for method, function in sorted(vars(values[name]).items()):
            parts += _member(name, method, function)
    return "\n\n".join(parts) + "\n"


def _entry(name: str, value: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}"
    yield f"```python\n{name}{_signature(value)}\n```"
    text = _prose(inspect.getdoc(value) or "")
    if text and not text.startswith(f"{name}("):  # what a dataclass has for want of words
        yield text


def _member(owner: str, name: str, value: Any) -> Iterator[str]:
    function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    if name.startswith("_") or not (inspect.isfunction(function) or isinstance(value, property)):
        return
    text = inspect.getdoc(value)
    if not text:
        return
    call = "" if isinstance(value, property) else _signature(function)
    yield f"`{owner}.{name}{call}`\n: {_prose(text).splitlines()[0]}"


def _signature(value: Any) -> str:
    try:
        return str(inspect.signature(value)).replace("'", "").replace("(self, ", "(")
    except (TypeError, ValueError):
        return "(*args)"


def _prose(text: str) -> str:
    """Indented parts of a docstring are examples."""
    return inspect.cleandoc(text)


if __name__ == "__main__":
    write_reference(Path(sys.argv[1]))
