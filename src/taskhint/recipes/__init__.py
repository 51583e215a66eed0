"""Named recipes. Each is a function from a scale to a Recipe, one file per task family."""

from __future__ import annotations

from taskhint.recipes import field, increment, sort
from taskhint.recipes.entry import Entry
from taskhint.recipes.recipe import Recipe, Scale
from taskhint.system.errors import UserError, nearest

ENTRIES: dict[str, Entry] = {
    entry.name: entry for entry in (*sort.ENTRIES, *increment.ENTRIES, *field.ENTRIES)
}


def recipe_names() -> list[str]:
    return list(ENTRIES)


def find_recipe(name: str, scale: Scale = "pocket") -> Recipe:
    """The recipe of that name at that scale."""
    if name not in ENTRIES:
        raise UserError(f"unknown recipe {name!r}; {nearest(name, ENTRIES)}")
    return ENTRIES[name].build(scale)
