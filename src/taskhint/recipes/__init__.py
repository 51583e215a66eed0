"""Named recipes. Each is a function from a scale to a Recipe, one file per task family."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from taskhint.recipes import field, increment, sort
from taskhint.recipes.entry import Entry, Measured
from taskhint.recipes.recipe import SCALES, Recipe, Scale
from taskhint.system.errors import UserError, nearest
from taskhint.system.files import read_json
from taskhint.system.settings import conform

MEASURED = Path(__file__).parent / "measured.json"

ENTRIES: dict[str, Entry] = {
    entry.name: entry for entry in (*sort.ENTRIES, *increment.ENTRIES, *field.ENTRIES)
}


def recipe_names() -> list[str]:
    return list(ENTRIES)


def find_recipe(name: str, scale: Scale = "pocket") -> Recipe:
    """The recipe of that name at that scale."""
    if not isinstance(name, str) or name not in ENTRIES:
        raise UserError(f"unknown recipe {name!r:.60}; {nearest(str(name), ENTRIES)}")
    if scale not in SCALES:
        raise UserError(f"scale {scale!r:.60} is not known; {nearest(str(scale), SCALES)}")
    return ENTRIES[name].make(scale, name=name)


def measured(name: str) -> Measured | None:
    """What a named recipe takes and gives, from the file that `tools/fill_pages.py` takes from
    results/; None if nobody has tried.
    """
    return _all_measured().get(name)


@cache
def _all_measured() -> dict[str, Measured]:
    found: dict[str, Measured] = conform(dict[str, Measured], read_json(MEASURED), str(MEASURED))
    return found
