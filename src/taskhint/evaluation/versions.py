"""Whether runs were made with other versions of a user's files than those that are imported now.

Comments may be all that differs, so this is told and nothing is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from taskhint.recipes.recipe import Recipe
from taskhint.runs.environment import Own, own_sources, read_history
from taskhint.runs.run import ENVIRONMENT
from taskhint.system.errors import UserError, warn


def other_versions(run: Path, now: Iterable[Own]) -> list[str]:
    """Names of the files that had another text when the run, or a part of it, was trained."""
    try:
        stretches = read_history(run / ENVIRONMENT).stretches
    except UserError:
        return []
    noted = {own for stretch in stretches for own in stretch.environment.own if own.sha256}
    imported = {own.name: own.sha256 for own in now if own.sha256}
    return sorted({own.name for own in noted if imported.get(own.name, own.sha256) != own.sha256})


def warn_of_version(run: Path, recipe: Recipe) -> None:
    """One line for each file that is not as it was when the run was trained."""
    for name in other_versions(run, own_sources(recipe)):
        warn(f"{run} was made with another version of {name} than the one that is imported now")


def warn_of_versions(root: Path, recipes: Iterable[Recipe]) -> None:
    """One line for each file of which runs below a directory had another version."""
    now = {own for recipe in recipes for own in own_sources(recipe)}
    if not now:
        return
    runs = [path.parent for path in sorted(root.rglob(ENVIRONMENT))]
    counts = Counter(name for run in runs for name in other_versions(run, now))
    for name, count in counts.items():
        were = "1 run below it was" if count == 1 else f"{count} runs below it were"
        warn(
            f"{root}: {were} made with another version of {name} than the one that is imported "
            "now; tables show both as one; another --out, or removing the old ones, starts anew"
        )
