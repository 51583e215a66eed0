"""The files beside the runs of `taskhint reproduce`: which experiments they are of, and what a
person remarks on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from taskhint.recipes.recipe import Scale
from taskhint.runs.curve import PLAIN
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.settings import Settings, conform, to_json

MARKER = "reproduce.json"
REMARKS = "remarks.json"


@dataclass(frozen=True)
class Marker(Settings):
    """`sources` names the file or module of every experiment that is not the package's own;
    `precision` is that with which all were measured.
    """

    scale: Scale
    experiments: tuple[str, ...]
    sources: dict[str, str] = field(default_factory=dict)
    precision: str = PLAIN


def write_marker(directory: Path, marker: Marker) -> None:
    write_atomically(directory / MARKER, json_bytes(to_json(marker)))


def read_marker(directory: Path) -> Marker:
    path = directory / MARKER
    try:
        marker: Marker = conform(Marker, read_json(path), "it")
    except UserError as error:
        raise UserError(f"{path} is damaged: it does not name experiments ({error})") from None
    return marker


def read_remarks(directory: Path) -> dict[str, str]:
    """By experiment; nothing if nobody wrote any."""
    path = directory / REMARKS
    if not path.exists():
        return {}
    remarks: dict[str, str] = conform(dict[str, str], read_json(path), str(path))
    return remarks
