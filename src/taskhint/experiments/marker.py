"""The file that says which experiments a directory of `taskhint reproduce` holds, and at which
scale.
"""

from __future__ import annotations

from pathlib import Path

from taskhint.recipes.recipe import SCALES, Scale
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, read_json, write_atomically

MARKER = "reproduce.json"


def write_marker(directory: Path, scale: Scale, names: list[str]) -> None:
    write_atomically(directory / MARKER, json_bytes({"scale": scale, "experiments": names}))


def read_marker(directory: Path) -> tuple[Scale, list[str]]:
    path = directory / MARKER
    data = read_json(path)
    try:
        scale, names = data["scale"], [str(name) for name in data["experiments"]]
    except (KeyError, TypeError):
        raise UserError(f"{path} is damaged: it does not name experiments") from None
    for known in SCALES:
        if scale == known:
            return known, names
    raise UserError(f"{path} is damaged: {scale!r} is not a scale")
